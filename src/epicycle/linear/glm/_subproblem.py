"""The quadratic model of proximal Newton as a lasso on a Gram matrix.

    minimise over z:  g'(z - x) + (z - x)'H(z - x) / 2 + sum_j l1_j |z_j|.

Coordinates without an L1 term are eliminated: with them at their optimum for given others, the rest is a lasso with the
Schur complement S of H and the correlations S x - c, c the reduced gradient.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from epicycle.linear.lasso._gram import MAX_NEWTON, GramProblem, minimise_on_gram
from epicycle.optim._penalties import ElasticNet

__all__ = ["quadratic_lasso"]

Array = np.ndarray


def quadratic_lasso(H: Array, g: Array, x: Array, l1: Array) -> Array:
    """The minimiser z, to nearly the last digit."""
    free, held = np.flatnonzero(l1 == 0), np.flatnonzero(l1 > 0)
    z = x.copy()
    if len(free):
        solve = _regular(H[np.ix_(free, free)])
        back = solve(np.column_stack([H[np.ix_(free, held)], g[free]]))
        S = H[np.ix_(held, held)] - H[np.ix_(held, free)] @ back[:, :-1]
        c = g[held] - H[np.ix_(held, free)] @ back[:, -1]
    else:
        S, c = H.copy(), g.copy()
    if len(held):
        z[held] = _lasso(S, c, x[held], l1[held])
    if len(free):
        z[free] = x[free] - back[:, -1] - back[:, :-1] @ (z[held] - x[held])
    return z


def _lasso(S: Array, c: Array, x: Array, l1: Array) -> Array:
    # In units in which S has a unit diagonal: descent over columns of wildly different scale loses digits.
    S = 0.5 * (S + S.T)
    diagonal = np.maximum(np.diagonal(S), 0.0)
    flat = diagonal <= 1e-14 * diagonal.max(initial=0.0)
    unit = 1 / np.sqrt(np.where(flat, 1.0, diagonal))
    S = np.ascontiguousarray(S * unit * unit[:, None])
    c, w, l1 = c * unit, np.where(flat, 0.0, x / unit), l1 * unit
    S[flat], S[:, flat] = 0.0, 0.0  # a coordinate without curvature stays at zero
    xy = S @ w - c
    xy[flat] = 0.0
    yy = float(xy @ _regular(S)(xy)) * (1 + 1e-3)
    if not yy > 0:
        return np.zeros(len(x))
    slots = np.arange(len(w), dtype=np.int64)
    q = xy - S @ w
    penalty = ElasticNet(np.ascontiguousarray(l1), np.zeros(len(w)))
    problem = GramProblem(S, slots, xy, yy, penalty, w, q)
    minimise_on_gram(problem, 1e-13 * yy, max_epochs=2000, finish=True)
    return _settled(S, xy, problem.w, l1) * unit


def _settled(S: Array, xy: Array, w: Array, l1: Array) -> Array:
    """The exact minimum from one nearby, by active sets: descent stops where the value no longer tells.

    With signs s given, S_AA w_A = xy_A - l1_A s_A; on the way there the first coefficient to change its sign leaves the
    set A, and at the end the one whose optimality is violated most comes in.
    """
    w, sign = w.copy(), np.sign(w)
    best = w.copy()
    for _ in range(50 + len(w) // 10):
        on = np.flatnonzero(sign)
        if len(on) > MAX_NEWTON:
            return best
        if len(on):
            d = _regular(S[np.ix_(on, on)])(xy[on] - S[np.ix_(on, on)] @ w[on] - l1[on] * sign[on])
            against = np.flatnonzero((w[on] + d) * sign[on] <= 0)
            if len(against):
                t = np.clip(-w[on][against] / np.where(d[against] == 0, 1.0, d[against]), 0.0, 1.0)
                first = int(np.argmin(t))
                w[on] += t[first] * d
                w[on[against[first]]] = sign[on[against[first]]] = 0.0
                continue
            w[on] += d
        best = w.copy()
        excess = np.where(sign == 0, np.abs(xy - S @ w) - l1, -np.inf)
        worst = int(np.argmax(excess))
        if not excess[worst] > 1e-13 * l1[worst]:
            break
        sign[worst] = np.sign(xy[worst] - S[worst] @ w)
    return best


def _regular(A: Array):  # type: ignore[no-untyped-def]
    """b -> A^-1 b, with a little ridge where A is singular."""
    diagonal = np.where(np.diagonal(A) > 0, np.diagonal(A), 1.0)
    for ridge in (0.0, 1e-14, 1e-11, 1e-8, 1e-5):
        B = A.copy()
        B[np.diag_indices_from(B)] = np.diagonal(A) + ridge * diagonal + (np.diagonal(A) <= 0)
        try:
            factor = scipy.linalg.cho_factor(B, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        return lambda b, factor=factor: scipy.linalg.cho_solve(factor, b, check_finite=False)
    inverse = scipy.linalg.pinvh(A)
    return lambda b: inverse @ b
