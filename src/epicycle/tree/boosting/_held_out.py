"""Rows that are held out as validation set, by their numbers: the same in memory, from files and on a cluster."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from epicycle import _native, engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data import ArrayData, Batch, DaskData, Data
from epicycle.tree._binning import priority_limit, row_priorities
from epicycle.tree._ensemble import GrownTree
from epicycle.tree.boosting._losses import BoostingLoss

# Up to so many rows the draw is scikit-learn's, with its memory for each; beyond, a hash of the row numbers draws, and
# the shares of the classes are left to chance.
SPLIT_ROWS = 1 << 20


@dataclass(frozen=True)
class HeldOut:
    """Rows that are held out: their ascending `numbers`, or those whose priority by `seed` is at most `limit`."""

    n_rows: int
    size: int
    numbers: np.ndarray | None
    seed: int = 0
    limit: int = 0

    @property
    def n_left(self) -> int:
        """Number of the rows that are learnt from."""
        return self.n_rows - self.size

    def mask(self, start: int, stop: int) -> np.ndarray:
        """Whether each of the rows start:stop is held out."""
        if self.numbers is None:
            return np.asarray(row_priorities(start, stop, self.seed) <= np.uint64(self.limit))
        out = np.zeros(stop - start, bool)
        first, last = np.searchsorted(self.numbers, [start, stop])
        out[self.numbers[first:last] - start] = True
        return out


def hold_out(
    data: Data,
    asked: float,
    seed: int,
    split_seed: int,
    *,
    stratify: bool,
    spare_single: bool = False,
    n_jobs: int | None = None,
) -> HeldOut:
    """Draw a number or a share of the rows.

    Up to a million rows they are those of scikit-learn's ``train_test_split`` with the seed `split_seed`, drawn class
    by class with `stratify`; beyond, those with the smallest priorities by `seed`. With `spare_single` classes of a
    single row are not drawn from, and where the draw is too small for one row of every class it is one without regard
    to them; otherwise both are refused.
    """
    if isinstance(data, DaskData):
        engine.row_starts(data)  # counts the rows
    n, targets = data.n_rows, None
    if n is None or (stratify and n <= SPLIT_ROWS):
        targets = _targets(data, n_jobs)
        n = len(targets)
    whole = isinstance(asked, numbers.Integral)
    size = int(asked) if whole else int(np.ceil(asked * n))
    if size >= n:
        raise ParameterError(
            f"validation_fraction={asked:g} leaves none of {n} rows to learn from; give X_val and y_val"
        )
    if n > SPLIT_ROWS:
        return HeldOut(n, size, None, seed, priority_limit(n, size, seed))
    rows, classes = np.arange(n), targets if stratify else None
    if spare_single and classes is not None:
        _, place, counts = np.unique(classes, return_inverse=True, return_counts=True)
        rows = rows[counts[place] > 1]
        size, several = min(size, max(len(rows) - 1, 0)), np.count_nonzero(counts > 1)
        # Rows of every class on both sides, where there are enough.
        classes = classes[rows] if several <= min(size, len(rows) - size) else None
    if not size:
        raise ParameterError(f"validation_fraction={asked:g}: every class has a single row; give X_val and y_val")
    try:
        _, held = train_test_split(rows, test_size=size, random_state=split_seed, stratify=classes)
    except ValueError as error:
        raise DataError(
            f"y: {error} The rows of the validation set are drawn class by class, here by numbers of classes; give "
            f"X_val and y_val, or another validation_fraction than {asked:g}"
        ) from None
    return HeldOut(n, size, np.sort(held))


def _targets(data: Data, n_jobs: int | None) -> np.ndarray:
    if isinstance(data, ArrayData):
        return np.asarray(data.y)
    return np.asarray(engine.map(_of_batch, data, n_jobs=n_jobs))


def _of_batch(batch: Batch) -> np.ndarray:
    return np.asarray(batch.y, np.float64)


# Validation sets of boosting: their loss after every round.


class Validation(ABC):
    """The validation set, in memory or in partitions, and its mean loss after the last round."""

    loss_now: float

    @abstractmethod
    def add(self, trees: list[tuple[GrownTree, np.ndarray]]) -> float:
        """Add the trees of one round, and return the mean loss after it."""


class MemoryValidation(Validation):
    """A validation set in memory: binned rows (n, p) with targets and weights, and their scores (K, n)."""

    which: np.ndarray  # the rows, of those of the fit

    def __init__(self, rows: np.ndarray, y: np.ndarray, weight: np.ndarray | None, loss: BoostingLoss) -> None:
        self.rows, self.y, self.weight, self.loss = np.ascontiguousarray(rows), np.ascontiguousarray(y), weight, loss
        self.score = np.empty((loss.n_outputs, len(y)))

    def begin(self, score: np.ndarray) -> None:
        """Set the scores before the first round."""
        self.score[:] = score.reshape(len(self.score), -1)
        self.loss_now = self._mean()

    def _mean(self) -> float:
        total = float(len(self.y) if self.weight is None else self.weight.sum())
        return self.loss.evaluate(self.y, self.weight, self.score, None, 1).loss / max(total, np.finfo(float).tiny)

    def add(self, trees: list[tuple[GrownTree, np.ndarray]]) -> float:
        for k, (tree, value) in enumerate(trees):
            _native.tree.predict_bins(
                self.rows, tree.feature, tree.left, tree.sides.reshape(-1, 4), value, self.score[k], 1
            )
        self.loss_now = self._mean()
        return self.loss_now
