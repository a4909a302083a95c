"""Second moments of (x, y): the sufficient statistic of least squares.

With z_i = (x_i - s_x, y_i - s_y, 1) for a fixed shift s near the mean, M = sum_i w_i z_i z_i' holds X'WX, X'WY, Y'WY,
all sums and the total weight, and adds up over batches. The shift keeps it exact for data far from the origin. Where
the second moments lose too many digits, the triangular factor of the same rows takes over: it adds up as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from epicycle import _native, engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.data import ArrayData, Batch, Data
from epicycle.data._numbers import require_finite


def shift_of(data: Data, *, targets: bool = True) -> np.ndarray:
    """A point near the mean of (x, y), from the first rows. Sparse features are not shifted: most of them are zero."""
    head = data.head()
    x = np.zeros(data.n_features) if data.sparse else np.asarray(head.X.mean(axis=0, dtype=np.float64))
    if not targets:
        return x
    return np.concatenate([x, target_columns(head.y).mean(axis=0)])


def target_columns(y: np.ndarray) -> np.ndarray:
    """Targets of shape (n, k), also where there is one."""
    return y[:, None] if y.ndim == 1 else y


def moment_statistic(batch: Batch, shift: np.ndarray) -> tuple[np.ndarray, int, float]:
    """(M, number of rows of positive weight, sum of the logarithms of their weights)."""
    Y = target_columns(batch.y)
    return _native.core.moments(batch.X, Y, batch.weight, shift), *_counted(batch)


def _counted(batch: Batch) -> tuple[int, float]:
    if batch.weight is None:
        return batch.n_rows, 0.0
    positive = batch.weight[batch.weight > 0]
    return len(positive), float(np.log(positive).sum())


@dataclass(frozen=True)
class Moments:
    """M around `shift`, from `n_rows` rows, for `p` features and `k` targets; `log_weight` sums log w_i."""

    M: np.ndarray
    shift: np.ndarray
    n_rows: int
    p: int
    log_weight: float = 0.0

    def __add__(self, other: Moments) -> Moments:
        if not np.array_equal(self.shift, other.shift):
            raise ValueError("moments around different shifts do not add up")
        n, logs = self.n_rows + other.n_rows, self.log_weight + other.log_weight
        return Moments(self.M + other.M, self.shift, n, self.p, logs)

    @property
    def weight(self) -> float:
        """Total weight."""
        return float(self.M[-1, -1])

    @property
    def mean(self) -> np.ndarray:
        """Weighted mean of (x, y)."""
        return self.shift + self.M[-1, :-1] / self.weight

    def about_mean(self) -> np.ndarray:
        """sum_i w_i (z_i - mean)(z_i - mean)', over (x, y)."""
        s = self.M[-1, :-1]
        return self.M[:-1, :-1] - np.outer(s, s) / self.weight

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of the columns of (x, y) about the shift: what the rounding of the moments is relative to."""
        return np.asarray(np.sqrt(np.diagonal(self.M)[:-1]))

    def about_zero(self) -> np.ndarray:
        """sum_i w_i z_i z_i', over (x, y)."""
        s, c = self.M[-1, :-1], self.shift
        return self.M[:-1, :-1] + np.outer(s, c) + np.outer(c, s) + self.weight * np.outer(c, c)


def refuse_non_finite(data: Data) -> None:
    """Raise if an array has NaN or infinity in it; files and partitions are checked as they are read."""
    if isinstance(data, ArrayData):
        if data.sparse:
            require_finite(np.asarray(data.X.data), "X", estimator_name="epicycle", unit="stored entry")
        else:
            require_finite(data.X, "X", columns=data.feature_names, estimator_name="epicycle")


def moments_of(data: Data, shift: np.ndarray, n_jobs: int | None = None) -> Moments:
    """The moments of all rows: one pass."""
    d = len(shift) + 1
    require_memory(8.0 * d * d * 5, f"the {d} x {d} second moments", "name an iterative solver such as 'lbfgs' or 'cg'")
    M, n, log_weight = engine.sum(moment_statistic, data, shift, n_jobs=n_jobs)
    if not np.isfinite(M).all():  # the sums have seen every element: that is the check of X
        refuse_non_finite(data)
        raise DataError("X: sums of squares of its columns (or of y) overflow; scale them down")
    return Moments(M, shift, n, data.n_features, log_weight)


def moments_about(data: Data, shift: np.ndarray, n_jobs: int | None = None) -> Moments:
    """The moments of all rows around any point: those of sparse features are summed about the origin, then moved there.

    With delta = s - s', the rows (z - s', 1) are A (z - s, 1) for A = [[I, delta], [0, 1]], so that M' = A M A'.
    """
    own = shift.copy()
    if data.sparse:
        own[: data.n_features] = 0.0
    moments = moments_of(data, own, n_jobs)
    if np.array_equal(own, shift):
        return moments
    A = np.eye(len(moments.M))
    A[:-1, -1] = own - shift
    return Moments(A @ moments.M @ A.T, shift, moments.n_rows, moments.p, moments.log_weight)


def _rows(batch: Batch, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets of a batch, shifted, dense and in float64."""
    p = batch.X.shape[1]
    X = batch.X.toarray() if sp.issparse(batch.X) else batch.X
    Y = np.empty((len(X), 0)) if batch.y is None else target_columns(batch.y)
    return X - shift[:p], Y - shift[p:]


@dataclass(frozen=True)
class TriangularFactor:
    """R of the QR factorisation of the rows sqrt(w) (1, x - s_x, y - s_y); two add up by factorising their stack."""

    R: np.ndarray

    def __add__(self, other: TriangularFactor) -> TriangularFactor:
        return TriangularFactor(_triangle(np.vstack([self.R, other.R])))


def _triangle(A: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.linalg.qr(A, mode="r", overwrite_a=True, check_finite=False)[0][: min(A.shape)])


def factor_statistic(batch: Batch, shift: np.ndarray, intercept: bool) -> tuple[TriangularFactor, float, int, float]:
    """(factor, total weight, number of rows of positive weight, sum of the logarithms of their weights)."""
    X, Y = _rows(batch, shift)
    ones = np.ones((len(X), 1)) if intercept else np.empty((len(X), 0))
    A = np.hstack([ones, X, Y])
    if batch.weight is None:
        return TriangularFactor(_triangle(A)), float(len(X)), len(X), 0.0
    A *= np.sqrt(batch.weight)[:, None]
    return TriangularFactor(_triangle(A)), float(batch.weight.sum()), *_counted(batch)


@dataclass(frozen=True)
class CentredFactor:
    """X'WX = R_x'R_x, X'WY = R_x'R_xy, Y'WY = R_xy'R_xy + R_y'R_y, about the mean (or zero without an intercept)."""

    R_x: np.ndarray
    R_xy: np.ndarray
    R_y: np.ndarray
    mean: np.ndarray
    weight: float
    n_rows: int
    log_weight: float = 0.0


def centred_factor(
    R: np.ndarray, shift: np.ndarray, p: int, weight: float, n_rows: int, log_weight: float = 0.0
) -> CentredFactor:
    """The factor about the mean, from that of the rows sqrt(w) (1, x - s, y - s); x has p columns."""
    mean, R = shift + R[0, 1:] / R[0, 0], R[1:, 1:].copy()
    # A column that is constant but for rounding carries no information.
    resolution = 16 * np.finfo(float).eps * np.sqrt(weight) * np.maximum(np.abs(shift), np.abs(mean - shift))
    R[:, np.linalg.norm(R, axis=0) <= resolution] = 0.0
    r = min(len(R), p)
    return CentredFactor(R[:r, :p], R[:r, p:], R[r:, p:], mean, weight, n_rows, log_weight)


def triangular_factor_of(data: Data, shift: np.ndarray, *, intercept: bool, n_jobs: int | None = None) -> CentredFactor:
    """The factor of all rows: one pass."""
    factor, weight, n, log_weight = engine.sum(factor_statistic, data, shift, intercept, n_jobs=n_jobs)
    R, p = factor.R, data.n_features
    if intercept:
        return centred_factor(R, shift, p, weight, n, log_weight)
    r = min(len(R), p)
    return CentredFactor(R[:r, :p], R[:r, p:], R[r:, p:], shift.copy(), weight, n, log_weight)


def gradient_statistic(
    batch: Batch, shift: np.ndarray, coef: np.ndarray, offset: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if sp.issparse(batch.X):
        residual = target_columns(batch.y) - shift[batch.X.shape[1] :] - batch.X @ coef - offset
        r = residual if batch.weight is None else residual * batch.weight[:, None]
        return np.asarray(batch.X.T @ r), r.sum(axis=0)
    X, Y = _rows(batch, shift)
    residual = Y - X @ coef - offset
    r = residual if batch.weight is None else residual * batch.weight[:, None]
    return X.T @ r, r.sum(axis=0)


def gradient_at(
    data: Data, shift: np.ndarray, coef: np.ndarray, offset: np.ndarray, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(sum_i w_i (x_i - s_x) r_i', sum_i w_i r_i) with r_i = (y_i - s_y) - (x_i - s_x)'coef - offset: one pass."""
    return engine.sum(gradient_statistic, data, shift, coef, offset, n_jobs=n_jobs)
