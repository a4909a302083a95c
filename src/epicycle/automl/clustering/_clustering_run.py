"""Result of a clustering of a table: the model, the clusters in words, the evidence, and the files."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from epicycle.automl._table_run import ProfiledTableRun
from epicycle.automl._training_run import write_text
from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue
from epicycle.automl.tables._table_model import TableModel
from epicycle.io import save
from epicycle.report._plain import plain


@dataclass(repr=False)
class ClusteringRun(ProfiledTableRun):
    """Result of :func:`epicycle.cluster_table`; `save` writes model.epi, clusters.csv, clusters.json and cluster.py.

    Attributes
    ----------
    model_ : TableModel
        The chosen clustering, fitted to all rows. ``predict`` takes tables with the columns of the data.
    method : str
    k : int
        Number of clusters.
    chosen : str
        Name of the candidate.
    verdict : str
        "stable", "fairly stable", "unstable" or "no better than chance".
    reasons : list of str
        Why this clustering, in words.
    labels : ndarray of shape (n_rows,)
        The cluster of every row; -1 for rows that belong to none.
    silhouettes : ndarray of shape (n_rows,) or None
        Of every row, where there are at most 20,000.
    clusters : list of dict
        The clusters from the largest to the smallest: rows, share, silhouette, summary and details in words.
    candidates : list of dict
        All that were tried: method, k, stability, silhouette, evidence, by_chance and beyond_chance.
    p_value : float
        Of the search as a whole: the share of tables without clusters in which it finds at least as much.
    agreement : dict or None
        Adjusted Rand index and purity against the column of known classes, where there is one.
    skipped : list of str
        Candidates that were not compared, and why.
    profile : list of ColumnProfile
    warnings : list of DataIssue
    script : str
        The text of cluster.py.
    seconds : float
    """

    model_: TableModel
    method: str
    k: int
    chosen: str
    verdict: str
    reasons: list[str]
    labels: np.ndarray
    silhouettes: np.ndarray | None
    silhouette: dict[str, Any]
    clusters: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    p_value: float
    stability: dict[str, float]
    agreement: dict[str, Any] | None
    embedding: dict[str, Any]
    profile: list[ColumnProfile]
    warnings: list[DataIssue]
    source: str
    script: str
    seed: int
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [
            f"{self.k} clusters of {len(self.labels):,} rows by {self.method} ({self.source}): {self.verdict}",
            *(f"  {reason}" for reason in self.reasons),
            *(
                f"  cluster {c['cluster']}: {c['rows']:,} rows ({c['share']:.0%}), {c['summary']}"
                + (f": {c['details']}" if c["details"] else "")
                for c in self.clusters
            ),
        ]
        return "\n".join(lines)

    def metrics(self) -> dict[str, Any]:
        """The numbers in plain values, as clusters.json has them; the same for the same seed."""
        return {
            "method": self.method,
            "k": self.k,
            "chosen": self.chosen,
            "verdict": self.verdict,
            "reasons": self.reasons,
            "p_value": self.p_value,
            "stability": self.stability,
            "silhouette": self.silhouette,
            "agreement": self.agreement,
            "clusters": [{key: c[key] for key in c if key != "traits"} for c in self.clusters],
            "candidates": self.candidates,
            "skipped": self.skipped,
            "warnings": plain(self.warnings),
            "rows": len(self.labels),
            "seed": self.seed,
        }

    def record(self) -> dict[str, Any]:
        """The run in plain values of bounded size, the input of a report; without times, so that it repeats."""
        content = {
            "clustering": {
                **plain(self.metrics()),
                "embedding": self.embedding,
                "outlines": self._outlines(),
                "certificate": plain(self.model_.certificate_),
            }
        }
        title = f"Clusters of {os.path.basename(self.source) or self.source}"
        return self._record(title, len(self.labels), content, task="clustering")

    def _outlines(self) -> list[dict[str, Any]]:
        """Silhouettes of each cluster, falling, at no more than 60 places."""
        if self.silhouettes is None:
            return []
        found = []
        for c in (c for c in self.clusters if c["cluster"] >= 0):
            values = np.sort(self.silhouettes[self.labels == c["cluster"]])[::-1]
            at = np.unique(np.linspace(0, len(values) - 1, 60).round().astype(int))
            found.append(
                {"cluster": c["cluster"], "rows": len(values), "at": at.tolist(), "values": values[at].tolist()}
            )
        return found

    def _files(self) -> dict[str, Callable[[Path], None]]:
        return {
            "model.epi": lambda path: save(self.model_, path),
            "clusters.csv": self._write_clusters,
            "clusters.json": lambda path: write_text(path, json.dumps(plain(self.metrics()), indent=2) + "\n"),
            "cluster.py": lambda path: write_text(path, self.script),
        }

    def _write_clusters(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["row", "cluster", *(["silhouette"] if self.silhouettes is not None else [])])
            for i, label in enumerate(self.labels.tolist()):
                value = [] if self.silhouettes is None else ["" if label < 0 else f"{self.silhouettes[i]:.6g}"]
                writer.writerow([i, label, *value])
