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
from epicycle.linear.robust.quantile_passes import residuals, weights_of
from epicycle.linear.robust.quantile_problem import Frame

__all__ = ["COVARIANCES", "covariances"]

COVARIANCES = ("kernel", "iid", "robust")


def hall_sheather(n: int, tau: float) -> float:
    """Half width, in probability, for tests at the 5 % level."""
    z, x = scipy.stats.norm.ppf(0.975), scipy.stats.norm.ppf(tau)
    density = scipy.stats.norm.pdf(x)
    return float(n ** (-1 / 3) * z ** (2 / 3) * (1.5 * density**2 / (2 * x**2 + 1)) ** (1 / 3))


def row_residuals(batch: Batch, frame: Frame, beta: np.ndarray) -> np.ndarray:
    return np.column_stack([residuals(batch, frame, beta), batch.y, weights_of(batch)])


def sandwich_statistic(
    batch: Batch, frame: Frame, beta: np.ndarray, tau: float, h: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """(D, J, the "robust" middle, H, sum of K(r / h) / h) in the coordinates of the frame."""
    s, r = weights_of(batch), residuals(batch, frame, beta)
    X = batch.X.toarray() if hasattr(batch.X, "toarray") else batch.X
    A = np.column_stack([(X - frame.shift) * frame.inv_scale, np.ones(len(s))])
    kernel = np.maximum(0.75 * (1 - (r / h) ** 2), 0.0) / h
    psi = np.where(r > 0, tau, 1 - tau)

    def gram(weight: np.ndarray) -> np.ndarray:
        return A.T @ (A * weight[:, None])

    return gram(s), gram(s**2), gram((s * psi) ** 2), gram(s * kernel), float(np.count_nonzero(s) and (s > 0) @ kernel)


def covariances(
    data: Data, frame: Frame, beta: np.ndarray, tau: float, n_jobs: int | None
) -> tuple[dict[str, np.ndarray] | None, dict[str, float]]:
    """Covariances of (w, b) by name, in the units of the data, and the facts they rest on; None where there are none."""
    table = engine.map(row_residuals, data, frame, beta, n_jobs=n_jobs)
    if isinstance(data, DaskData):
        table = table.compute()  # three numbers a row
    table = table[table[:, 2] > 0]
    r, y, s = table.T
    n = len(r)
    # The coordinates are scaled; a bandwidth is a length in y.
    quartiles = np.quantile(r, [0.25, 0.75], weights=s, method="inverted_cdf") if data.has_weight else np.percentile(
        r, [25, 75]
    )  # fmt: skip
    spread = min(
        float(np.sqrt(np.cov(y, aweights=s, ddof=0))) / frame.y_scale, float(quartiles[1] - quartiles[0]) / 1.34
    )
    half = hall_sheather(n, tau)
    if not (0 < tau - half and tau + half < 1 and spread > 0):
        return None, {}
    h = spread * float(scipy.stats.norm.ppf(tau + half) - scipy.stats.norm.ppf(tau - half))
    D, J, middle, H, total = engine.sum(sandwich_statistic, data, frame, beta, tau, h, n_jobs=n_jobs)
    density = total / n
    free = np.flatnonzero(np.isfinite(frame.penalty))
    part = np.ix_(free, free)
    try:
        D_inverse, H_inverse = np.linalg.inv(D[part]), np.linalg.inv(H[part])
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
