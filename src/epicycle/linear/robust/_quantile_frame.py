"""Coordinates in which quantile regression is well scaled, and the columns that have to be left out of it."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr
from scipy.linalg.lapack import dpstrf

from epicycle.core._exceptions import DataError
from epicycle.data import Data
from epicycle.linear.robust._quantile_problem import Frame
from epicycle.linear.robust._quantile_solver import QuantileSolver, root_of
from epicycle.stats._moments import Moments, moments_of, triangular_factor_of

__all__ = ["quantile_solver"]

#: Columns up to which the p x p matrices of an iteration are formed.
MAX_FEATURES = 5000
#: Squared sine of the angle to the other columns, above which the second moments tell dependence from independence.
CLEAR = 1e-9


def quantile_solver(
    data: Data, alpha: float, *, intercept: bool, solver: str, tol: float, max_iter: int, n_jobs: int | None
) -> QuantileSolver:
    """Everything that the quantiles of one data set share: one pass over the rows, two where columns are in doubt."""
    p = data.n_features
    if p > MAX_FEATURES:
        raise DataError(f"X has {p} features; quantile regression forms matrices of their square, up to {MAX_FEATURES}")
    head = data.head()
    shift = np.zeros(p)
    if intercept and not data.sparse:
        shift = np.median(np.asarray(head.X, dtype=np.float64), axis=0)
    y_shift = float(np.median(head.y)) if intercept else 0.0
    moments = moments_of(data, np.append(shift, y_shift), n_jobs)
    n, weight = moments.n_rows, moments.weight
    mean_square = np.diagonal(moments.M) / max(weight, 1e-300)
    rms = np.sqrt(mean_square[:p])
    spread = rms
    if not data.sparse:  # one wild entry must not make all others small
        typical = np.median(np.abs(head.X - shift), axis=0)
        spread = np.where(typical > 0, typical, rms)
    inv_scale = np.divide(1.0, spread, out=np.zeros(p), where=(rms > 0) & (spread > 0))
    y_scale = float(np.median(np.abs(head.y - y_shift))) or float(np.sqrt(mean_square[p])) or 1.0

    order = np.append(np.arange(p), p + 1)
    scale = np.append(inv_scale, 1.0)
    G = moments.M[np.ix_(order, order)] * scale * scale[:, None]
    lengths = np.append(rms * inv_scale, np.inf if not intercept else 1.0)
    penalty = np.append(weight * alpha * inv_scale, 0.0 if intercept else np.inf)
    penalty[:-1][inv_scale == 0] = np.inf
    lengths[:-1][inv_scale == 0] = np.inf
    if alpha == 0:
        penalty[_dependent(data, moments, G, np.isfinite(penalty), shift, intercept, n_jobs)] = np.inf

    # Among several minima, the one that is lowest at the mean of the features and then in generic directions.
    mean = np.append((moments.mean[:p] - shift) * inv_scale, 1.0)
    generic = 1e-3 * (1 + np.modf((np.arange(p + 1) + 1) * 0.7548776662466927)[0])
    second = -(mean + generic * np.append(rms * inv_scale, 0.0))
    second[np.isinf(penalty)] = 0.0
    frame = Frame(shift, inv_scale, y_shift, y_scale, penalty, second)
    free = np.flatnonzero(np.isfinite(penalty))
    y_std = float(np.sqrt(max(moments.about_mean()[p, p], 0.0) / weight)) / y_scale
    root = root_of(G, free)
    return QuantileSolver(data, frame, n, weight, lengths, G, y_std, root, solver, tol, max_iter, n_jobs)


def _dependent(
    data: Data,
    moments: Moments,
    G: np.ndarray,
    there: np.ndarray,
    shift: np.ndarray,
    intercept: bool,
    n_jobs: int | None,
) -> np.ndarray:
    """Columns that are combinations of the others (and of the intercept), fewest possible."""
    d = len(G)
    live = np.flatnonzero(there)
    if intercept:  # the intercept comes first, so that it is never the one to go
        live = np.append(d - 1, live[:-1])
    lengths = np.sqrt(np.diagonal(G)[live])
    S = G[np.ix_(live, live)] / lengths / lengths[:, None]
    if intercept:
        S, live = S[1:, 1:] - np.outer(S[0, 1:], S[0, 1:]), live[1:]
    if len(live) == 0:
        return live
    _, pivots, rank, info = dpstrf(S, tol=CLEAR, lower=1)
    if info == 0 or rank == len(live):
        return live[:0]
    if data.sparse:
        _, pivots, rank, _ = dpstrf(S, tol=1e-13 * len(live), lower=1)
        return live[pivots[rank:] - 1]
    factor = triangular_factor_of(data, np.append(shift, moments.shift[-1]), intercept=intercept, n_jobs=n_jobs)
    R = factor.R_x[:, live]
    lengths = np.linalg.norm(R, axis=0)
    R, order = qr(R / np.where(lengths > 0, lengths, 1.0), mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(diagonal > 8 * max(R.shape) * np.finfo(float).eps * diagonal.max(initial=0.0)))
    return live[order[rank:]]
