"""A smoother: points with weights, a kernel and a rule for the bandwidth; evaluated anywhere, wherever the rows are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from epicycle import _native, engine
from epicycle.core._checks import as_floats
from epicycle.core._exceptions import ParameterError
from epicycle.core._threads import n_threads
from epicycle.data import ArrayData, Batch, Data


@dataclass(frozen=True)
class Smoother:
    """The points, weights and bandwidth of a local regression.

    root : the Cholesky factor of the metric, or None.
    targets, weights : of shape (n, k), column by column; weights include those of robust iterations.
    bandwidth : the distance h, or None where `span` decides.
    """

    points: Points
    root: np.ndarray | None
    targets: np.ndarray
    weights: np.ndarray
    bandwidth: float | None
    span: float
    kernel: str
    degree: int

    def radii(self, queries: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """The bandwidth at every query."""
        if self.bandwidth is not None:
            return np.full(len(queries), self.bandwidth)
        return self.points.radii(queries, self.span, n_jobs)

    def at(
        self, queries: np.ndarray, h: np.ndarray, target: int, *, squares: bool = False, n_jobs: int | None = None
    ) -> Answers:
        """The fit of one target at queries in the coordinates of the metric."""
        return smooth(
            self.points,
            self.targets[:, target],
            self.weights[:, target],
            queries,
            h,
            kernel=self.kernel,
            degree=self.degree,
            squares=squares,
            n_jobs=n_jobs,
        )

    def values(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """The fit of all targets at rows of X: shape (n, k), in float64."""
        queries = in_coordinates(X, self.root)
        h = self.radii(queries, n_jobs)
        return np.column_stack(
            [self.at(queries, h, t, n_jobs=n_jobs).value for t in range(self.targets.shape[1])],
        )


def predict_batch(batch: Batch, smoother: Smoother) -> np.ndarray:
    return smoother.values(np.asarray(batch.X), 1).astype(batch.X.dtype)


def predict_rows(data: Data, smoother: Smoother, n_jobs: int | None) -> Any:
    """The fit at all rows. In memory the threads share the queries, otherwise the batches."""
    if isinstance(data, ArrayData):
        return smoother.values(np.asarray(data.X), n_jobs).astype(data.dtype)
    return engine.map(predict_batch, data, smoother, n_jobs=n_jobs)


# --------------------------------------------------------------------------------------------------------------------
# The weight K(d) that a point at distance d, in units of the bandwidth, has in a local fit.


#: Names in the order in which the compiled code numbers them. All but the Gaussian, exp(-d^2 / 2), end at d = 1:
#: (1 - d^3)^3, 1 - d^2, (1 - d^2)^2, (1 - d^2)^3, 1 - d, and 1.
KERNELS = ("tricube", "epanechnikov", "biweight", "triweight", "triangular", "uniform", "gaussian")


# --------------------------------------------------------------------------------------------------------------------
# The distance |v|^2 = v'S^-1 v as an ordinary one, in the coordinates L^-1 v for S = L L'.


def root_of_metric(metric: Any, p: int) -> np.ndarray | None:
    """L, from a symmetric positive definite matrix S or its diagonal; None for the identity."""
    if metric is None:
        return None
    S = as_floats(metric, ParameterError(f"metric={metric!r:.80}; expected numbers"))
    if S.shape == (p,):
        S = np.diag(S)
    if S.shape != (p, p) or not np.isfinite(S).all() or not np.allclose(S, S.T, rtol=1e-10, atol=0):
        raise ParameterError(
            f"metric has shape {S.shape}; expected {p} positive numbers or a symmetric {p} x {p} matrix"
        )
    try:
        return np.asarray(scipy.linalg.cholesky(S, lower=True))
    except scipy.linalg.LinAlgError:
        raise ParameterError("metric is not positive definite: it gives no distance") from None


def in_coordinates(X: np.ndarray, root: np.ndarray | None) -> np.ndarray:
    """Rows of X in these coordinates, contiguous and in float64."""
    X = np.asarray(X, dtype=np.float64)
    if root is not None:
        X = scipy.linalg.solve_triangular(root, X.T, lower=True, check_finite=False).T
    return np.ascontiguousarray(X)


# --------------------------------------------------------------------------------------------------------------------
# The points of a local regression, and the fit at any query: a thin layer over the compiled code.
#
# At a query q the polynomial beta minimises  sum_j K(|x_j - q| / h) c_j (y_j - beta'phi((x_j - q) / h))^2,  and the
# fit is beta_0. The bandwidth h is fixed, or the distance within which a given share of the weight lies.


#: Multiply-adds in one call of the compiled code: a fraction of a second, so that Ctrl-C is noticed.
_WORK_PER_CALL = 2e8


@dataclass(frozen=True)
class Points:
    """Training points in the coordinates of the metric, sorted where there is one column, with their prior weights.

    weighted : whether the weights are other than ones.
    """

    x: np.ndarray
    weight: np.ndarray
    weighted: bool

    @property
    def n(self) -> int:
        return len(self.x)

    def share_of(self, span: float) -> float:
        """The weight of a neighbourhood, a share of all. Whole numbers as weights count rows, which come whole."""
        total = float(self.weight.sum())
        counts = not self.weighted or bool(np.array_equal(self.weight, np.round(self.weight)))
        return max(float(np.floor(span * total + 1e-10)), 1.0) if counts else span * total

    def radii(self, queries: np.ndarray, span: float, n_jobs: int | None) -> np.ndarray:
        """The distance from every query within which the share `span` of the weight lies."""
        share = self.share_of(span)
        if self.x.shape[1] == 1:
            upto = np.append(0.0, np.cumsum(self.weight)) if self.weighted else None
            threads = n_threads(50.0 * len(queries), n_jobs)
            return _native.local.line_radii(self.x[:, 0], upto, np.ascontiguousarray(queries[:, 0]), share, threads)
        work = 10.0 * self.x.size * len(queries)
        step = _step(len(queries), work)
        parts = [
            _native.local.space_radii(self.x, self.weight, queries[i : i + step], share, n_threads(work, n_jobs))
            for i in range(0, len(queries), step)
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class Answers:
    """The fit at every query.

    value : the fit.
    own : an observation at the query has the influence ``K(0) c own`` on it.
    squares : sums of l_j^2 / c_j, so that the variance is sigma^2 times this; zeros unless asked for.
    error : backward errors of the local normal equations.
    status : 0 as asked for, 1 flat in directions in which the neighbourhood does not extend, 2 the nearest points.
    """

    value: np.ndarray
    own: np.ndarray
    squares: np.ndarray
    error: np.ndarray
    status: np.ndarray


def smooth(
    points: Points,
    y: np.ndarray,
    c: np.ndarray,
    queries: np.ndarray,
    h: np.ndarray,
    *,
    kernel: str,
    degree: int,
    squares: bool,
    n_jobs: int | None,
) -> Answers:
    """Fit at every query; `c` are the weights of the points, `h` the bandwidth at each query."""
    code, p = KERNELS.index(kernel), points.x.shape[1]
    if p == 1:
        spread = float(points.x[-1, 0] - points.x[0, 0])
        reach = 2 * float(np.mean(h)) * (8.6 if kernel == "gaussian" else 1.0)
        neighbours = points.n * (min(reach / spread, 1.0) if spread > 0 else 1.0)
        work = len(queries) * (20.0 + 4.0 * neighbours)
    else:
        terms = {0: 1, 1: 1 + p, 2: 1 + p + p * (p + 1) // 2}[degree]
        work = float(len(queries)) * points.n * (p + terms * terms / 2)
    step, threads = _step(len(queries), work), n_threads(work, n_jobs)
    parts = []
    for i in range(0, max(len(queries), 1), step):
        part = slice(i, i + step)
        if p == 1:
            column = np.ascontiguousarray(queries[part, 0])
            parts.append(_native.local.line(points.x[:, 0], y, c, column, h[part], code, degree, squares, threads))
        else:
            parts.append(_native.local.space(points.x, y, c, queries[part], h[part], code, degree, squares, threads))
    return Answers(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _step(n: int, work: float) -> int:
    return max(256, int(n / max(work / _WORK_PER_CALL, 1.0)))


# --------------------------------------------------------------------------------------------------------------------
# The choice of the bandwidth by the error on points left out.
#
# With the bandwidth fixed, leaving point i out changes its own fit to one that misses y_i by r_i / (1 - l_ii),
# exactly. Generalised cross-validation puts the average of all l_ii in the place of each.


def candidate_bandwidths(smoother: Smoother, given: Any, n_jobs: int | None) -> np.ndarray:
    """The caller's candidates, or 20 from the width of about ten points to that of all."""
    if given is not None:
        grid = np.atleast_1d(as_floats(given, ParameterError(f"candidates={given!r:.80}; expected numbers > 0")))
        if grid.ndim > 1 or not grid.size or not np.isfinite(grid).all() or (grid <= 0).any():
            raise ParameterError(f"candidates={given!r:.80}; expected finite numbers > 0")
        return np.sort(grid)
    points = smoother.points
    some = points.x[:: max(1, points.n // 500)]
    few = min(1.0, (8 + 4 * smoother.degree * points.x.shape[1]) / points.n)
    low = float(np.median(points.radii(some, few, n_jobs)))
    high = float(np.max(points.radii(some, 1.0, n_jobs)))
    if not high > 0:
        return np.ones(1)
    factor = 1 / 3 if smoother.kernel == "gaussian" else 1.0  # three tau reach about as far as the h of the others
    return np.geomspace(max(low, high / 1e4), high, 20) * factor


def error_left_out(smoother: Smoother, bandwidth: float, rule: str, n_jobs: int | None) -> float:
    """Mean squared error by the rule "loo" or "gcv"; infinite where a point decides its own fit alone."""
    points, weight = smoother.points, smoother.points.weight
    smoother = replace(smoother, bandwidth=bandwidth)
    h, total = smoother.radii(points.x, n_jobs), 0.0
    for t in range(smoother.targets.shape[1]):
        answers = smoother.at(points.x, h, t, n_jobs=n_jobs)
        residual, own = smoother.targets[:, t] - answers.value, answers.own * weight
        left = 1 - (np.full(points.n, own.mean()) if rule == "gcv" else own)
        if (left <= 1e-10).any():
            return np.inf
        total += float(weight @ (residual / left) ** 2)
    return total / float(weight.sum())
