"""The points of a local regression, and the fit at any query: a thin layer over the compiled code.

At a query q the polynomial beta minimises  sum_j K(|x_j - q| / h) c_j (y_j - beta'phi((x_j - q) / h))^2,  and the fit
is beta_0. The bandwidth h is fixed, or the distance within which a given share of the weight lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import _native
from epicycle.core._threads import n_threads
from epicycle.linear.local._kernels import KERNELS

__all__ = ["Answers", "Points", "smooth"]

#: Multiply-adds in one call of the compiled code: a fraction of a second, so that Ctrl-C is noticed.
_WORK = 2e8


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
    return max(256, int(n / max(work / _WORK, 1.0)))
