"""The interior-point method of Frisch and Newton for bounded duals (Portnoy and Koenker 1997), with Mehrotra's steps.

With v - w = r = y - A beta, slacks p = u - d and q = d + low, every iterate has v, w, p, q > 0 and moves along the path
v p = w q = mu towards mu = 0. Eliminating all but beta leaves  A' Theta A  dbeta = rhs  with 1/Theta = v/p + w/q:
one weighted Gram matrix for each iteration. Since v p + w q is the duality gap, it says how far there is to go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, inv, qr, solve

from epicycle.linear.robust._quantile_problem import Programme

#: Fraction of the way to the boundary that a step may go.
STEP_TO_BOUNDARY = 0.99995
#: Iterates of which the gap no longer shrinks end the run: what is left is for the simplex.
MAX_STEPS_WITHOUT_GAIN = 6

#: Called with (beta, objective, relative gap) after each iteration; True asks to stop.
Report = Callable[[np.ndarray, float, float], bool]
PivotReport = Callable[[np.ndarray, int], bool]


@dataclass(frozen=True)
class InteriorPoint:
    """The end of the path: weights `theta` are large for rows near the optimal hyperplane."""

    beta: np.ndarray
    dual: np.ndarray
    theta: np.ndarray
    gap: float
    n_iter: int
    stopped: bool


# Weights of very different sizes make quotients overflow on the way; a point that is not finite ends the loop.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def interior_point(
    problem: Programme, start: np.ndarray | None, *, tol: float, max_iter: int, report: Report
) -> InteriorPoint:
    """Follow the central path until the gap is `tol` of the objective, progress ends, or `report` asks to stop."""
    y, u, low, g = problem.targets, problem.upper_all, problem.lower_all, problem.g
    m, free = len(y), problem.free
    ones = np.ones(m)
    G, Ay = problem.normal_equations(ones, y)
    solve_ones = _solver(G[np.ix_(free, free)])
    beta = _spread(solve_ones(Ay[free]), free, problem.frame.size) if start is None else start.copy()
    r = y - problem.product(beta)
    margin = max(0.1 * float(np.abs(r).mean()), 1e-8)
    v, w = np.maximum(r, 0) + margin, np.maximum(-r, 0) + margin
    d = np.zeros(m)
    if g.any():
        d = problem.product(_spread(solve_ones(-g[free]), free, problem.frame.size))
        middle, half = (u - low) / 2, (u + low) / 2
        d = middle + np.clip(d - middle, -0.9 * half, 0.9 * half)
    best = InteriorPoint(beta, d, u + low, np.inf, 0, False)
    misses = 0
    infeasible = -g - problem.transposed(d)
    for iteration in range(1, max_iter + 1):
        p, q = u - d, d + low
        theta = 1 / (v / p + w / q)
        r = v - w
        G, rhs = problem.normal_equations(theta, r)
        solve_theta = _solver(G[np.ix_(free, free)])

        step = _spread(solve_theta((rhs - infeasible)[free]), free, len(beta))
        dd = theta * (r - problem.product(step))
        dv, dw = -v + v * dd / p, -w - w * dd / q
        primal, dual = _reach(v, dv, w, dw), _reach(p, -dd, q, dd)
        mu = float(v @ p + w @ q) / (2 * m)
        after = float((v + primal * dv) @ (p - dual * dd) + (w + primal * dw) @ (q + dual * dd)) / (2 * m)
        centre = mu * (after / mu) ** 3
        t = (centre + dv * dd) / p - (centre - dw * dd) / q  # second order, about the predictor
        t = r - t
        rhs = problem.transposed(theta * t)
        step = _spread(solve_theta((rhs - infeasible)[free]), free, len(beta))
        cross_v, cross_w = dv * dd, -dw * dd
        dd = theta * (t - problem.product(step))
        dv = (centre - v * p + cross_v + v * dd) / p
        dw = (centre - w * q + cross_w - w * dd) / q
        primal, dual = _reach(v, dv, w, dw), _reach(p, -dd, q, dd)
        if not (np.isfinite(step).all() and np.isfinite(dd).all()):
            break
        beta = beta + primal * step
        v, w, d = v + primal * dv, w + primal * dw, d + dual * dd
        infeasible = (1 - dual) * infeasible
        p, q = u - d, d + low
        gap = float(v @ p + w @ q) / max(float(u @ v + low @ w), 1e-300)
        r = v - w
        stop = report(beta, float(u @ np.maximum(r, 0) + low @ np.maximum(-r, 0) - g @ beta), gap)
        worse = not gap < 0.9 * best.gap
        misses = misses + 1 if worse else 0
        if gap < best.gap or stop:
            best = InteriorPoint(beta, d, 1 / (v / p + w / q), gap, iteration, stop)
        if stop or (gap <= tol and dual > 0.5) or misses >= MAX_STEPS_WITHOUT_GAIN:
            break
    return best


def _reach(a: np.ndarray, da: np.ndarray, b: np.ndarray, db: np.ndarray) -> float:
    """The longest step, at most one, that keeps a and b positive."""
    most = 1.0
    for x, dx in ((a, da), (b, db)):
        with np.errstate(divide="ignore", invalid="ignore"):
            shrink = np.max(-dx / x, initial=0.0)
        if shrink > STEP_TO_BOUNDARY:
            most = min(most, STEP_TO_BOUNDARY / float(shrink))
    return most


def _spread(values: np.ndarray, free: np.ndarray, size: int) -> np.ndarray:
    if len(free) == size:
        return values
    out = np.zeros(size)
    out[free] = values
    return out


def _solver(G: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """G^-1, by Cholesky after scaling to a unit diagonal; a little is added to the diagonal until that exists."""
    scale = 1 / np.sqrt(np.maximum(np.diagonal(G), 1e-300))
    S = G * scale * scale[:, None]
    for ridge in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        try:
            factor = cho_factor(S + ridge * np.eye(len(S)) if ridge else S, lower=True, check_finite=False)
        except (LinAlgError, ValueError):
            continue
        return lambda b: scale * cho_solve(factor, scale * b, check_finite=False)
    return lambda b: scale * solve(S + 1e-6 * np.eye(len(S)), scale * b, check_finite=False)


# --------------------------------------------------------------------------------------------------------------------
# From a point near the optimum to an optimal vertex: a hyperplane through as many rows as it has parameters.
#
# The rows with the largest weights on the central path, independent of each other, are the first guess of the rows
# that the optimal hyperplane passes through. Simplex pivots make the guess right; usually there are few.


#: Pivots between fresh factorisations of the basis (and looks at callbacks).
PIVOTS_PER_FACTOR = 64
#: Rows that are looked at for a basis, in multiples of its size.
CANDIDATES_PER_ROW = 4

#: Called with (beta, pivots so far); True asks to stop.


@dataclass(frozen=True)
class Vertex:
    """A solution of the linear programme.

    residual : y - A beta over the rows of X, exactly zero on the basis.
    dual : over the rows of X and then all coordinates; within its bounds.
    basis : the rows that the hyperplane passes through; n + j is the unit row of coordinate j.
    optimal : whether the pivots came to their end.
    """

    beta: np.ndarray
    residual: np.ndarray
    dual: np.ndarray
    basis: np.ndarray
    pivots: int
    optimal: bool
    stopped: bool


def first_basis(problem: Programme, theta: np.ndarray) -> np.ndarray | None:
    """Independent rows of the largest weights; None where no d rows are independent."""
    n, d = len(problem.y), problem.frame.size
    held = n + np.flatnonzero(np.isinf(problem.frame.penalty))
    index = np.concatenate([np.arange(n), n + problem.penalised])
    weight = np.append(theta[:n], theta[n:])
    wanted = CANDIDATES_PER_ROW * d + 32
    while True:
        chosen = index[np.argpartition(-weight, wanted)[:wanted]] if wanted < len(index) else index
        position = {int(i): k for k, i in enumerate(index[n:])} if len(index) > n else {}
        lengths = np.array([weight[i] if i < n else weight[n + position[int(i)]] for i in chosen])
        A = problem.rows(chosen)
        if len(held):
            A[:, held - n] = 0.0
        # Rows scaled by their weights: pivoting takes the heavy ones first. Squared so that near ties matter less.
        scaled = A * (np.sqrt(lengths / lengths.max()) + 1e-12)[:, None]
        R, order = qr(scaled.T, mode="r", pivoting=True, check_finite=False)
        need = d - len(held)
        diagonal = np.abs(np.diagonal(R))
        if need == 0:
            return held
        if len(diagonal) >= need:
            basis = np.concatenate([chosen[order[:need]], held])
            if _inverse(problem, basis) is not None:
                return basis
        if wanted >= len(index):
            return None
        wanted *= 8


def _inverse(problem: Programme, basis: np.ndarray) -> np.ndarray | None:
    B = problem.rows(basis)
    try:
        inverse = inv(B, check_finite=False)
    except (LinAlgError, ValueError):
        return None
    if not np.isfinite(inverse).all() or np.abs(inverse).max() * np.abs(B).max() > 1e13:
        return None
    return np.ascontiguousarray(inverse)


def find_vertex(problem: Programme, basis: np.ndarray, *, max_pivots: int, report: PivotReport) -> Vertex | None:
    """Pivot from the given basis to the optimum; None where the programme has none (or the basis broke down)."""
    basis = np.ascontiguousarray(basis, dtype=np.int64)
    done = 0
    while True:
        inverse = _inverse(problem, basis)
        if inverse is None:
            return None
        state, pivots, beta, residual, dual = problem.pivots(
            basis, inverse, min(PIVOTS_PER_FACTOR, max(1, max_pivots - done))
        )
        done += pivots
        beta[basis[basis >= len(problem.y)] - len(problem.y)] = 0.0
        if state >= 2:
            return None
        stop = report(beta, done) if pivots or state == 0 else False
        # An optimum is taken from a fresh factorisation.
        if (state == 0 and pivots == 0) or stop or done >= max_pivots:
            return Vertex(beta, residual, dual, basis, done, state == 0, stop)
