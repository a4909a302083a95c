"""From data to the first round: rows that are learnt from, rows that are watched, the scores to start from.

Three kinds of data meet here: what is in memory and what is read from files ends as bins in memory, what a cluster
holds is binned there and stays there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import return_freed_memory
from epicycle.data import ArrayData, DaskData, Data
from epicycle.engine import n_threads
from epicycle.tree._binning import bin_data, padded, priority_limit, row_priorities, take_rows
from epicycle.tree._ensemble import Ensemble, n_trees
from epicycle.tree.boosting._boosting import Boosting, Growth, MemoryBoosting
from epicycle.tree.boosting._dask import ClusterBoosting, ClusterValidation, Summary, best_start
from epicycle.tree.boosting._losses import Loss, UserLoss
from epicycle.tree.boosting._partitions import Recipe, make_part
from epicycle.tree.boosting._validation import MemoryValidation, Validation

__all__ = ["Preparation"]

_MANY_BINS = 1 << 20  # from which on binning leaves enough behind to be worth giving back


@dataclass(frozen=True)
class Preparation:
    """What a fit knows before it looks at the rows.

    Attributes
    ----------
    loss, growth, cuts, seed
    options : dict
        Further arguments of :class:`Boosting`.
    factors : ndarray or None
        On the weights of the classes.
    apart : float or None
        Share of the rows that is kept apart.
    known : Ensemble
        Trees of an earlier fit, which began at `start` (else None).
    raw : function
        Scores (n, K) of data by trees.
    earlier : ndarray
        Losses of the watched rows up to here.
    n_jobs : int, optional
    """

    loss: Loss | UserLoss
    growth: Growth
    cuts: list[np.ndarray]
    seed: int
    options: dict[str, Any]
    factors: np.ndarray | None
    apart: float | None
    known: Ensemble
    start: np.ndarray | None
    raw: Callable[[Data, Ensemble], np.ndarray]
    earlier: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_jobs: int | None = None

    @property
    def first(self) -> int:
        """Rounds of the earlier fit."""
        return n_trees(self.known) // self.loss.n_outputs

    def begin(self, data: Data, watched: Data | None) -> tuple[np.ndarray, Boosting, Validation | None]:
        """(the scores at which all rows start, the rounds, the watched rows)."""
        begun = self._on_cluster(data) if isinstance(data, DaskData) else self._in_memory(data)
        start, boosting, validation = begun
        if isinstance(watched, DaskData):
            validation = self._watched_on_cluster(watched, start)
        elif watched is not None:
            validation = self._watched_in_memory(watched, start)
        return start, boosting, validation

    def _in_memory(self, data: Data) -> tuple[np.ndarray, Boosting, Validation | None]:
        rows, target, weight = bin_data(data, self.cuts, self.n_jobs)
        weight = self._weighed(weight, target)
        held, train = None, weight > 0
        if self.apart is not None:
            held = np.zeros(len(target), bool)
            size = self._size_apart(len(target))
            held[np.argsort(row_priorities(0, len(target), self.seed + 1), kind="stable")[:size]] = True
            train &= ~held
        if not train.any():
            raise DataError("sample_weight: no row of positive weight is left to learn from")
        self.loss.check_target(target[weight > 0])
        weighted, threads = self._weighted(data), n_threads(float(rows.size), self.n_jobs)
        which = None if train.all() else train
        in_memory = isinstance(data, ArrayData)  # of files one byte a cell is kept
        n_bins = self.growth.n_bins
        held_rows = None if held is None else rows[held]
        bins = take_rows(rows, target, weight, which, n_bins, threads, weighted=weighted, columns=in_memory)
        del rows  # before anything else is made
        if bins.rows.size > _MANY_BINS:
            return_freed_memory()
        start = self.loss.start(bins.y, bins.weight) if self.start is None else self.start
        scores = self.raw(data, self.known) if self.first else None
        score = np.repeat(start[:, None], bins.n_rows, axis=1)
        if scores is not None:
            score = np.ascontiguousarray(scores[train].T)
        validation = None
        if held is not None:
            validation = MemoryValidation(held_rows, target[held], weight[held] if weighted else None, self.loss)
            validation.begin((start if scores is None else scores[held]).T, self.first, self.earlier)
        return start, MemoryBoosting(bins, score, self.n_jobs, self.loss, self.growth, **self.options), validation

    def _watched_in_memory(self, data: Data, start: np.ndarray) -> Validation:
        rows, target, weight = bin_data(data, self.cuts, self.n_jobs)
        self.loss.check_target(target)
        weight = self._weighed(weight, target)
        validation = MemoryValidation(rows, target, weight if self._weighted(data) else None, self.loss)
        validation.begin((self.raw(data, self.known) if self.first else start).T, self.first, self.earlier)
        return validation

    def _on_cluster(self, data: DaskData) -> tuple[np.ndarray, Boosting, Validation | None]:
        limit = None
        if self.apart is not None:
            engine.row_starts(data)  # counts the rows
            limit = priority_limit(data.n_rows, self._size_apart(data.n_rows), self.seed + 1)
        rows = self._parts(data, limit)
        about = Summary(rows, len(data.parts))
        held, ends = None, [about.low, about.high]
        if limit is not None:
            held = ClusterValidation(self._parts(data, limit, held=True), len(data.parts), self.loss)
            ends += [held.about.low, held.about.high]
        self.loss.check_target(np.array(ends))
        start = best_start(rows, about, self.loss) if self.start is None else self.start
        if held is not None:
            held.begin(start, self.first, self.earlier)
        return start, ClusterBoosting(rows, about, start, self.loss, self.growth, **self.options), held

    def _watched_on_cluster(self, data: DaskData, start: np.ndarray) -> Validation:
        # All rows, those without weight too, as in memory.
        rows = self._parts(data, 2**64 - 1, held=True)
        validation = ClusterValidation(rows, len(data.parts), self.loss)
        self.loss.check_target(np.array([validation.about.low, validation.about.high]))
        validation.begin(start, self.first, self.earlier)
        return validation

    def _parts(self, data: DaskData, limit: int | None, *, held: bool = False) -> engine.States:
        recipe = Recipe(
            table=padded(self.cuts),
            factors=self.factors,
            weighted=self._weighted(data),
            seed=self.seed + 1,
            threshold=limit,
            held=held,
            known=self.known if self.first else None,
            start=self.start,
        )
        return engine.make_states(data, make_part, recipe, n_jobs=self.n_jobs)

    def _weighted(self, data: Data) -> bool:
        return data.has_weight or self.factors is not None

    def _weighed(self, weight: np.ndarray, target: np.ndarray) -> np.ndarray:
        return weight if self.factors is None else weight * self.factors[target.astype(np.intp)]

    def _size_apart(self, n: int) -> int:
        size = int(np.ceil(self.apart * n))
        if size >= n:
            raise ParameterError(
                f"validation_fraction={self.apart:g} leaves none of {n} rows to learn from; give X_val and y_val"
            )
        return size
