"""Result of :func:`recommend_table`: the model, its errors and lists, and the files."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epicycle.automl._table_run import TableRun
from epicycle.recommend import CollaborativeFiltering
from epicycle.report._plain import plain

_IN_REPORT = 20  # users whose lists are in the report


@dataclass(repr=False)
class RecommendationRun(TableRun):
    """Result of :func:`epicycle.recommend_table`; `save` writes recommendations.csv and model.epi.

    Attributes
    ----------
    model : CollaborativeFiltering
        Fitted to all ratings.
    columns : dict
        Names of the columns of users, items, ratings and time.
    n : int
        Length of the lists.
    candidates : list of dict
        Name, error on the ratings to choose by, and its interval, the best first.
    method : str
        The chosen one.
    rmse : float
        Its root mean squared error on the test.
    interval : tuple of float
        95% confidence; the ratings of a user count as one draw.
    baseline : float
        The error of the mean of all ratings.
    is_better : bool
        Whether the model beats it beyond chance.
    criteria : dict
        NDCG, MAP, recall and coverage of the lists of the model and of popular items.
    new_users, new_items : float
        Shares of the ratings of the test whose user or item was not among those to learn from.
    counts : dict
        Numbers of ratings, users and items, and how often each rating occurs.
    lists : list of dict
        For every user the items, their names and scores.
    similar : list of dict
        The items next to those with most ratings.
    failed : list of str
        Candidates that could not be fitted, and why.
    """

    model: CollaborativeFiltering
    columns: dict[str, str | None]
    n: int
    candidates: list[dict[str, Any]]
    method: str
    rmse: float
    interval: tuple[float, float]
    baseline: float
    is_better: bool
    criteria: dict[str, dict[str, float]]
    new_users: float
    new_items: float
    counts: dict[str, Any]
    lists: list[dict[str, Any]]
    similar: list[dict[str, Any]]
    failed: list[str]
    dropped: int
    left_out: list[str]
    features: list[str]
    source: str
    seed: int

    @property
    def verdict(self) -> str:
        """The conclusion in one sentence."""
        low, high = self.interval
        when = "later" if self.columns["time"] else "held-out"
        words = (
            f"{self.method} predicts {when} ratings with an error (RMSE) of {self.rmse:.4g} ({low:.4g} to {high:.4g})"
        )
        if not self.is_better:
            return f"{words}, no better than the mean of all ratings ({self.baseline:.4g})"
        return f"{words}; the mean of all ratings has {self.baseline:.4g}"

    def __str__(self) -> str:
        lines = [f"{self.counts['ratings']:,} ratings ({self.source}): {self.verdict}"]
        lines += [f"  {row['name']:<34} {row['rmse']:.4g}" for row in self.candidates[:8]]
        return "\n".join(lines)

    def metrics(self) -> dict[str, Any]:
        """The numbers in plain values; the same for the same seed."""
        certificate = self.model.certificate_
        names = (
            *("columns", "n", "candidates", "method", "rmse", "interval", "baseline", "is_better", "verdict"),
            *("criteria", "new_users", "new_items", "counts", "similar", "failed", "dropped", "left_out", "features"),
        )
        return dict(
            plain(
                {name: getattr(self, name) for name in names}
                | {
                    "lists": self.lists[:_IN_REPORT],
                    "objective": [float(v) for v in self.model.history_.objective],
                    "certificate": certificate,
                    "seed": self.seed,
                }
            )
        )

    def record(self) -> dict[str, Any]:
        """The run in plain values of bounded size, the input of a report; without times, so that it repeats."""
        return {
            "title": f"Recommendations from {self.source}",
            "recommendations": self.metrics(),
            "environment": self._environment(),
        }

    def _files(self) -> dict[str, Callable[[Path], None]]:
        return {"recommendations.csv": self._write_lists, "model.epi": self.model.save}

    def _write_lists(self, path: Path) -> None:
        named = any(a != str(b) for row in self.lists for a, b in zip(row["names"], row["items"], strict=True))
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["user", "rank", "item", "score", *(["name"] if named else [])])
            for row in self.lists:
                for rank, (item, name, score) in enumerate(
                    zip(row["items"], row["names"], row["scores"], strict=True), start=1
                ):
                    writer.writerow([row["user"], rank, item, repr(score), *([name] if named else [])])
