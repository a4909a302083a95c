"""Checked rows, targets, weights and splits, the inputs of cross-validation."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    train_test_split,
)
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples, has_fit_parameter

from epicycle.core._exceptions import DataError, DataTypeError, ParameterError, ParameterTypeError
from epicycle.core._random import stream
from epicycle.data import Scan
from epicycle.data._target import as_weight

Split = tuple[np.ndarray, np.ndarray]

#: Docstring entries of the functions that fit models over folds.
CROSS_VALIDATION_DOCS = {
    "X": """X, y : array-like
    Rows and targets, in memory.""",
    "cv": """cv : int, splitter or splits, default={default}
    Number of folds, in random order, stratified for classifiers; or a splitter of scikit-learn.""",
    "scoring": """scoring : str or callable, optional
    A scorer of scikit-learn, larger is better; by default accuracy or R2.""",
    "groups": """groups : array-like of shape (n,), optional
    Groups of rows; the rows of a group are never on both sides of a split.""",
    "ordered": """ordered : bool, default={default}
    Whether the rows are in order of time: every fold is then predicted from the rows before it.""",
    "sample_weight": """sample_weight : array-like of shape (n,), optional
    Weights of the rows in fits and scores.""",
    "n_jobs": """n_jobs : int, optional
    Number of threads; None uses all. The result does not depend on it.""",
    "random_state": """random_state : int, Generator, RandomState or None, default={default}
    Seed of the folds, of resampling, and of models whose own seed is None.""",
}


@dataclass(frozen=True)
class Rows:
    """Data in memory: X in any container that scikit-learn can index, y and weights as arrays."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None

    @property
    def n(self) -> int:
        return len(self.y)

    def part(self, rows: np.ndarray) -> Rows:
        weight = None if self.weight is None else self.weight[rows]
        groups = None if self.groups is None else self.groups[rows]
        return Rows(_safe_indexing(self.X, rows), self.y[rows], weight, groups)


def rows_ratio(splits: Sequence[Split]) -> float:
    """Test rows for every training row, on average over the splits."""
    return float(np.mean([len(test) / len(train) for train, test in splits]))


def checked_rows(X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Rows:
    """The arguments as :class:`Rows`; every error names the argument."""
    if isinstance(X, Scan) or hasattr(X, "dask"):
        raise DataTypeError(f"X: {type(X).__name__}; expected data in memory, which is split and fitted many times")
    if sp.issparse(X) and X.format not in ("csr", "csc"):
        X = X.tocsr()
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    if not hasattr(X, "shape") or len(X.shape) < 1:
        raise DataTypeError(f"X: {type(X).__name__}; expected an array, a sparse matrix or a data frame")
    target = np.asarray(y)
    if y is None or target.ndim == 0:
        raise DataTypeError(f"y={y!r:.40}; expected a target for every row")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    n = _num_samples(X)
    if len(target) != n:
        raise DataError(f"y: {len(target)} values; X has {n} rows")
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise DataError("y: contains NaN or infinity; expected finite numbers")
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (n,):
            raise DataError(f"groups: shape {groups.shape}; expected one group for each of {n} rows")
    return Rows(X, target, as_weight(sample_weight, n), groups)


def folds_of(rows: Rows, cv: Any, *, classifier: bool, ordered: bool = False, seed: int = 0) -> list[Split]:
    """The splits of `rows`: by a number of folds, a splitter of scikit-learn, or the splits themselves.

    A number gives folds in random order: stratified for classifiers, with the rows of a group in one fold; with
    `ordered` each fold is predicted from the rows before it.
    """
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        splitter = _splitter(rows, int(cv), classifier, ordered, seed)
    elif hasattr(cv, "split") and not isinstance(cv, str | bytes):
        splitter = cv
    elif isinstance(cv, Iterable) and not isinstance(cv, str | bytes):
        splits = [(np.asarray(train), np.asarray(test)) for train, test in cv]
        return _checked(splits, rows.n)
    else:
        raise ParameterTypeError(f"cv={cv!r:.60}; expected a number of folds, a splitter of scikit-learn or splits")
    try:
        splits = list(splitter.split(rows.X if sp.issparse(rows.X) else np.empty((rows.n, 1)), rows.y, rows.groups))
    except ValueError as error:
        raise DataError(f"cv={cv!r:.60}: {error}") from None
    return _checked(splits, rows.n)


def _splitter(rows: Rows, k: int, classifier: bool, ordered: bool, seed: int) -> Any:
    if k < 2:
        raise ParameterError(f"cv={k}; expected at least 2 folds")
    if rows.n < k:
        raise DataError(f"X: {rows.n} sample{'s' if rows.n != 1 else ''}; expected at least as many as folds, cv={k}")
    if ordered:
        if rows.groups is not None:
            raise ParameterError("groups: expected none with ordered=True; give cv a splitter that does both")
        if rows.n < k + 1:
            raise DataError(f"X: {rows.n} samples; ordered folds need at least cv + 1 = {k + 1}")
        return TimeSeriesSplit(k)
    # A stream of its own: folds do not change when other parts draw more numbers.
    state = int(stream(seed, "folds").integers(2**31))
    labels = classifier and type_of_target(rows.y) in ("binary", "multiclass")
    if rows.groups is not None:
        if (n_groups := len(np.unique(rows.groups))) < k:
            raise DataError(f"groups: {n_groups} different groups; expected at least as many as folds, cv={k}")
        return (StratifiedGroupKFold if labels else GroupKFold)(k, shuffle=True, random_state=state)
    # Stratified folds need k rows of every class.
    if labels and np.unique(rows.y, return_counts=True)[1].min() >= k:
        return StratifiedKFold(k, shuffle=True, random_state=state)
    return KFold(k, shuffle=True, random_state=state)


def _checked(splits: list[Split], n: int) -> list[Split]:
    out = []
    for train, test in splits:
        train, test = (np.flatnonzero(part) if part.dtype == bool else part for part in (train, test))
        if len(train) == 0 or len(test) == 0:
            raise DataError("cv: a split has no rows to train on, or none to test on")
        if min(train.min(), test.min()) < 0 or max(train.max(), test.max()) >= n:
            raise DataError(f"cv: a split names rows beyond the {n} of X")
        out.append((train, test))
    if not out:
        raise DataError("cv: gives no splits")
    return out


def held_out_part(rows: Rows, size: float, *, classifier: bool, ordered: bool, seed: int) -> Split:
    """One split: the share `size` of the rows is held out, at random, by groups, or the last ones."""
    if not isinstance(size, numbers.Real) or isinstance(size, bool) or not 0 < size < 1:
        raise ParameterError(f"test_size={size!r}; expected a share between 0 and 1")
    n = rows.n
    if n < 2:
        raise DataError(f"X: {n} sample; expected at least 2, one to train on and one to test on")
    if ordered:
        n_train = min(max(n - round(n * float(size)), 1), n - 1)
        return np.arange(n_train), np.arange(n_train, n)
    state = int(stream(seed, "held out").integers(2**31))
    if rows.groups is not None:
        names = np.unique(rows.groups)
        if len(names) < 2:
            raise DataError("groups: one group only; expected at least 2, one to train on and one to test on")
        chosen = train_test_split(names, test_size=float(size), random_state=state)[1]
        inside = np.isin(rows.groups, chosen)
        return np.flatnonzero(~inside), np.flatnonzero(inside)
    labels = None
    if classifier and type_of_target(rows.y) in ("binary", "multiclass"):
        classes, counts = np.unique(rows.y, return_counts=True)
        held = round(n * float(size))
        labels = rows.y if counts.min() >= 2 and len(classes) <= min(held, n - held) else None
    train, test = train_test_split(np.arange(n), test_size=float(size), random_state=state, stratify=labels)
    return np.sort(train), np.sort(test)


def seeded(estimator: Any, seed: int) -> Any:
    """A clone in which every `random_state` that is None is derived from `seed`."""
    copy = clone(estimator)
    open_states = {
        name: int(stream(seed, name).integers(2**31))
        for name, value in sorted(copy.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return copy.set_params(**open_states) if open_states else copy


def check_weights_taken(name: str, estimator: Any) -> None:
    """Refuse weights for an estimator whose `fit` takes none."""
    final = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if not has_fit_parameter(final, "sample_weight"):
        raise ParameterError(f"sample_weight: {name} ({type(final).__name__}) takes none")


def check_model(model: Any, rows: Rows) -> None:
    """Refuse a model that cannot be fitted, or not with these weights."""
    if not hasattr(model, "fit") or isinstance(model, type):
        raise ParameterTypeError(f"model={model!r:.60}; expected an estimator")
    if rows.weight is not None:
        check_weights_taken("model", model)


def weights_for(estimator: Any, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Keyword argument of `fit` for the weights; a pipeline passes them to its last step."""
    if weight is None:
        return {}
    if hasattr(estimator, "steps"):
        return {f"{estimator.steps[-1][0]}__sample_weight": weight}
    return {"sample_weight": weight}


def take(X: Any, columns: np.ndarray) -> Any:
    """Columns of X in its own container."""
    if isinstance(X, np.ndarray):
        return X[:, columns]
    return _safe_indexing(X, columns, axis=1)
