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
_ROUNDING = 1e-9  # of a log-likelihood, relative, that is no fall


@dataclass
class Fitted:
    """The last model of a climb, the log-likelihoods on the way, and how far from stationary it is."""

    model: KalmanFilter
    values: list[float]
    gain: float
    meaning: str = "the last EM step raised the log-likelihood by no more for each observation: a stationary point"


@dataclass
class Moments:
    """Log-likelihood and what the expected log-density of states and observations depends on, summed over times.

    `before`, `cross`, `after` are E x x', E x+ x', E x+ x+' of the dynamics with x+ less constants and controls;
    `state`, `seen`, `square` are E x x', E y x', E y y' of the observations; `starts` means and covariances of first
    states.
    """

    value: float
    starts: list[tuple[Array, Array]]
    steps: int
    times: int
    before: Array
    cross: Array
    after: Array
    state: Array
    seen: Array
    square: Array


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
    n, p = model.A.shape[0], model.C.shape[0]
    square = np.zeros((n, n))
    total = Moments(
        0.0, [], 0, 0, square, square.copy(), square.copy(), square.copy(), np.zeros((p, n)), np.zeros((p, p))
    )
    series = [model._observations(y) for y in series]
    smoothed = model.smooth(series, None if controls[0] is None else controls, n_jobs=n_jobs)
    for y, u, found in zip(series, controls, smoothed, strict=True):
        given = model._given(y, u)
        x, P = found.mean, found.covariance
        total.value += found.log_likelihood
        total.starts.append((x[0], P[0]))
        moved = x[1:] - given[5][:-1]
        total.before += x[:-1].T @ x[:-1] + P[:-1].sum(axis=0)
        total.cross += moved.T @ x[:-1] + found.lag_covariance.sum(axis=0)
        total.after += moved.T @ moved + P[1:].sum(axis=0)
        total.steps += len(x) - 1
        total.times += len(x)
        filled, extra, mixed = _completed(model, given[0] - given[6], x, P)
        total.state += x.T @ x + P.sum(axis=0)
        total.seen += filled.T @ x + mixed
        total.square += filled.T @ filled + extra
    return total


def dynamics_square(A: Array, m: Moments) -> Array:
    """Expected sum of squares of the noise of the dynamics."""
    return _symmetric(m.after - A @ m.cross.T - m.cross @ A.T + A @ m.before @ A.T)


def observation_square(C: Array, m: Moments) -> Array:
    """Expected sum of squares of the noise of the observations."""
    return _symmetric(m.square - C @ m.seen.T - m.seen @ C.T + C @ m.state @ C.T)


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
    A, C, mean = model.A, model.C, model.mean
    if m.steps and "A" in names:
        A = new["A"] = np.linalg.lstsq(m.before, m.cross.T, rcond=None)[0].T
    if m.steps and "W" in names:
        new["W"] = dynamics_square(A, m) / m.steps
    if "C" in names:
        C = new["C"] = np.linalg.lstsq(m.state, m.seen.T, rcond=None)[0].T
    if "V" in names:
        new["V"] = observation_square(C, m) / m.times
    if "mean" in names:
        mean = new["mean"] = np.mean([x for x, _ in m.starts], axis=0)
    if "covariance" in names:
        new["covariance"] = start_square(mean, m) / len(m.starts)
    return model.with_parameters(**new)


def _symmetric(M: Array) -> Array:
    return np.asarray((M + M.T) / 2)
