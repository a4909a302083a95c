"""Standard errors of quantile regression, from the density of the residuals at zero.

With weights s_i, J = sum s_i^2 x_i x_i' and D = sum s_i x_i x_i':
- "iid": the residuals have one density f at zero:              tau (1 - tau) / f^2   D^-1 J D^-1
- "robust": as before, the score is not assumed to be Bernoulli: D^-1 (sum s_i^2 psi_i^2 x_i x_i') D^-1 / f^2,
  with psi = tau above and 1 - tau below (as statsmodels and Stata name it)
- "kernel": a density for each x, Powell's sandwich:             tau (1 - tau)  H^-1 J H^-1,
  H = sum s_i K(r_i / h) / h x_i x_i'.
K is Epanechnikov's kernel; h comes from the bandwidth of Hall and Sheather (1988).
"""

from __future__ import annotations

import numpy as np
import scipy.stats

from epicycle import engine
from epicycle.data import Batch, DaskData, Data
from epicycle.linear.robust._quantile_problem import Frame, residuals, weights_of
from epicycle.linear.robust._quantile_solver import QuantileSolver
from epicycle.stats._moments import moment_statistic

COVARIANCES = ("kernel", "iid", "robust")


def hall_sheather(n: int, tau: float) -> float:
    """Half width, in probability, for tests at the 5 % level."""
    z, x = scipy.stats.norm.ppf(0.975), scipy.stats.norm.ppf(tau)
    density = scipy.stats.norm.pdf(x)
    return float(n ** (-1 / 3) * z ** (2 / 3) * (1.5 * density**2 / (2 * x**2 + 1)) ** (1 / 3))


def row_residuals(batch: Batch, frame: Frame, beta: np.ndarray) -> np.ndarray:
    """Residuals and, where there are any, weights: one row each."""
    r = residuals(batch, frame, beta)
    return r[:, None] if batch.weight is None else np.column_stack([r, batch.weight])


def residual_quantiles(
    data: Data, frame: Frame, beta: np.ndarray, levels: list[float], n_jobs: int | None, *, absolute: bool = False
) -> np.ndarray:
    """Quantiles of the (absolute) residuals over the rows of positive weight."""
    table = engine.map(row_residuals, data, frame, beta, n_jobs=n_jobs)
    if isinstance(data, DaskData):
        table = table.compute()  # one number a row, or two
    r = np.abs(table[:, 0]) if absolute else table[:, 0]
    if table.shape[1] == 1:
        return np.asarray(np.quantile(r, levels))
    there = table[:, 1] > 0
    return np.asarray(np.quantile(r[there], levels, weights=table[there, 1], method="inverted_cdf"))


def sandwich_statistic(
    batch: Batch, frame: Frame, beta: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(H, sum of s^2 a a' over positive residuals, J or zero where all weights are one, sum of K(r / h) / h)."""
    s, r = weights_of(batch), residuals(batch, frame, beta)
    kernel = np.maximum(0.75 * (1 - (r / h) ** 2), 0.0) / h
    above = np.flatnonzero(r > 1e-10)  # rows on the hyperplane count as below, whatever their rounding
    near = np.flatnonzero(kernel > 0)
    p = len(frame.shift)
    order = np.append(np.arange(p), p + 1)
    scale = np.append(frame.inv_scale, 1.0)
    shift = np.append(frame.shift, 0.0)

    def gram(rows: np.ndarray | slice, weight: np.ndarray) -> np.ndarray:
        part = Batch(batch.X[rows], np.zeros(len(weight)), np.ascontiguousarray(weight))
        M = moment_statistic(part, shift)[0]
        return np.asarray(M[np.ix_(order, order)] * scale * scale[:, None])

    J = np.zeros((p + 1, p + 1)) if batch.weight is None else gram(slice(None), s**2)
    return gram(near, (s * kernel)[near]), gram(above, s[above] ** 2), J, float((s > 0) @ kernel)


def covariances(
    data: Data, solver: QuantileSolver, beta: np.ndarray, tau: float, n_jobs: int | None
) -> tuple[dict[str, np.ndarray] | None, dict[str, float]]:
    """Covariances of (w, b) by name, in the units of the data, and the facts they rest on; None without."""
    frame, n = solver.frame, solver.n_rows
    low, high = residual_quantiles(data, frame, beta, [0.25, 0.75], n_jobs)
    spread = min(solver.y_std, float(high - low) / 1.34)  # the frame's unit is a length in y
    half = hall_sheather(n, tau)
    if not (tau - half > 0 and tau + half < 1 and spread > 0):
        return None, {}
    h = spread * float(scipy.stats.norm.ppf(tau + half) - scipy.stats.norm.ppf(tau - half))
    H, above, J, total = engine.sum(sandwich_statistic, data, frame, beta, h, n_jobs=n_jobs)
    J = J if data.has_weight else solver.gram
    density = total / n
    free = np.flatnonzero(np.isfinite(frame.penalty))
    part = np.ix_(free, free)
    middle = tau**2 * above + (1 - tau) ** 2 * (J - above)
    try:
        D_inverse, H_inverse = np.linalg.inv(solver.gram[part]), np.linalg.inv(H[part])
    except np.linalg.LinAlgError:
        return None, {}
    found = {
        "kernel": tau * (1 - tau) * H_inverse @ J[part] @ H_inverse,
        "iid": tau * (1 - tau) / density**2 * D_inverse @ J[part] @ D_inverse,
        "robust": D_inverse @ middle[part] @ D_inverse / density**2,
    }
    facts = {"sparsity": frame.y_scale / density, "bandwidth": h * frame.y_scale}
    return {name: _original(C, frame, free) for name, C in found.items()}, facts


def _original(C: np.ndarray, frame: Frame, free: np.ndarray) -> np.ndarray:
    """From the coordinates of the frame to (w, b)."""
    d = frame.size
    back = np.diag(np.append(frame.inv_scale, 1.0)) * frame.y_scale
    back[-1, :-1] = -frame.shift * frame.inv_scale * frame.y_scale
    full = np.zeros((d, d))
    full[np.ix_(free, free)] = C
    return back @ full @ back.T
