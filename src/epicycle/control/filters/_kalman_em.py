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
    """The last model of a climb, the log-likelihoods on the way, and the last gain for an observation."""

    model: KalmanFilter
    values: list[float]
    gain: float


def learn(
    model: KalmanFilter,
    series: list[Any],
    controls: list[Any],
    names: tuple[str, ...],
    max_iter: int,
    tol: float,
) -> Fitted:
    """EM steps until one gains at most `tol` for an observation; a fall is an error."""
    count = sum(int(np.isfinite(np.asarray(y, dtype=float)).sum()) for y in series)
    values: list[float] = []
    gain = np.inf
    for _ in range(max_iter):
        value, improved = _step(model, series, controls, names)
        if values:
            gain = (value - values[-1]) / max(count, 1)
            if value < values[-1] - _ROUNDING * (abs(value) + count):
                raise ConvergenceError(f"EM: the log-likelihood fell from {values[-1]:.12g} to {value:.12g}")
        values.append(value)
        if gain <= tol:
            return Fitted(model, values, max(gain, 0.0))
        model = improved
    return Fitted(model, values, gain)


def _step(
    model: KalmanFilter, series: list[Any], controls: list[Any], names: tuple[str, ...]
) -> tuple[float, KalmanFilter]:
    """Log-likelihood of the model, and the model that maximises the expected one."""
    n, p = model.A.shape[0], model.C.shape[0]
    value, starts, steps = 0.0, [], 0
    before, cross, after = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    state, seen = np.zeros((n, n)), np.zeros((p, n))
    parts: list[tuple[Array, Array, Array, Array]] = []
    for y, u in zip(series, controls, strict=True):
        given = model._given(y, u)
        found = model.smooth(y, u)
        value += found.log_likelihood
        x, P, lag = found.mean, found.covariance, found.lag_covariance
        starts.append((x[0], P[0]))
        moved = x[1:] - given[5][:-1]  # less the constants and controls of the dynamics
        before += x[:-1].T @ x[:-1] + P[:-1].sum(axis=0)
        cross += moved.T @ x[:-1] + lag.sum(axis=0)
        after += moved.T @ moved + P[1:].sum(axis=0)
        steps += len(x) - 1
        filled, extra, mixed = _completed(model, given[0] - given[6], x, P)
        parts.append((filled, extra, x, P))
        state += x.T @ x + P.sum(axis=0)
        seen += filled.T @ x + mixed
    return value, _maximised(model, names, starts, steps, (before, cross, after), (state, seen), parts)


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


def _maximised(
    model: KalmanFilter,
    names: tuple[str, ...],
    starts: list[tuple[Array, Array]],
    steps: int,
    dynamics: tuple[Array, Array, Array],
    observed: tuple[Array, Array],
    parts: list[tuple[Array, Array, Array, Array]],
) -> KalmanFilter:
    before, cross, after = dynamics
    state, seen = observed
    new: dict[str, Any] = {}
    A = model.A
    if steps and "A" in names:
        A = new["A"] = np.linalg.lstsq(before, cross.T, rcond=None)[0].T
    if steps and "W" in names:
        new["W"] = _symmetric(after - A @ cross.T - cross @ A.T + A @ before @ A.T) / steps
    C = model.C
    if "C" in names:
        C = new["C"] = np.linalg.lstsq(state, seen.T, rcond=None)[0].T
    if "V" in names:
        times = sum(len(filled) for filled, _, _, _ in parts)
        square = sum(filled.T @ filled + extra for filled, extra, _, _ in parts)
        new["V"] = _symmetric(square - C @ seen.T - seen @ C.T + C @ state @ C.T) / times
    mean = np.mean([m for m, _ in starts], axis=0)
    if "mean" in names:
        new["mean"] = mean
    else:
        mean = model.mean
    if "covariance" in names:
        new["covariance"] = _symmetric(np.mean([P + np.outer(m - mean, m - mean) for m, P in starts], axis=0))
    return model.with_parameters(**new)


def _symmetric(M: Array) -> Array:
    return np.asarray((M + M.T) / 2)
