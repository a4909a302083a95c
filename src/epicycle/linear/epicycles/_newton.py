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
from epicycle.core._exceptions import DataError
from epicycle.data import Batch, Data
from epicycle.linalg._least_squares import solve_normal_equations
from epicycle.linalg._spectra import one_eigenvalue
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
from epicycle.linear.epicycles._spectrum import Grid, residual_spectrum


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
        J = np.hstack(
            [
                E,
                1j * E,
                1j * t * E * circles.radii,
                np.ones((len(E), min(extra, 1))),
                1j * np.ones((len(E), max(extra - 1, 0))),
            ]
        )
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
    with np.errstate(over="ignore", invalid="ignore"):
        M = H[np.ix_(ws, ws)] - cross.T @ solved[:, :K]
    if not np.isfinite(M).all():  # slow circles may be far larger than the values that they add up to
        raise DataError("X, y: the squares of times multiplied by values overflow; scale them down")
    return g[ws] - cross.T @ solved[:, K], (M + M.T) / 2


def _steps(g: np.ndarray, M: np.ndarray) -> tuple[float, Callable[[float], np.ndarray]]:
    """(promised decrease, damping -> step): curvature in the scale of its diagonal, negative turned round."""
    if not len(g):
        return 0.0, lambda _damping: g
    unit = np.sqrt(np.maximum(np.abs(np.diagonal(M)), np.finfo(float).tiny))
    with np.errstate(over="ignore"):
        scaled = M / unit / unit[:, None]
    if not np.isfinite(scaled).all():  # beside curvature of nothing, which is rounding of the others
        unit = np.sqrt(np.maximum(unit**2, np.finfo(float).eps * np.abs(M).max()))
        scaled = M / unit / unit[:, None]
    values, V = scipy.linalg.eigh(scaled)
    curvature = np.maximum(np.abs(values), 1e-12)
    along = V.T @ (g / unit)
    decrement = float(np.sum(along**2 / curvature)) / 2
    if (values < -1e-6).any():
        decrement = max(decrement, float(np.sum(along**2)))
    return decrement, lambda damping: (V @ (along / (curvature + damping))) / unit


# --------------------------------------------------------------------------------------------------------------------
# Many frequencies, fixed in advance, with a penalty on the radii:
#
#     minimise  1/(2W) sum_i w_i |z_i - c - sum_k r_k exp(i w_k t_i)|^2 + alpha sum_k |r_k|             (lasso)
#                                                                       + alpha/2 sum_k f_k |r_k|^2     (ridge)
#
# with W the sum of the weights. In the lasso |r_k| is the length of a pair of parameters, so that a circle is in or
# out as a whole. Residuals, scaled until no |S(w_k)| / W exceeds alpha, are a point of the dual problem.


def fit_ridge(
    data: Data, circles: Circles, penalty: np.ndarray, total_weight: float, setting: Setting
) -> tuple[Circles, float, float]:
    """(circles, objective, its distance from the minimum), with alpha f_k in `penalty`."""
    K = circles.count
    start = replace(circles, radii=np.zeros(K, complex), centre=setting.level)
    normal = normal_equations(data, start, setting)
    D = np.concatenate([penalty, penalty, np.zeros(len(normal.b) - 2 * K)])
    A, b = normal.G / total_weight + np.diag(D), normal.b / total_weight
    x = solve_normal_equations(A, b).x
    gradient = b - A @ x
    excess = abs(float(gradient @ solve_normal_equations(A, gradient).x)) / 2
    value = normal.squares / total_weight / 2 - float(b @ x) + float(x @ A @ x) / 2
    return placed(circles, x, setting), value, excess


@dataclass(frozen=True)
class LassoEnd:
    """Circles in use, the objective, the duality gap and how often the working set was enlarged."""

    circles: Circles
    objective: float
    gap: float
    rounds: int
    stopped: bool


def minimise_lasso(
    data: Data,
    grids: list[Grid],
    start: Circles,
    alpha: float,
    total_weight: float,
    setting: Setting,
    *,
    tol: float,
    scale: float,
    max_iter: int,
    report: Callable[[int, Circles, float, float], bool],
    first_round: int,
) -> LassoEnd:
    """Working sets: solve for a few circles, look at all frequencies, add the worst, until the gap is small.

    The gap is compared with `tol` times `scale`, half the mean square of the data.
    """
    circles, W = start, total_weight
    everything = [(grid.column, w) for grid in grids for w in grid.frequencies[grid.usable].tolist()]
    columns = np.array([c for c, _ in everything], dtype=np.int64)
    frequencies = np.array([w for _, w in everything])
    members = {(int(c), float(w)) for c, w in zip(circles.columns, circles.frequencies, strict=True)}
    objective = gap = np.inf
    for done in range(first_round, max_iter):
        normal = normal_equations(data, circles, setting)
        x = _minimise_subproblem(
            normal.G / W, normal.b / W, normal.squares / W, circles, alpha, tol * scale / 10, setting
        )
        circles = placed(circles, x, setting)
        S = np.concatenate([residual_spectrum(data, grid, circles, setting)[grid.usable] for grid in grids]) / W
        size = np.abs(S)
        G, b = normal.G / W, normal.b / W
        squares = normal.squares / W
        loss = max(squares - 2 * float(b @ x) + float(x @ G @ x), 0.0)
        objective = loss / 2 + alpha * float(np.abs(circles.radii).sum())
        worst = float(size.max(initial=0.0))
        s = 1.0 if worst <= alpha else alpha / worst
        gap = objective - (s * (squares - float(b @ x)) - s * s * loss / 2)
        if report(done + 1, circles, objective, max(gap, 0.0)):
            return LassoEnd(circles, objective, gap, done + 1, True)
        if gap <= tol * scale:
            break
        fresh = [i for i in np.argsort(-size) if (int(columns[i]), float(frequencies[i])) not in members]
        fresh = [i for i in fresh[: max(10, circles.count)] if size[i] > alpha]
        if not fresh:
            break
        kept = np.abs(circles.radii) > 0
        circles = replace(
            circles,
            columns=np.append(circles.columns[kept], columns[fresh]),
            frequencies=np.append(circles.frequencies[kept], frequencies[fresh]),
            radii=np.append(circles.radii[kept], np.zeros(len(fresh))),
        )
        members = {(int(c), float(w)) for c, w in zip(circles.columns, circles.frequencies, strict=True)}
    return LassoEnd(circles, objective, gap, done + 1, False)


def _minimise_subproblem(
    G: np.ndarray, b: np.ndarray, squares: float, circles: Circles, alpha: float, tol: float, setting: Setting
) -> np.ndarray:
    """min x'Gx/2 - b'x + alpha sum_k |(x_k, x_{K+k})| up to a gap of `tol`.

    Proximal gradient with momentum finds the support, Newton's method the solution on it, in turns.
    """
    K = circles.count
    at = circles.centre - setting.level
    rest = [at.real, at.imag][: setting.constants]
    x = np.concatenate([circles.radii.real, circles.radii.imag, rest])
    if not len(x):
        return x
    # The centre is eliminated: what is left is in the radii alone.
    c = slice(2 * K, None)
    if rest:
        solved = scipy.linalg.solve(G[c, c], np.column_stack([G[c, : 2 * K], b[c]]), assume_a="pos")
        A, q = G[: 2 * K, : 2 * K] - G[: 2 * K, c] @ solved[:, :-1], b[: 2 * K] - G[: 2 * K, c] @ solved[:, -1]
    else:
        A, q = G, b
    r = x[: 2 * K]
    if rest:
        squares -= float(b[c] @ solved[:, -1])
    for _ in range(30 if K else 0):
        r = _newton(A, q, _proximal(A, q, r, alpha, tol, K), alpha, K)
        if _gap(A, q, squares, r, alpha, K) <= tol:
            break
    return np.concatenate([r, solved[:, -1] - solved[:, :-1] @ r]) if rest else r


def _gap(A: np.ndarray, q: np.ndarray, squares: float, r: np.ndarray, alpha: float, K: int) -> float:
    """The duality gap: residuals, scaled until none of their correlations exceeds alpha, are a point of the dual."""
    left = q - A @ r
    loss, worst = squares - float(q @ r) - float(r @ left), float(np.hypot(left[:K], left[K:]).max())
    s = 1.0 if worst <= alpha else alpha / worst
    return loss / 2 + alpha * float(np.hypot(r[:K], r[K:]).sum()) - s * (squares - float(q @ r)) + s * s * loss / 2


def _shrunk(v: np.ndarray, by: float, K: int) -> np.ndarray:
    length = np.hypot(v[:K], v[K:])
    factor = np.maximum(1 - by / np.maximum(length, np.finfo(float).tiny), 0.0)
    return np.asarray(v * np.tile(factor, 2))


def _proximal(A: np.ndarray, q: np.ndarray, r: np.ndarray, alpha: float, tol: float, K: int) -> np.ndarray:
    L = one_eigenvalue(A, 2 * K - 1)
    if not L > 0:
        return np.zeros_like(r)
    point, momentum = r, 1.0
    for _ in range(2000):
        new = _shrunk(point - (A @ point - q) / L, alpha / L, K)
        if (point - new) @ (new - r) > 0:  # going back: start the momentum anew
            point, momentum = r, 1.0
            new = _shrunk(point - (A @ point - q) / L, alpha / L, K)
        after = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        change = new - r
        point, momentum = new + (momentum - 1) / after * change, after
        r = new
        if L * float(change @ change) <= tol * 1e-4:
            break
    return r


def _newton(A: np.ndarray, q: np.ndarray, r: np.ndarray, alpha: float, K: int) -> np.ndarray:
    """On circles that are there the objective is smooth; steps that lose one or gain nothing are not taken."""

    def value(r: np.ndarray) -> float:
        return float(r @ (A @ r) / 2 - q @ r + alpha * np.hypot(r[:K], r[K:]).sum())

    for _ in range(20):
        there = np.hypot(r[:K], r[K:]) > 0
        pairs = np.tile(there, 2)
        k = int(there.sum())
        if not k:
            return r
        s = r[pairs]
        length = np.hypot(s[:k], s[k:])
        unit = s / np.tile(length, 2)
        gradient = A[np.ix_(pairs, pairs)] @ s - q[pairs] + alpha * unit
        H = A[np.ix_(pairs, pairs)].copy()
        j, across = np.arange(k), alpha / length
        H[j, j] += across * (1 - unit[:k] ** 2)
        H[k + j, k + j] += across * (1 - unit[k:] ** 2)
        H[j, k + j] -= across * unit[:k] * unit[k:]
        H[k + j, j] -= across * unit[:k] * unit[k:]
        new = r.copy()
        new[pairs] = s - solve_normal_equations(H, gradient).x
        if not value(new) < value(r):
            return r
        r = new
    return r
