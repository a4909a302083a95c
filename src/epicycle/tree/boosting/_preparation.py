"""From data to the first round: training rows, validation set, and start scores.

Data in memory and data from files become bins in memory; data of a cluster is binned there and stays there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import return_freed_memory
from epicycle.data import ArrayData, DaskData, Data
from epicycle.engine import n_threads
from epicycle.optim._likelihoods import Logistic
from epicycle.tree._binning import bin_data, padded_edges, take_rows
from epicycle.tree._ensemble import Ensemble, n_trees, scores_of_data
from epicycle.tree.boosting._boosting import LARGEST_SUM, LEAST_WEIGHT, Boosting, MemoryBoosting
from epicycle.tree.boosting._distributed import DistributedBoosting, DistributedValidation, Summary, best_start
from epicycle.tree.boosting._growth import Growth
from epicycle.tree.boosting._held_out import HeldOut, MemoryValidation, Validation
from epicycle.tree.boosting._losses import BoostingLoss
from epicycle.tree.boosting._partitions import Recipe, make_part

# Bytes of bins from which on the freed temporaries of binning are worth the call that returns them to the system.
_MANY_BINS = 1 << 20


def check_total_weight(weight: np.ndarray) -> None:
    """Raise where weights are beyond the range of the 32 bits in which derivatives are kept."""
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not LEAST_WEIGHT <= total <= LARGEST_SUM:
        raise DataError(
            f"sample_weight: the weights add up to {total:.1e}; boosting keeps weighted derivatives in 32 bits: "
            f"expected between {LEAST_WEIGHT:g} and {LARGEST_SUM:g}. Multiply the weights by a constant"
        )


@dataclass(frozen=True)
class Preparation:
    """Settings of a fit that do not depend on the rows.

    Attributes
    ----------
    loss, growth, edges
    options : dict
        Further arguments of :class:`Boosting`.
    factors : ndarray or None
        On the weights of the classes.
    held_out : HeldOut or None
        Rows that are the validation set.
    known : Ensemble
        Trees of an earlier fit, which began at `start` (else None).
    offset : ndarray of shape (n, K), or None
        Scores of the rows that are added to `start`.
    n_jobs : int, optional
    """

    loss: BoostingLoss
    growth: Growth
    edges: list[np.ndarray]
    options: dict[str, Any]
    factors: np.ndarray | None
    held_out: HeldOut | None
    known: Ensemble
    start: np.ndarray | None
    offset: np.ndarray | None = None
    n_jobs: int | None = None

    @property
    def first(self) -> int:
        """Rounds of the earlier fit."""
        return n_trees(self.known) // self.loss.n_outputs

    @property
    def n_classes(self) -> int:
        """Number of classes of the target, 0 where it is a number."""
        of_row = getattr(self.loss, "of_row", None)
        return 2 if isinstance(of_row, Logistic) else self.loss.n_outputs if self.loss.n_outputs > 1 else 0

    def begin(self, data: Data, given: Data | None) -> tuple[np.ndarray, Boosting, Validation | None]:
        """(start scores, rounds, validation set); the validation set is held out, or `given`."""
        begun = self._in_partitions(data) if isinstance(data, DaskData) else self._in_memory(data)
        start, boosting, validation = begun
        if isinstance(given, DaskData):
            validation = self._validation_in_partitions(given, start)
        elif given is not None:
            validation = self._validation_in_memory(given, start)
        return start, boosting, validation

    def _in_memory(self, data: Data) -> tuple[np.ndarray, Boosting, Validation | None]:
        rows, target, weight = bin_data(data, self.edges, self.n_jobs)
        weight = self._class_weighted(weight, target)
        held, train = None, weight > 0
        if self.held_out is not None:
            held = self.held_out.mask(0, len(target))
            train &= ~held
        if not train.any():
            raise DataError("sample_weight: no row of positive weight is left to learn from")
        if held is not None and self.n_classes > len(np.unique(target[train])):
            raise DataError(
                "y: The training data after the early stopping split is missing some classes; give X_val and y_val, or "
                "another random_state or validation_fraction"
            )
        check_total_weight(weight[train])
        self.loss.check_target(target[weight > 0])
        weighted, threads = self._weighted(data), n_threads(float(rows.size), self.n_jobs)
        which = None if train.all() else train
        in_memory = isinstance(data, ArrayData)  # for files one byte a cell is enough memory to hold
        n_bins = self.growth.n_bins
        held_rows = rows[:0] if held is None else rows[held]
        bins = take_rows(rows, target, weight, which, n_bins, threads, weighted=weighted, columns=in_memory)
        del rows  # frees it before scores and gradients are allocated
        if bins.rows.size > _MANY_BINS:
            return_freed_memory()
        start = self.loss.start(bins.y, bins.weight) if self.start is None else self.start
        scores = self._known_scores(data) if self.first else None
        # Scores are (K, n): the kernels run along the rows of one output.
        score = np.repeat(start[:, None], bins.n_rows, axis=1)
        if scores is not None:
            score = np.ascontiguousarray(scores[train].T)
        if self.offset is not None:
            score = score + np.ascontiguousarray(self.offset[train].T)
        validation = None
        if held is not None:
            validation = MemoryValidation(held_rows, target[held], weight[held] if weighted else None, self.loss)
            validation.which = held
            begin = start if scores is None else scores[held]
            validation.begin((begin if self.offset is None else begin + self.offset[held]).T)
        boosting = MemoryBoosting(bins, score, self.n_jobs, self.loss, self.growth, **self.options)
        boosting.which = train
        return start, boosting, validation

    def _validation_in_memory(self, data: Data, start: np.ndarray) -> Validation:
        rows, target, weight = bin_data(data, self.edges, self.n_jobs)
        self.loss.check_target(target)
        weight = self._class_weighted(weight, target)
        validation = MemoryValidation(rows, target, weight if self._weighted(data) else None, self.loss)
        validation.begin((self._known_scores(data) if self.first else start).T)
        return validation

    def _in_partitions(self, data: DaskData) -> tuple[np.ndarray, Boosting, Validation | None]:
        rows = self._parts(data, self.held_out)
        about = Summary(rows, len(data.parts))
        held, ends = None, [about.low, about.high]
        if self.held_out is not None:
            held = DistributedValidation(self._parts(data, self.held_out, held=True), len(data.parts), self.loss)
            ends += [held.about.low, held.about.high]
        self.loss.check_target(np.array(ends))
        start = best_start(rows, about, self.loss) if self.start is None else self.start
        if held is not None:
            held.begin(start)
        return start, DistributedBoosting(rows, about, start, self.loss, self.growth, **self.options), held

    def _validation_in_partitions(self, data: DaskData, start: np.ndarray) -> Validation:
        rows = self._parts(data, None, held=True)
        validation = DistributedValidation(rows, len(data.parts), self.loss)
        self.loss.check_target(np.array([validation.about.low, validation.about.high]))
        validation.begin(start)
        return validation

    def _parts(self, data: DaskData, held_out: HeldOut | None, *, held: bool = False) -> engine.States:
        recipe = Recipe(
            table=padded_edges(self.edges),
            factors=self.factors,
            weighted=self._weighted(data),
            held_out=None if held_out is None else held_out.mask,
            held=held,
            known=self.known if self.first else None,
            start=self.start,
        )
        return engine.make_states(data, make_part, recipe, n_jobs=self.n_jobs)

    def _known_scores(self, data: Data) -> np.ndarray:
        """Scores (n, K) by the trees of the earlier fit."""
        assert self.start is not None
        return np.asarray(scores_of_data(data, self.known, self.start, self.n_jobs))

    def _weighted(self, data: Data) -> bool:
        return data.has_weight or self.factors is not None

    def _class_weighted(self, weight: np.ndarray, target: np.ndarray) -> np.ndarray:
        return weight if self.factors is None else weight * self.factors[target.astype(np.intp)]
