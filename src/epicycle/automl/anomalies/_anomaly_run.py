"""Result of the search for anomalies in a table: the detector, the most unusual rows with reasons, and the files."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epicycle.automl._table_run import ProfiledTableRun
from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue
from epicycle.io import save
from epicycle.report._plain import plain

_IN_REPORT = 30  # rows that the report shows


@dataclass(repr=False)
class AnomalyRun(ProfiledTableRun):
    """Result of :func:`epicycle.anomaly_table`; `save` writes model.epi and anomalies.csv.

    Attributes
    ----------
    method : str
        The detector that was chosen.
    model : Pipeline
        Columns encoded, then the detector, fitted to all rows that are not known to be anomalies:
        ``model.predict(table)`` gives -1 for anomalies.
    candidates : list of dict
        All detectors, the best first: figures on labelled rows, or how far they agree with each other.
    scores : ndarray of shape (rows,)
        The lower, the more unusual.
    flagged : ndarray of bool of shape (rows,)
        Anomalies.
    reasons : list of str
        For every row of `order` the columns that make it unusual, with their values.
    order : ndarray of int
        Rows that are explained, the most unusual first.
    threshold : float
        Scores below it are anomalies.
    label : dict
        Column, value of the anomalies and their number; empty without labels.
    """

    method: str
    model: Any
    candidates: list[dict[str, Any]]
    failed: list[str]
    scores: np.ndarray
    flagged: np.ndarray
    order: np.ndarray
    reasons: list[str]
    blame: list[dict[str, Any]]
    threshold: float
    label: dict[str, Any]
    labels: np.ndarray | None
    profile: list[ColumnProfile]
    warnings: list[DataIssue]
    source: str
    script: str
    seed: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        found = f"{int(self.flagged.sum()):,} of {self.rows:,} rows are unusual by {self.method}"
        if not self.label:
            return f"{found}; without labels their number is the share that was asked for"
        best = self.candidates[0]
        return (
            f"{found}; on rows that were held out it finds {best['recall']:.0%} of the known anomalies, and "
            f"{best['precision']:.0%} of the rows that it reports are among them"
        )

    def __str__(self) -> str:
        lines = [f"{self.source}: {self.verdict}"]
        lines += [f"  row {row}: {why}" for row, why in zip(self.order[:5].tolist(), self.reasons, strict=False)]
        return "\n".join(lines)

    def metrics(self) -> dict[str, Any]:
        """The numbers in plain values; the same for the same seed."""
        top = [
            {
                "row": int(row),
                "score": float(self.scores[row]),
                "flagged": bool(self.flagged[row]),
                "reasons": why,
                **({} if self.labels is None else {"label": bool(self.labels[row])}),
            }
            for row, why in zip(self.order[:_IN_REPORT], self.reasons, strict=False)
        ]
        # The first bar holds all that is lower: scores far out would squeeze the others into one.
        top_score = float(self.scores.max())
        drawn = np.maximum(self.scores, self.threshold - 3 * max(top_score - self.threshold, 0.0))
        counts, edges = np.histogram(drawn, bins=40)
        known = {} if self.labels is None else {"odd": np.histogram(drawn[self.labels], bins=edges)[0].tolist()}
        return dict(
            plain(
                {
                    "method": self.method,
                    "verdict": self.verdict,
                    "rows": self.rows,
                    "flagged": int(self.flagged.sum()),
                    "threshold": self.threshold,
                    "label": self.label,
                    "candidates": self.candidates,
                    "failed": self.failed,
                    "histogram": {"edges": edges.tolist(), "counts": counts.tolist(), **known},
                    "blame": self.blame,
                    "top": top,
                    "seed": self.seed,
                }
            )
        )

    def record(self) -> dict[str, Any]:
        """The run in plain values of bounded size, the input of a report; without times, so that it repeats."""
        title = f"Anomalies in {self.source}"
        return self._record(title, self.rows, {"anomalies": self.metrics()}, task="anomalies")

    def _files(self) -> dict[str, Callable[[Path], None]]:
        return {"model.epi": lambda path: save(self.model, path), "anomalies.csv": self._write_rows}

    def _write_rows(self, path: Path) -> None:
        why = dict(zip(self.order.tolist(), self.reasons, strict=True))
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["rank", "row", "score", "anomaly", "reasons"])
            for rank, row in enumerate(np.argsort(self.scores, kind="stable").tolist(), 1):
                score = f"{self.scores[row]:.6g}"
                writer.writerow([rank, row, score, int(self.flagged[row]), why.get(row, "")])
