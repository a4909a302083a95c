"""Covariances of least-squares coefficients that hold under weaker assumptions than equal variances.

With z = (x - mean, 1), scores s_i = w_i r_i z_i and bread B = (sum_i w_i z_i z_i')^-1, all of them are B M B with

    HC0      M = sum_i s_i s_i'                            (White 1980); HC1 is n/(n-d) times that
    HC2, HC3 M = sum_i s_i s_i' / (1 - h_i)^m, m = 1, 2    with the leverages h_i (MacKinnon and White 1985)
    cluster  M = sum_g S_g S_g',  S_g = sum of s_i in g    any dependence within groups (Liang and Zeger 1986)
    HAC      M = sum_l k_l sum_i (s_i s_{i-l}' + ...)      k_l = 1 - l/(L+1) in the order of rows (Newey and West 1987)

M is a sum over rows, so files and partitions serve as well as arrays; only HAC needs the rows in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native, engine
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.data import Batch, DaskData, Data, as_data
from epicycle.data._dask_data import is_dask
from epicycle.stats._moments import target_columns

COVARIANCES = ("nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster", "HAC")
_POWER = {"HC0": 0, "HC1": 0, "HC2": 1, "HC3": 2}


@dataclass(frozen=True)
class Frame:
    """The fit of least squares: residuals are y - level - (x - mean)'coef.

    mean : of the features, of shape (p,); zeros without an intercept.
    coef, level : of shape (p, k) and (k,).
    root : A of shape (p, rank) with A A' = (X'WX)^- about the mean.
    weight : total weight; 0 stands for no intercept.
    """

    mean: np.ndarray
    coef: np.ndarray
    level: np.ndarray
    root: np.ndarray
    weight: float

    @property
    def intercept(self) -> bool:
        return self.weight > 0

    @property
    def whole_root(self) -> np.ndarray:
        """A with A A' = B, for z = (x - mean, 1)."""
        if not self.intercept:
            return self.root
        p, r = self.root.shape
        A = np.zeros((p + 1, r + 1))
        A[:p, :r], A[p, r] = self.root, 1 / np.sqrt(self.weight)
        return A

    def residuals(self, batch: Batch) -> np.ndarray:
        """Of shape (n, k)."""
        y = target_columns(batch.y)
        return np.asarray(y - self.level - self.centred_times(batch.X, self.coef))

    def residual(self, batch: Batch, target: int) -> np.ndarray:
        """Of one target, of shape (n,)."""
        y = batch.y if batch.y.ndim == 1 else batch.y[:, target]
        return np.asarray(y - self.level[target] - self.centred_times(batch.X, self.coef[:, target]))

    def leverages(self, batch: Batch) -> np.ndarray:
        """z'Bz for every row, without its weight."""
        Z = self.rotated(batch)
        h = np.einsum("ij,ij->i", Z, Z)
        return np.asarray(h + 1 / self.weight if self.intercept else h)

    def rotated(self, batch: Batch) -> np.ndarray:
        """A'(x - mean) of every row."""
        return self.centred_times(batch.X, self.root)

    def centred_times(self, X: Any, A: np.ndarray) -> np.ndarray:
        """(X - mean) A; sparse rows are not made dense."""
        return np.asarray(np.asarray(X @ A) - self.mean @ A if sp.issparse(X) else (X - self.mean) @ A)

    def design(self, batch: Batch) -> np.ndarray:
        """z of every row, dense."""
        X = batch.X.toarray() if sp.issparse(batch.X) else batch.X
        Z = X - self.mean
        return np.column_stack([Z, np.ones(len(Z))]) if self.intercept else Z

    def score(self, batch: Batch, target: int) -> np.ndarray:
        """w_i r_i z_i, of shape (n, d)."""
        r = self.residual(batch, target)
        return np.asarray(self.design(batch) * (r if batch.weight is None else r * batch.weight)[:, None])


@dataclass(frozen=True)
class Groups:
    """The group of every row: codes 0 .. count-1, or a Dask array of numbers."""

    codes: Any
    count: int | None


def groups_of(groups: Any, data: Data) -> Groups:
    """Check `groups` against the rows."""
    if groups is None:
        raise DataError("groups: cov_type='cluster' needs them, one label for each row: fit(X, y, groups=...)")
    if isinstance(data, DaskData):
        if not is_dask(groups) or getattr(groups, "ndim", 0) != 1:
            raise DataTypeError("groups: X is a Dask collection; expected a Dask array of numbers with its partitions")
        return Groups(groups, None)
    if is_dask(groups):
        raise DataTypeError("groups: is a Dask collection, X is not; compute() it first")
    try:
        labels = np.asarray(groups)
        if labels.ndim != 1:
            raise DataError(f"groups: expected one label for each row, got shape {labels.shape}")
        values, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataTypeError("groups: expected labels of one kind, numbers or strings") from None
    n = data.n_rows
    if n is not None and len(labels) != n:
        raise DataError(f"groups: has {len(labels)} labels, X has {n} rows")
    if len(values) < 2:
        raise DataError("groups: every row is in the same group; expected at least two")
    return Groups(codes.astype(np.int64), len(values))


@dataclass(frozen=True)
class Robust:
    """The covariance of (coef about the mean, level) for each target, of shape (k, d, d), and the number of groups."""

    covariance: np.ndarray
    n_groups: int | None = None


def robust_covariance(
    data: Data,
    frame: Frame,
    kind: str,
    *,
    n_rows: int,
    rank: int,
    groups: Groups | None = None,
    maxlags: int | None = None,
    use_correction: bool | None = None,
    n_jobs: int | None = None,
) -> Robust:
    """B M B in one pass (two over the blocks for several targets with HAC or groups)."""
    k = frame.coef.shape[1]
    n_groups: int | None = None
    factor = 1.0
    d = rank + int(frame.intercept)
    small = n_rows / max(n_rows - d, 1)
    meats: Any
    if kind == "cluster" and groups is not None:
        meats, counts = zip(*(_meat_of_groups(data, frame, groups, t, n_jobs) for t in range(k)), strict=True)
        n_groups = int(counts[0])
        if n_groups < 2:
            raise DataError("groups: every row is in the same group; expected at least two")
        if use_correction is not False:
            factor = n_groups / (n_groups - 1) * (n_rows - 1) / max(n_rows - d, 1)
    elif kind == "HAC":
        meats = tuple(_meat_of_lags(data, frame, lags_of(maxlags, n_rows), t) for t in range(k))
        factor = small if use_correction else 1.0
    else:
        meats = engine.sum(hc_statistic, data, frame, _POWER[kind], n_jobs=n_jobs)
        factor = small if kind == "HC1" else 1.0
    A = frame.whole_root
    covariances = []
    for meat in meats:
        inner = A.T @ meat @ A
        covariances.append(factor * (A @ inner @ A.T))
    return Robust(np.array(covariances), n_groups)


def lags_of(maxlags: int | None, n_rows: int) -> int:
    """The number of lags; 4 (n/100)^(2/9), rounded down, where none is given."""
    lags = int(4 * (n_rows / 100) ** (2 / 9)) if maxlags is None else maxlags
    if lags >= n_rows:
        raise ParameterError(f"maxlags={maxlags}: there are {n_rows} rows; expected fewer lags than that")
    return lags


def hc_statistic(batch: Batch, frame: Frame, power: int) -> tuple[np.ndarray, ...]:
    """M of every target."""
    r = frame.residuals(batch)
    w = batch.weight
    squares = r * r if w is None else (r * w[:, None]) ** 2
    if power:
        h = frame.leverages(batch)
        free = 1 - (h if w is None else h * w)
        # A row that fits itself alone has no residual, and adds nothing.
        squares = np.where(free > 1e-10, 1 / np.maximum(free, 1e-10) ** power, 0.0)[:, None] * squares
    return tuple(_weighted_moments(batch, np.ascontiguousarray(v), frame) for v in squares.T)


def _weighted_moments(batch: Batch, weight: np.ndarray, frame: Frame) -> np.ndarray:
    """sum_i weight_i z_i z_i'."""
    p = batch.X.shape[1]
    nothing = np.zeros((batch.n_rows, 1))
    shift = np.zeros(p + 1) if sp.issparse(batch.X) else np.append(frame.mean, 0.0)
    M = _native.core.moments(batch.X, nothing, weight, shift)
    keep = [*range(p), p + 1] if frame.intercept else [*range(p)]
    M = M[np.ix_(keep, keep)]
    if sp.issparse(batch.X) and frame.intercept:  # from (x, 1) to (x - mean, 1)
        to_mean = np.eye(p + 1)
        to_mean[:p, p] = -frame.mean
        M = to_mean @ M @ to_mean.T
    return M


# ------------------------------------------------------------------------------------------------ groups


def _meat_of_groups(
    data: Data, frame: Frame, groups: Groups, target: int, n_jobs: int | None
) -> tuple[np.ndarray, int]:
    """(sum_g S_g S_g', number of groups of positive weight)."""
    if isinstance(data, DaskData):
        (sums,) = engine.sum(group_statistic, data, frame, target, n_jobs=n_jobs)
        return sums.sums.T @ sums.sums, len(sums.labels)
    d = len(frame.mean) + int(frame.intercept)
    count: Any = groups.count  # known for all but Dask arrays
    sums, seen = np.zeros((count, d)), np.zeros(count, dtype=bool)
    for batch in data.batches():
        codes = groups.codes[batch.start : batch.start + batch.n_rows]
        if len(codes) != batch.n_rows:
            raise DataError(f"groups: has {len(groups.codes)} labels, X has more rows")
        labels, added = _summed(codes, frame.score(batch, target))
        sums[labels] += added
        seen[codes if batch.weight is None else codes[batch.weight > 0]] = True
    return sums.T @ sums, int(seen.sum())


def _summed(codes: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct codes, sum of the rows of each)."""
    labels, place = np.unique(codes, return_inverse=True)
    n = len(codes)
    member = sp.csr_array((np.ones(n), (place, np.arange(n))), shape=(len(labels), n))
    return labels, member @ rows


@dataclass(frozen=True)
class GroupSums:
    """Sums by label; two add up label by label."""

    labels: np.ndarray
    sums: np.ndarray

    def __add__(self, other: GroupSums) -> GroupSums:
        return GroupSums(*_summed(np.concatenate([self.labels, other.labels]), np.vstack([self.sums, other.sums])))


def group_statistic(batch: Batch, frame: Frame, target: int) -> tuple[GroupSums]:
    """The label of a row is the last column of its targets."""
    labels, y = batch.y[:, -1], batch.y[:, :-1]
    kept = np.ones(batch.n_rows, bool) if batch.weight is None else batch.weight > 0
    scores = frame.score(Batch(batch.X, y, batch.weight, batch.start), target)
    return (GroupSums(*_summed(labels[kept], scores[kept])),)


# ------------------------------------------------------------------------------------------------ lags


def _meat_of_lags(data: Data, frame: Frame, lags: int, target: int) -> np.ndarray:
    """sum_i s_i s_i' + s_i f_i' + f_i s_i' with f_i = sum_l k_l s_{i-l}; the last rows of a block go into the next."""
    d = len(frame.mean) + int(frame.intercept)
    M, tail = np.zeros((d, d)), np.zeros((0, d))
    kernel = 1 - np.arange(1, lags + 1) / (lags + 1)
    for batch in data.batches():
        s = frame.score(batch, target)
        before = np.vstack([np.zeros((lags - len(tail), d)), tail, s])  # row i of s is row i + lags here
        f = np.zeros_like(s)
        for lag, share in enumerate(kernel, start=1):
            f += share * before[lags - lag : lags - lag + len(s)]
        cross = s.T @ f
        M += s.T @ s + cross + cross.T
        tail = before[len(before) - lags :]
    return M


def refuse_unordered(data: Data) -> None:
    """Raise before any work where rows cannot be read in their order."""
    if isinstance(data, DaskData):
        raise DataError(
            "cov_type='HAC' needs the rows in order, one block after the other, which the partitions of a Dask "
            "collection are not read in; fit from memory or files, or use cov_type='cluster'"
        )


def with_groups(X: Any, y: Any, sample_weight: Any, groups: Groups) -> Data:
    """A Dask collection with the groups as one more target, so that they are where the rows are."""
    import dask.array as da

    targets = y.to_dask_array(lengths=True) if hasattr(y, "to_dask_array") else y
    columns = [target_columns(targets), groups.codes[:, None].astype(np.float64)]
    both = da.concatenate(columns, axis=1).rechunk({1: -1})
    return as_data(X, both, sample_weight, target="numeric", multi_output=True, estimator_name="LinearRegression")
