"""Result of :func:`topic_table`: the model, its topics, and the files."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epicycle.automl._table_run import TableRun
from epicycle.io import save
from epicycle.report._plain import plain


@dataclass(repr=False)
class TopicRun(TableRun):
    """Result of :func:`epicycle.topic_table`; `save` writes topics.csv, documents.csv and model.epi.

    Attributes
    ----------
    model : Pipeline
        Counts of words, then the topic model of all documents; ``model.transform(texts)`` gives shares, in the order of
        the model.
    order : ndarray of int
        The topics of the model in the order of the run, the largest first.
    topics : list of dict
        Words with their probabilities, distinctive words, share of all words, coherence, number of documents and some
        of them.
    shares : ndarray of shape (rows, n_topics)
        Of the topics in every document; nan where it has no words.
    candidates : list of dict
        Numbers of topics, with the perplexity of held-out words and the mean coherence.
    unigram : float
        The perplexity of the same words by their frequencies alone.
    over : dict or None
        Shares of the topics in groups of documents.
    columns : dict
        Names of the columns of texts and time.
    counts : dict
        Numbers of documents, words and terms.
    """

    model: Any
    order: np.ndarray
    topics: list[dict[str, Any]]
    shares: np.ndarray
    candidates: list[dict[str, Any]]
    unigram: float
    over: dict[str, Any] | None
    columns: dict[str, str | None]
    counts: dict[str, int]
    source: str
    seed: int

    @property
    def perplexity(self) -> float:
        """Of held-out words with this number of topics."""
        return float(next(row["perplexity"] for row in self.candidates if row["topics"] == len(self.topics)))

    @property
    def verdict(self) -> str:
        """The conclusion in one sentence."""
        found = (
            f"{len(self.topics)} topic{'s' if len(self.topics) > 1 else ''} in {self.counts['documents']:,} documents: "
            f"the perplexity of held-out words is {self.perplexity:,.0f}"
        )
        if self.perplexity >= self.unigram:
            return f"{found}, no better than that of the frequencies of words alone ({self.unigram:,.0f})"
        return f"{found}, by the frequencies of words alone {self.unigram:,.0f}"

    def __str__(self) -> str:
        lines = [f"{self.source}: {self.verdict}"]
        lines += [f"  {t['share']:6.1%}  {' '.join(t['words'][:8])}" for t in self.topics[:20]]
        return "\n".join(lines)

    def metrics(self) -> dict[str, Any]:
        """The numbers in plain values; the same for the same seed."""
        fitted = self.model[-1]
        certificate = fitted.certificate_
        names = ("columns", "counts", "topics", "candidates", "unigram", "perplexity", "over", "verdict", "seed")
        return dict(
            plain(
                {name: getattr(self, name) for name in names}
                | {
                    "objective": [float(v) for v in fitted.history_.objective],
                    "certificate": certificate,
                }
            )
        )

    def record(self) -> dict[str, Any]:
        """The run in plain values of bounded size, the input of a report; without times, so that it repeats."""
        return {
            "title": f"Topics of {self.source}",
            "topics": self.metrics(),
            "environment": self._environment(),
        }

    def _files(self) -> dict[str, Callable[[Path], None]]:
        return {
            "topics.csv": self._write_topics,
            "documents.csv": self._write_documents,
            "model.epi": lambda path: save(self.model, path),
        }

    def _write_topics(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["topic", "share", "coherence", "rank", "word", "probability"])
            for number, topic in enumerate(self.topics, 1):
                head = [number, f"{topic['share']:.6g}", f"{topic['coherence']:.6g}"]
                for rank, (word, p) in enumerate(zip(topic["words"], topic["probabilities"], strict=True), 1):
                    writer.writerow([*head, rank, word, f"{p:.6g}"])

    def _write_documents(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["row", "topic", *(f"topic{k}" for k in range(1, len(self.topics) + 1))])
            for row, shares in enumerate(self.shares):
                if np.isnan(shares[0]):
                    writer.writerow([row, "", *[""] * len(shares)])
                else:
                    writer.writerow([row, int(shares.argmax()) + 1, *(f"{value:.4f}" for value in shares)])
