"""Many frequencies, fixed in advance, with a penalty on the radii:

    minimise  1/(2W) sum_i w_i |z_i - c - sum_k r_k exp(i w_k t_i)|^2 + alpha sum_k |r_k|             (lasso)
                                                                      + alpha/2 sum_k f_k |r_k|^2     (ridge)

with W the sum of the weights. In the lasso |r_k| is the length of a pair of parameters, so that a circle is in or out
as a whole. Residuals, scaled until no |S(w_k)| / W exceeds alpha, are a point of the dual problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from epicycle.data import Data
from epicycle.linalg._least_squares import solve_normal_equations
from epicycle.linear.epicycles._orbit import Circles, Setting, normal_equations, placed
from epicycle.linear.epicycles._spectrum import residual_spectrum
from epicycle.linear.epicycles._times import Grid

__all__ = ["LassoEnd", "fit_ridge", "minimise_lasso"]


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
        S = np.concatenate([
            residual_spectrum(data, grid, circles, setting)[grid.usable] for grid in grids
        ]) / W  # fmt: skip
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
    return v * np.tile(factor, 2)


def _proximal(A: np.ndarray, q: np.ndarray, r: np.ndarray, alpha: float, tol: float, K: int) -> np.ndarray:
    L = float(scipy.linalg.eigvalsh(A, subset_by_index=[2 * K - 1, 2 * K - 1])[0])
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
