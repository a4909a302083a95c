"""EM for linear Gaussian state-space models (Shumway and Stoffer): moments of the smoother, then regressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.core._exceptions import ConvergenceError

if TYPE_CHECKING:
    from epicycle.control.filters._kalman_filter import KalmanFilter

Array = np.ndarray
LEARNT = ("A", "C", "W", "V", "mean", "covariance")
OFFSETS = ("B", "b", "D", "d")  # learnt when they are asked for
_ROUNDING = 1e-9  # of a log-likelihood, relative, that is no fall


@dataclass
class Fitted:
    """The last model of a climb, the log-likelihoods on the way, and how far from stationary it is."""

    model: KalmanFilter
    values: list[float]
    gain: float
    meaning: str = "the last EM step raised the log-likelihood by no more for each observation: a stationary point"


class Regression:
    """Expected moments of y = M x + N z + noise, summed over times; y without what the model gives to z = (1, u).

    It is that of the next state on this one, and that of an observation on the state of its time.
    """

    def __init__(self, n_y: int, n_x: int, n_z: int) -> None:
        self.count = 0
        self.xx, self.yx, self.yy = np.zeros((n_x, n_x)), np.zeros((n_y, n_x)), np.zeros((n_y, n_y))
        self.xz, self.yz, self.zz = np.zeros((n_x, n_z)), np.zeros((n_y, n_z)), np.zeros((n_z, n_z))

    def add(self, y: Array, x: Array, z: Array, yy: Array, yx: Array, xx: Array) -> None:
        """Times of one series: means of y and x, z, and the sums of covariances."""
        self.count += len(x)
        self.xx += x.T @ x + xx
        self.yx += y.T @ x + yx
        self.yy += y.T @ y + yy
        self.xz += x.T @ z
        self.yz += y.T @ z
        self.zz += z.T @ z

    def square(self, M: Array) -> Array:
        """Expected sum of squares of the noise."""
        return _symmetric(self.yy - M @ self.yx.T - self.yx @ M.T + M @ self.xx @ M.T)

    def slope(self) -> Array:
        """Best M."""
        return np.asarray(np.linalg.lstsq(self.xx, self.yx.T, rcond=None)[0].T)

    def response(self, M: Array) -> Array:
        """Expected sum of the noise times z'."""
        return np.asarray(self.yz - M @ self.xz)

    def shift(self, M: Array, part: slice) -> Array:
        """Best change of the columns `part` of N given M; y is then less by it."""
        zz, change = self.zz[part, part], np.zeros_like(self.yz)
        change[:, part] = np.linalg.lstsq(zz, self.response(M)[:, part].T, rcond=None)[0].T
        moved = change @ self.yz.T
        self.yy = self.yy - moved - moved.T + change @ self.zz @ change.T
        self.yx = self.yx - change @ self.xz.T
        self.yz = self.yz - change @ self.zz
        return change


@dataclass
class Moments:
    """Log-likelihood and what the expected log-density of states and observations depends on.

    `starts` are means and covariances of first states.
    """

    value: float
    starts: list[tuple[Array, Array]]
    dynamics: Regression
    observation: Regression


def n_observed(series: list[Any]) -> int:
    """Number of entries that were observed, at least one."""
    return max(sum(int(np.isfinite(np.asarray(y, dtype=float)).sum()) for y in series), 1)


def learn(
    model: KalmanFilter,
    series: list[Any],
    controls: list[Any],
    names: tuple[str, ...],
    max_iter: int,
    tol: float,
    n_jobs: int | None = None,
) -> Fitted:
    """EM steps until one gains at most `tol` for an observation; a fall is an error."""
    count = n_observed(series)
    values: list[float] = []
    gain = np.inf
    for _ in range(max_iter):
        found = moments(model, series, controls, n_jobs)
        if values:
            gain = (found.value - values[-1]) / count
            if found.value < values[-1] - _ROUNDING * (abs(found.value) + count):
                raise ConvergenceError(f"EM: the log-likelihood fell from {values[-1]:.12g} to {found.value:.12g}")
        values.append(found.value)
        if gain <= tol:
            return Fitted(model, values, max(gain, 0.0))
        model = _maximised(model, names, found)
    return Fitted(model, values, gain)


def moments(model: KalmanFilter, series: list[Any], controls: list[Any], n_jobs: int | None = None) -> Moments:
    """The E-step."""
    n, p, k = model.A.shape[0], model.C.shape[0], model.B.shape[1]
    total = Moments(0.0, [], Regression(n, n, 1 + k), Regression(p, n, 1 + k))
    series = [model._observations(y) for y in series]
    smoothed = model.smooth(series, None if controls[0] is None else controls, n_jobs=n_jobs)
    for y, u, found in zip(series, controls, smoothed, strict=True):
        given = model._given(y, u)
        x, P = found.mean, found.covariance
        z = np.column_stack([np.ones(len(x)), *([] if u is None else [np.asarray(u, dtype=np.float64)])])
        total.value += found.log_likelihood
        total.starts.append((x[0], P[0]))
        sums = P[1:].sum(axis=0), found.lag_covariance.sum(axis=0), P[:-1].sum(axis=0)
        total.dynamics.add(x[1:] - given[5][:-1], x[:-1], z[:-1], *sums)
        filled, extra, mixed = _completed(model, given[0] - given[6], x, P)
        total.observation.add(filled, x, z, extra, mixed, P.sum(axis=0))
    return total


def start_square(mean: Array, m: Moments) -> Array:
    """Expected sum of squares of the first states about a mean."""
    return _symmetric(np.sum([P + np.outer(x - mean, x - mean) for x, P in m.starts], axis=0))


def _completed(model: KalmanFilter, y: Array, x: Array, P: Array) -> tuple[Array, Array, Array]:
    """Observations with missing entries filled in, and the sums of covariances that these have, and with the states.

    With o seen and m missing, y_m | x, y_o has mean C_m x + G (y_o - C_o x), G = V_mo V_oo^-1, and covariance
    V_mm - G V_om; given y alone, x still varies with P.
    """
    filled, extra, mixed = y.copy(), np.zeros_like(model.V), np.zeros_like(model.C)
    gaps = np.isnan(y)
    for pattern in np.unique(gaps[gaps.any(axis=1)], axis=0):
        rows = (gaps == pattern).all(axis=1)
        m, o = np.flatnonzero(pattern), np.flatnonzero(~pattern)
        G = np.linalg.solve(model.V[np.ix_(o, o)], model.V[np.ix_(o, m)]).T if len(o) else np.zeros((len(m), 0))
        slope = model.C[m] - G @ model.C[o]
        filled[np.ix_(rows, m)] = x[rows] @ slope.T + y[np.ix_(rows, o)] @ G.T
        total = P[rows].sum(axis=0)
        block = model.V[np.ix_(m, m)] - G @ model.V[np.ix_(o, m)]
        extra[np.ix_(m, m)] += rows.sum() * block + slope @ total @ slope.T
        mixed[m] += slope @ total
    return filled, extra, mixed


def _maximised(model: KalmanFilter, names: tuple[str, ...], m: Moments) -> KalmanFilter:
    new: dict[str, Any] = {}
    mean = model.mean
    rooms = (("A", "B", "b", "W", m.dynamics), ("C", "D", "d", "V", m.observation))
    for slope, controls, constant, noise, regression in rooms:
        M = getattr(model, slope)
        if regression.count == 0:
            continue
        if slope in names:
            M = new[slope] = regression.slope()
        # With the slope held, and one after the other: each step raises what the E-step gave.
        if constant in names:
            new[constant] = getattr(model, constant) + regression.shift(M, slice(0, 1))[:, 0]
        if controls in names:
            new[controls] = getattr(model, controls) + regression.shift(M, slice(1, None))[:, 1:]
        if noise in names:
            new[noise] = regression.square(M) / regression.count
    if "mean" in names:
        mean = new["mean"] = np.mean([x for x, _ in m.starts], axis=0)
    if "covariance" in names:
        new["covariance"] = start_square(mean, m) / len(m.starts)
    return model.with_parameters(**new)


def _symmetric(M: Array) -> Array:
    return np.asarray((M + M.T) / 2)
