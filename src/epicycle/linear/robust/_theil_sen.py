"""Theil and Sen's regression: the spatial median of the least-squares fits to small subsets of the rows.

The spatial median of points b_s minimises f(m) = sum_s |b_s - m|. With u_s = (b_s - m) / |b_s - m|, m is optimal iff
r = sum_s u_s = 0, or |r| is at most the number of points that m lies on. f(m*) <= f(m) gives |m* - m| <= 2 f(m) / S
for S points, so that by convexity f(m) - min f <= 2 |r| f(m) / S.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.linalg
from scipy.special import binom
from sklearn.base import RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear._storage import stored_type
from epicycle.optim import Solution
from epicycle.stats._class_scores import linear_prediction

#: Numbers of a block of subsets: 4 MB of rows at a time.
BLOCK_SIZE = 500_000
#: Subsets of more than this share of the rows are drawn by permutations: repetitions would be drawn again too often.
MAX_SHARE_DRAWN = 0.1


class TheilSenRegressor(RegressorMixin, Estimator):  # type: ignore[misc]
    r"""Regression that outliers do not upset: the median of least-squares fits to small subsets of the rows.

    .. math:: (w, b) = \arg\min_m \sum_S \| \beta_S - m \| , \qquad \beta_S \text{ the least-squares fit to } S ,

    over all subsets S of `n_subsamples` rows, or as many random ones as `max_subpopulation` (Dang, Peng, Wang and Zhang
    2009; for one feature Theil 1950 and Sen 1968).

    Parameters
    ----------
    max_subpopulation : float, default=1e4
        Subsets at most; where there are more, so many are drawn.
    n_subsamples : int, optional
        Rows of a subset: from the number of unknowns, which is the default and the most robust choice, to all rows,
        which is least squares.
    max_iter : int, default=300
        Maximum number of iterations of the median.
    tol : float, default=1e-8
        Distance of the sum of distances from its minimum, relative to it, that the certificate asserts.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    breakdown_ : float
        About the share of outliers that the fit can stand.
    n_subpopulation_ : int
        Number of subsets.
    certificate_ : Certificate
        A bound on the distance of the sum of distances from its minimum, relative to it.
    history_ : History
        Sum of distances, gap and seconds of every iteration.

    See Also
    --------
    HuberRegressor : all rows count, far ones less.
    RANSACRegressor : the fit to the largest set of rows that agree.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import TheilSenRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1))
    >>> y = 2 * X[:, 0] + 1 + 0.1 * rng.normal(size=100)
    >>> y[:15] += 50
    >>> model = TheilSenRegressor(random_state=0).fit(X, y)
    >>> model.coef_.round(1), round(float(model.intercept_), 1)
    (array([2.]), 1.0)
    >>> model.certificate_.holds
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "max_subpopulation": Real(minimum=1),
        "n_subsamples": NoneOr(Integer()),
        "max_iter": Integer(minimum=0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A8",), engines=("memory",), certificate="gradient bound"
    )

    @stores_arguments(fit_intercept=True, max_iter=300, tol=1e-8, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        *,
        max_subpopulation: float = 1e4,
        n_subsamples: int | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        """
        data = self._fit_data(X, y, target="numeric")
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {type(self).__name__} is fitted in memory; got {type(X).__name__}")
        n, size = data.n_rows, self._subset_size(data)
        count = float(np.rint(binom(n, size)))
        whole = count <= self.max_subpopulation
        self.n_subpopulation_ = int(max(1.0, count if whole else self.max_subpopulation))
        # At least half of the subsets are free of outliers up to this share of them.
        self.breakdown_ = 1 - (0.5 ** (1 / size) * (n - size + 1) + size - 1) / n
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        d = data.n_features + int(self.fit_intercept)
        require_memory(
            8.0 * self.n_subpopulation_ * (4 * d + size), f"{self.n_subpopulation_} fits", "lower max_subpopulation"
        )
        subsets = np.array(list(combinations(range(n), size))) if whole else self._drawn(n, size, seed)
        points = fits_to(data, subsets, self.fit_intercept, self.n_jobs)

        def attributes(m: np.ndarray) -> dict[str, Any]:
            coef, b = (m[:-1], m[-1]) if self.fit_intercept else (m, 0.0)
            return {
                "coef_": coef.astype(stored_type(data.dtype, coef, b)),
                "intercept_": stored_type(data.dtype, coef, b).type(b) if self.fit_intercept else 0.0,
                "breakdown_": self.breakdown_,
                "n_subpopulation_": self.n_subpopulation_,
            }

        monitor = self._monitor(self.max_iter, attributes)
        start = None if state is None else np.array(state["x"])
        solution = spatial_median(points, self.tol, self.max_iter, monitor, start, {"seed": seed})
        for name, value in attributes(solution.x).items():
            setattr(self, name, value)
        self._conclude(solution)
        return self

    def _subset_size(self, data: ArrayData) -> int:
        n, p = data.n_rows, data.n_features
        unknowns, given = p + int(self.fit_intercept), self.n_subsamples
        if given is None:
            return min(unknowns, n)
        if given > n:
            raise ParameterError(
                f"n_subsamples={given}: Invalid parameter since n_subsamples > n_samples ({given} > {n})"
            )
        if n < p and given != n:
            raise ParameterError(
                f"n_subsamples={given}: Invalid parameter since n_subsamples != n_samples ({given} != {n}) while "
                "n_samples < n_features"
            )
        if n >= p and unknowns > given:
            what = "n_features+1" if self.fit_intercept else "n_features"
            raise ParameterError(
                f"n_subsamples={given}: Invalid parameter since {what} > n_subsamples ({unknowns} > {given})"
            )
        return int(given)

    def _drawn(self, n: int, size: int, seed: int) -> np.ndarray:
        """Random subsets without repetition inside one, of shape (n_subpopulation_, size)."""
        rng, count = stream(seed, "subsets"), self.n_subpopulation_
        if size > MAX_SHARE_DRAWN * n:
            return np.array([rng.permutation(n)[:size] for _ in range(count)])
        drawn = rng.integers(n, size=(count, size))
        while True:
            ordered = np.sort(drawn, axis=1)
            twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
            if not len(twice):
                return drawn
            drawn[twice] = rng.integers(n, size=(len(twice), size))

    def predict(self, X: Any) -> Any:
        """b + w'x for every row."""
        return linear_prediction(self._predict_data(X), self.coef_, self.intercept_, self.n_jobs)


def fits_to(data: ArrayData, subsets: np.ndarray, intercept: bool, n_jobs: int | None) -> np.ndarray:
    """Least squares of least norm on every subset of rows, (w, b) in the rows of the result."""
    X = np.asarray(data.X, dtype=np.float64)
    if intercept:
        X = np.column_stack([X, np.ones(len(X))])
    size, d = subsets.shape[1], X.shape[1]
    step = max(1, BLOCK_SIZE // (size * d))
    points = np.empty((len(subsets), d))

    def work(first: int) -> None:
        rows = subsets[first : first + step]
        tolerance = max(size, d) * np.finfo(np.float64).eps
        with np.errstate(over="ignore", invalid="ignore"):  # a fit beyond the range of numbers is left out below
            points[first : first + step] = (np.linalg.pinv(X[rows], rcond=tolerance) @ data.y[rows][:, :, None])[
                :, :, 0
            ]

    threads = n_threads(20.0 * len(subsets) * size * d * min(size, d), n_jobs)
    in_order(range(0, len(subsets), step), work, None, threads)
    return points[np.isfinite(points).all(axis=1)]


def spatial_median(
    points: np.ndarray,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    start: np.ndarray | None = None,
    state: Mapping[str, Any] | None = None,
) -> Solution:
    """The point of the least sum of distances: Newton steps where they lower it, else those of Weiszfeld.

    Newton's steps converge fast but for an optimum on one of the points, which is tried as such.
    """
    S, extra = len(points), dict(state or {})
    # In units in which the largest coefficient is about 1 no square overflows; a power of two costs no digits.
    largest = float(np.abs(points).max(initial=0.0))
    unit = float(np.exp2(np.round(np.log2(largest)))) if largest > 0 else 1.0
    points = points / unit
    m = np.median(points, axis=0) if start is None else start / unit
    value, gap, aim = _at(points, m)
    step, reason = monitor.history().n_iter, "max_iter"
    while True:
        step += 1
        stop = monitor(step, unit * m, objective=unit * value, state=partial(dict, x=unit * m, **extra), gap=gap)
        if stop or gap <= tol or step >= max_iter:
            reason = "stopped" if stop else "converged" if gap <= tol else "max_iter"
            break
        nearest = points[np.argmin(np.einsum("ij,ij->i", points - m, points - m))]
        tried = [(trial, *_at(points, trial)) for trial in (*aim, nearest)]
        best = min(tried, key=lambda found: (found[1], found[2]))
        if not (best[1] < value or best[2] < gap):
            reason = "stalled"  # the value does not tell points apart any more
            break
        m, value, gap, aim = best
    meaning = f"the sum of the distances of {S} fits is within {gap:.1e} of its minimum, relative to it"
    certificate = Certificate("gradient bound", gap, tol, meaning)
    x = unit * m
    return Solution(x, unit * value, monitor.history(), certificate, step, reason, state={"x": x, **extra})


def _at(points: np.ndarray, m: np.ndarray) -> tuple[float, float, list[np.ndarray]]:
    """(f, bound on its excess relative to f, points to try next) at m."""
    away = points - m
    distance = np.linalg.norm(away, axis=1)
    value = float(distance.sum())
    # Points closer than rounding are where m is: they can carry a unit of the sum of directions each.
    off = distance > 4 * np.finfo(np.float64).eps * max(float(np.abs(m).max(initial=0.0)), value / max(len(points), 1))
    if not off.any():
        return value, 0.0, []
    inverse = 1 / distance[off]
    u = away[off] * inverse[:, None]
    r = u.sum(axis=0)
    length, held = float(np.linalg.norm(r)), int(len(points) - np.count_nonzero(off))
    gap = 2 * max(length - held, 0.0) / len(points)
    aim = []
    if length > held:
        share = 1 - held / length
        aim.append(m + share * r / inverse.sum())  # Weiszfeld's step, shorter on a point (Vardi and Zhang 2000)
        H = np.eye(len(m)) * inverse.sum() - (u * inverse[:, None]).T @ u
        with suppress(scipy.linalg.LinAlgError):  # all points on a line: the Hessian is singular along it
            aim.append(m + share * scipy.linalg.solve(H, r, assume_a="pos", check_finite=False))
    return value, gap, aim
