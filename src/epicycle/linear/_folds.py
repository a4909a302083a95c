"""Folds of cross-validation, in memory and by second moments where the rows are not.

In memory a fold is trained on the whole matrix with weight zero on the rows that are left out, so that no rows are
copied. Where the rows are not in memory, everything comes from second moments. Rows that are in the training and test
sets of the same folds form a cell: k of them where k folds are disjoint. One pass adds the second moments up cell by
cell. A fold is trained on the sum of its cells, and its error on others is a quadratic form of theirs: with
z = (x - s_x, y - s_y, 1) and M = sum_i v_i z_i z_i', the residual y - b - w'x is u'z for
u = (-w, 1, s_y - w's_x - b), so that the mean square is u'Mu / sum_i v_i.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn
from sklearn.model_selection import BaseCrossValidator, KFold, check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from epicycle import engine
from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._settings import get_config
from epicycle.data import ArrayData, Batch, DaskData, Data
from epicycle.stats._moments import Moments, moment_statistic, shift_of


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to test on."""

    train: np.ndarray
    test: np.ndarray


class RoutesToSplitter:
    """Arguments of `fit` that go to the splitter of `cv`, such as `groups`, by scikit-learn's metadata routing."""

    _docs: ClassVar[Mapping[str, str]] = {
        "cv": "cv : int, splitter or iterable of (train, test), optional\n"
        "    Folds, as for scikit-learn; five by default.",
        "params": "**params : dict\n"
        "    Arguments of the splitter, such as `groups`, with scikit-learn's metadata routing enabled.",
    }

    cv: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """Which arguments of `fit` go where."""
        routes = MethodMapping().add(caller="fit", callee="split")
        splitter = check_cv(self.cv, classifier=False)
        return MetadataRouter(owner=self).add_self_request(self).add(splitter=splitter, method_mapping=routes)

    def _split_arguments(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that go to the splitter."""
        if not params:
            return {}
        if not sklearn.get_config().get("enable_metadata_routing", False):
            raise ParameterError(
                f"{type(self).__name__}.fit: passing {sorted(params)} is only supported if enable_metadata_routing=True"
                " in scikit-learn's configuration"
            )
        return dict(process_routing(self, "fit", **params).splitter.split)


def folds_of(
    cv: Any, data: Data, labels: np.ndarray | None = None, *, arguments: Mapping[str, Any] | None = None
) -> list[Fold]:
    """The folds that `cv` makes of rows, as scikit-learn reads it for regressors, or for given labels."""
    y: Any = data.y if labels is None and isinstance(data, ArrayData) else labels
    weight = data.weight if isinstance(data, ArrayData) else None
    try:
        splitter = check_cv(cv, y, classifier=labels is not None)
        split = splitter.split(np.empty((len(y), 0)), y, **(arguments or {}))
        folds = [Fold(np.asarray(a), np.asarray(b)) for a, b in split]
    except (TypeError, ValueError) as error:
        raise ParameterError(f"cv={cv!r}: {error}") from None
    if any(weight is not None and not weight[fold.train].any() for fold in folds):
        raise DataError("sample_weight: all rows that a fold is trained on have weight zero")
    return folds


def report_folds(model: Any, failed: int, rounds: str, remedy: str) -> None:
    """Name solutions of the folds that fell short; the fit to all rows speaks for itself."""
    message = (
        f"{type(model).__name__}: {failed} solutions of the cross-validation did not reach tol={model.tol:g} in "
        f"max_iter={model.max_iter} {rounds}; raise max_iter, {remedy}."
    )
    mode = get_config().on_nonconvergence
    if mode == "raise":
        raise ConvergenceError(message)
    if mode == "warn":
        model._run.warning = f"{model._run.warning} {message}".strip()


def training_weights(data: ArrayData, fold: Fold) -> np.ndarray:
    """Weights of all rows in the training of a fold: zero on those that are left out."""
    weight = np.zeros(data.n_rows)
    np.add.at(weight, fold.train, 1.0)  # a row may be drawn several times
    if data.weight is not None:
        weight *= data.weight
    return weight


# ------------------------------------------------------------------------------------------------ rows not in memory


@dataclass(frozen=True)
class Cells:
    """Runs of consecutive rows of one cell each, and how often each cell is in the training and test sets of folds.

    starts, codes : first row and cell of every run.
    train, test : arrays of shape (n_folds, n_cells).
    """

    starts: np.ndarray
    codes: np.ndarray
    train: np.ndarray
    test: np.ndarray

    @classmethod
    def of_splitter(cls, splitter: BaseCrossValidator, n_rows: int) -> Cells:
        """The cells of a splitter, which gets to know the number of rows and nothing else."""
        if isinstance(splitter, KFold) and not splitter.shuffle and n_rows >= splitter.n_splits:
            k = splitter.n_splits
            sizes = np.full(k, n_rows // k)
            sizes[: n_rows % k] += 1
            own = np.eye(k)
            return cls(np.concatenate([[0], np.cumsum(sizes)[:-1]]), np.arange(k), 1 - own, own)
        folds = [Fold(np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.empty((n_rows, 0)))]
        return cls.of_folds(folds, n_rows)

    @classmethod
    def of_folds(cls, folds: Sequence[Fold], n_rows: int) -> Cells:
        """The cells of given folds."""
        cell, members = np.zeros(n_rows, dtype=np.int64), np.empty((1, 0))
        for rows in [part for fold in folds for part in (fold.train, fold.test)]:
            times = np.bincount(rows, minlength=n_rows)
            key, cell = np.unique(cell * (times.max() + 1) + times, return_inverse=True)
            before, last = np.divmod(key, times.max() + 1)
            members = np.column_stack([members[before], last])
        change = np.flatnonzero(np.concatenate([[True], cell[1:] != cell[:-1]]))
        return cls(change, cell[change], members[:, ::2].T, members[:, 1::2].T)

    @property
    def n(self) -> int:
        """Number of cells."""
        return int(self.train.shape[1])

    def of_rows(self, first: int, count: int) -> np.ndarray:
        """The cell of each of so many rows."""
        return self.codes[np.searchsorted(self.starts, np.arange(first, first + count), side="right") - 1]


@dataclass(frozen=True)
class CellSums:
    """Second moments and numbers of rows, by cell."""

    moments: dict[int, tuple[np.ndarray, int]]

    def __add__(self, other: CellSums) -> CellSums:
        total = dict(self.moments)
        for cell, (M, n) in other.moments.items():
            total[cell] = (total[cell][0] + M, total[cell][1] + n) if cell in total else (M, n)
        return CellSums(total)


def cell_statistic(batch: Batch, shift: np.ndarray, cells: Cells) -> tuple[CellSums]:
    """Second moments of the cells that a batch has rows of."""
    code = cells.of_rows(batch.start, batch.n_rows)
    sums = {}
    for cell in np.unique(code):
        rows = np.flatnonzero(code == cell)
        part = batch
        if len(rows) < len(code):
            chosen = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else rows
            weight = None if batch.weight is None else batch.weight[chosen]
            part = Batch(batch.X[chosen], None if batch.y is None else batch.y[chosen], weight, batch.start)
        sums[int(cell)] = moment_statistic(part, shift)[:2]
    return (CellSums(sums),)


def count_statistic(batch: Batch) -> tuple[int]:
    return (batch.n_rows,)


def count_rows(data: Data) -> int:
    """The number of rows; a pass where nobody knows it yet."""
    if isinstance(data, DaskData) and data.sizes is None:
        from dask import compute, delayed

        # The engine numbers rows by the sizes of the partitions before them.
        data.sizes = [int(n) for n in compute(*(delayed(_rows_of_part, pure=False)(part) for part in data.parts))]
    if data.n_rows is not None:
        return data.n_rows
    return int(engine.sum(count_statistic, data)[0])


def _rows_of_part(part: Data) -> int:
    return part.n_rows or 0


def cells_of(cv: Any, data: Data) -> Cells:
    """The folds of rows that are not in memory, by their numbers."""
    n = count_rows(data)
    try:
        return Cells.of_splitter(check_cv(cv, None, classifier=False), n)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"cv={cv!r}: {error}") from None


def cell_moments(data: Data, cells: Cells, *, centre: bool, n_jobs: int | None) -> list[Moments]:
    """The moments of every cell around one point near the mean: one pass, or two where the first rows mislead."""
    d = data.n_features + data.n_targets + 1
    require_memory(8.0 * d * d * (2 * cells.n + 4), f"{cells.n} times the {d} x {d} second moments", "use fewer folds")
    shift = shift_of(data) if centre else np.zeros(d - 1)
    parts = _pass(data, cells, shift, n_jobs)
    total = sum_of_cells(parts, np.ones(cells.n))
    if centre and not data.sparse and total.weight > 0:
        spread, about_shift = np.diagonal(total.about_mean()), np.diagonal(total.M)[:-1]
        if (spread < 1e-6 * about_shift).any() and not np.array_equal(total.mean, shift):
            parts = _pass(data, cells, total.mean, n_jobs)
    return parts


def _pass(data: Data, cells: Cells, shift: np.ndarray, n_jobs: int | None) -> list[Moments]:
    (sums,) = engine.sum(cell_statistic, data, shift, cells, n_jobs=n_jobs)
    d = len(shift) + 1
    nothing = (np.zeros((d, d)), 0)
    if not all(np.isfinite(M).all() for M, _ in sums.moments.values()):
        raise DataError("X: sums of squares of its columns (or of y) overflow; scale them down")
    return [Moments(M, shift, n, data.n_features) for M, n in (sums.moments.get(c, nothing) for c in range(cells.n))]


def sum_of_cells(parts: Sequence[Moments], times: np.ndarray) -> Moments:
    """The moments of cells together, each as often as `times` says."""
    M = sum((k * part.M for k, part in zip(times, parts, strict=True) if k), np.zeros_like(parts[0].M))
    n = int(sum(k * part.n_rows for k, part in zip(times, parts, strict=True)))
    return Moments(M, parts[0].shift, n, parts[0].p)


def mean_squares(test: Moments, W: np.ndarray, intercept: np.ndarray, target: int = 0) -> np.ndarray:
    """Mean squared errors u'Mu / sum_i v_i on a test set, for models in the rows of W of shape (m, p)."""
    p = test.p
    U = np.zeros((len(W), len(test.M)))
    U[:, :p], U[:, p + target] = -W, 1.0
    U[:, -1] = test.shift[p + target] - W @ test.shift[:p] - intercept
    squares = np.maximum(np.einsum("ai,ai->a", U @ test.M, U), 0.0)  # not below zero by rounding
    return np.asarray(squares / max(test.weight, np.finfo(float).tiny))
