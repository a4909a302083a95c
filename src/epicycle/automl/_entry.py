"""A candidate of the search with its results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from epicycle.automl._candidates import Candidate
from epicycle.automl._evaluation import FoldScore


@dataclass
class Entry:
    """A candidate, its results by number of rows and fold, and the error of a fit that failed."""

    candidate: Candidate
    results: dict[tuple[int, int], FoldScore] = field(default_factory=dict)
    status: str = "waiting"
    trial: int = 0
    failed: str = ""

    def scores(self, rows: int, folds: Sequence[int] | None = None) -> np.ndarray:
        found = {fold: r.score for (n, fold), r in self.results.items() if n == rows}
        return np.array([found.get(fold, np.nan) for fold in (sorted(found) if folds is None else folds)])

    def folds(self, rows: int) -> list[int]:
        """The folds that were scored with so many rows."""
        return sorted(fold for n, fold in self.results if n == rows)

    def mean(self, rows: int, folds: Sequence[int] | None = None) -> float:
        scores = self.scores(rows, folds)
        return float(scores.mean()) if len(scores) and np.isfinite(scores).all() else -math.inf

    def merit(self, rows: int, folds: Sequence[int] | None = None) -> tuple[float, float]:
        """The mean score, and the second criterion between equal scores."""
        ties = [r.tie for (n, fold), r in self.results.items() if n == rows and (folds is None or fold in folds)]
        return round(self.mean(rows, folds), 12), float(np.mean(ties)) if ties else -math.inf

    def rank(self) -> tuple[int, int, float]:
        """Key of a list from best to worst: most rows first, then most folds, so that neighbours are comparable."""
        rows = self.most_rows()
        return -rows, -len(self.folds(rows)), -self.mean(rows)

    def most_rows(self) -> int:
        return max((n for n, _ in self.results), default=0)

    def seconds(self) -> float:
        return sum(r.seconds for r in self.results.values())

    def rounds(self) -> int | None:
        at = self.most_rows()
        found = [r.rounds for (n, _), r in self.results.items() if n == at and r.rounds is not None]
        return round(float(np.mean(found))) if found else None

    def take(self, rows: int, found: Sequence[FoldScore]) -> None:
        """Note the results of fits to so many rows: all of them, or the failure of the first that has one."""
        self.failed = self.failed or next((result.failure for result in found if result.failure), "")
        if not self.failed:
            self.results.update({(rows, result.fold): result for result in found})

    def forget_responses(self) -> None:
        """Drop the out-of-fold predictions, which need memory."""
        self.results = {key: replace(result, responses={}) for key, result in self.results.items()}
