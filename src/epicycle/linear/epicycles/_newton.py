"""Newton's method on the frequencies, all circles together.

With the radii and the centre always at their least-squares values, the sum of squares is a function of the frequencies
alone. Its gradient and Hessian come from one pass over the rows; the Hessian is that of all parameters with the linear
ones eliminated. Steps are damped as Levenberg and Marquardt do, with negative curvature turned round, and none is
longer than the resolution 2 pi / T.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from epicycle import engine
from epicycle.data import Batch, Data
from epicycle.linalg._least_squares import solve_normal_equations
from epicycle.linear.epicycles._orbit import (
    Circles,
    Normal,
    Setting,
    normal_equations,
    pieces,
    placed,
    plane_of,
    weights_of,
)

__all__ = ["Refined", "fit_radii", "refine"]


@dataclass(frozen=True)
class Refined:
    """Circles, half their sum of squares, and the decrease that a Newton step still promises."""

    circles: Circles
    objective: float
    decrement: float


def fit_radii(data: Data, circles: Circles, setting: Setting) -> tuple[Circles, Normal]:
    """Least squares for radii and centre with the frequencies given, refined once from the rows."""
    start = replace(circles, radii=np.zeros(circles.count, complex), centre=setting.level)
    normal = normal_equations(data, start, setting)
    x = solve_normal_equations(normal.G, normal.b).x if len(normal.b) else normal.b
    found = placed(circles, x, setting)
    normal = normal_equations(data, found, setting)
    if len(x):
        better = placed(circles, x + solve_normal_equations(normal.G, normal.gradient).x, setting)
        again = normal_equations(data, better, setting)
        if again.residual_squares <= normal.residual_squares:
            return better, again
    return found, normal


def newton_statistic(batch: Batch, circles: Circles, setting: Setting) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(J'W e, J'W J, the part of the Hessian with second derivatives), for parameters (a, b, w, c)."""
    K, extra, plane = circles.count, setting.constants, setting.plane
    size = 3 * K + extra
    g, H, S = np.zeros(size), np.zeros((size, size)), np.zeros((3, K))
    for part in pieces(batch, 6 * size):
        X, w = batch.X[part], weights_of(batch, part)
        E, t = circles.turning(X), circles.times(X)
        e = plane_of(batch.y[part]) - circles.centre - E @ circles.radii
        e = e if plane else e.real
        J = np.hstack([E, 1j * E, 1j * t * E * circles.radii, np.ones((len(E), min(extra, 1))),
                       1j * np.ones((len(E), max(extra - 1, 0)))])  # fmt: skip
        for D, left in ((J.real, np.real(e)), (J.imag, np.imag(e)))[: 2 if plane else 1]:
            weighted = w[:, None] * D
            g += weighted.T @ left
            H += D.T @ weighted
        conjugate = (w * np.conj(e))[:, None] * E * t
        S[0] += (1j * conjugate).sum(axis=0).real  # d^2 f / da dw = i t E
        S[1] -= conjugate.sum(axis=0).real  # d^2 f / db dw = -t E
        S[2] -= (conjugate * t * circles.radii).sum(axis=0).real  # d^2 f / dw^2 = -t^2 r E
    return g, H, S


def refine(
    data: Data,
    circles: Circles,
    resolution: np.ndarray,
    setting: Setting,
    *,
    scale: float,
    max_iter: int,
) -> Refined:
    """Minimise over all frequencies; `resolution` is 2 pi / T of each circle, `scale` half the square of the data."""
    K = circles.count
    circles, normal = fit_radii(data, circles, setting)
    if K == 0:
        return Refined(circles, normal.residual_squares / 2, 0.0)
    start = circles.frequencies
    # A circle that turns by less than an eighth over the whole span is a constant; and none changes its sense.
    low = np.where(start > 0, np.minimum(resolution / 8, start), -np.inf)
    high = np.where(start < 0, np.maximum(-resolution / 8, start), np.inf)
    damping, decrement = 1e-6, np.inf
    for _ in range(max_iter):
        g, M = _reduced(data, circles, setting)
        w = circles.frequencies
        free = ~(((w <= low) & (g < 0)) | ((w >= high) & (g > 0)))
        decrement, step_of = _steps(g[free], M[np.ix_(free, free)])
        if decrement <= 1e-22 * scale:
            break
        improved = False
        for _ in range(25):
            moved = w.copy()
            step = np.clip(step_of(damping), -resolution[free], resolution[free])
            moved[free] = np.clip(w[free] + step, low[free], high[free])
            candidate, found = fit_radii(data, replace(circles, frequencies=moved), setting)
            if found.residual_squares < normal.residual_squares:
                gain = normal.residual_squares - found.residual_squares
                circles, normal, improved = candidate, found, True
                damping = max(damping / 10, 1e-12)
                break
            damping *= 10
        if not improved:
            break
        if gain <= 1e-24 * scale:
            g, M = _reduced(data, circles, setting)
            free = ~(((circles.frequencies <= low) & (g < 0)) | ((circles.frequencies >= high) & (g > 0)))
            decrement = _steps(g[free], M[np.ix_(free, free)])[0]
            break
    return Refined(circles, normal.residual_squares / 2, decrement)


def _reduced(data: Data, circles: Circles, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """(downhill gradient, Hessian) in the frequencies, the linear parameters eliminated."""
    K = circles.count
    g, H, S = engine.sum(newton_statistic, data, circles, setting, n_jobs=setting.n_jobs)
    at = np.arange(K)
    for block, row in enumerate((0, K)):
        H[row + at, 2 * K + at] -= S[block]
        H[2 * K + at, row + at] -= S[block]
    H[2 * K + at, 2 * K + at] -= S[2]
    ws, linear = 2 * K + at, np.r_[0 : 2 * K, 3 * K : len(H)]
    cross = H[np.ix_(linear, ws)]
    solved = solve_normal_equations(H[np.ix_(linear, linear)], np.column_stack([cross, g[linear]])).x
    M = H[np.ix_(ws, ws)] - cross.T @ solved[:, :K]
    return g[ws] - cross.T @ solved[:, K], (M + M.T) / 2


def _steps(g: np.ndarray, M: np.ndarray) -> tuple[float, Callable[[float], np.ndarray]]:
    """(promised decrease, damping -> step): curvature in the scale of its diagonal, negative turned round."""
    if not len(g):
        return 0.0, lambda damping: g
    unit = np.sqrt(np.maximum(np.abs(np.diagonal(M)), np.finfo(float).tiny))
    values, V = scipy.linalg.eigh(M / unit / unit[:, None])
    curvature = np.maximum(np.abs(values), 1e-12)
    along = V.T @ (g / unit)
    decrement = float(np.sum(along**2 / curvature)) / 2
    if (values < -1e-6).any():
        decrement = max(decrement, float(np.sum(along**2)))
    return decrement, lambda damping: (V @ (along / (curvature + damping))) / unit
