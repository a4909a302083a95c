"""Scores of subsets of features, each computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from epicycle.select._fit_and_score import FoldResult, Task, fit_and_score, run_all
from epicycle.select._inputs import Rows, Split
from epicycle.select._scorers import Scorer

__all__ = ["Subset", "SubsetScores"]

Subset = frozenset[int]


class SubsetScores:
    """The scores over folds of every subset that was asked for; a subset is fitted once."""

    def __init__(
        self, model: Any, rows: Rows, splits: Sequence[Split], scorer: Scorer, n_features: int, n_jobs: int | None
    ) -> None:
        self.model, self.rows, self.splits, self.scorer = model, rows, splits, scorer
        self.n_features, self.n_jobs = n_features, n_jobs
        self.known: dict[Subset, np.ndarray] = {}
        self.asked = 0

    def __call__(self, subsets: Sequence[Subset]) -> np.ndarray:
        """Scores of shape (subsets, folds)."""
        self.asked += len(subsets)
        unknown = [subset for subset in dict.fromkeys(subsets) if subset not in self.known]
        if unknown:
            scores = self.compute(unknown)
            self.known.update(zip(unknown, scores, strict=True))
        return np.stack([self.known[subset] for subset in subsets])

    def compute(self, subsets: Sequence[Subset]) -> np.ndarray:
        """The scores by fitting the model to every subset and fold."""
        tasks = [
            Task("", self.model, j, split, np.array(sorted(subset)))
            for subset in subsets
            for j, split in enumerate(self.splits)
        ]

        def work(task: Task) -> FoldResult:
            return fit_and_score(task, self.rows, self.scorer, forgive=False)

        results = run_all(work, tasks, self.n_jobs)
        return np.array([result.score for result in results]).reshape(len(subsets), len(self.splits))

    def state(self) -> dict[str, Any]:
        """All that is known, for a checkpoint."""
        masks = np.zeros((len(self.known), self.n_features), dtype=bool)
        for i, subset in enumerate(self.known):
            masks[i, list(subset)] = True
        return {"subsets": masks, "scores": np.array(list(self.known.values()))}

    def restore(self, state: Mapping[str, Any]) -> None:
        for mask, scores in zip(state.get("subsets", ()), state.get("scores", ()), strict=True):
            self.known[frozenset(np.flatnonzero(mask).tolist())] = np.asarray(scores)
