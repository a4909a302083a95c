"""Least squares and ridge regression with coefficients w >= 0, from second moments.

minimise f(w) = 1/2 w'Hw - c'w over w >= 0, with H = X'WX + alpha D and c = X'Wy about the mean. With q = Hw - c, w is
optimal iff q >= 0 and q_j w_j = 0. At any w >= 0, and for any u >= 0 with d = u - w,

    f(u) - f(w) = q'd + 1/2 d'Hd >= -q+'w - q-'d + 1/2 d'Hd >= -q+'w - 1/2 q-'H^+ q-        (q = q+ - q-),

which bounds the distance of f(w) from the minimum; q- lies in the range of H up to rounding.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg
import scipy.optimize

from epicycle.linalg._least_squares import solve_normal_equations
from epicycle.linear.least_squares._direct import LeastSquaresFit, conclude, normal_equations
from epicycle.optim._quadratic_penalty import QuadraticPenalty
from epicycle.stats._moments import Moments


def fit_nonnegative(moments: Moments, penalty: QuadraticPenalty, intercept: bool) -> LeastSquaresFit:
    """The fit of every target with non-negative coefficients, and a bound on its excess."""
    G, c = normal_equations(moments, intercept)
    coef, gradient, excess, solved = np.zeros(c.shape), np.zeros(c.shape), 0.0, []
    for t, alpha in enumerate(penalty.alpha):
        H = penalty.added_to(G, float(alpha))
        w = coef[:, t] = minimise_quadratic(H, c[:, t])
        q = H @ w - c[:, t]
        below = np.maximum(-q, 0.0)
        decrement = solve_normal_equations(H, below[:, None])
        excess += float(np.maximum(q, 0.0) @ w + max(below @ decrement.x[:, 0], 0.0) / 2)
        gradient[:, t] = -q
        solved.append(decrement)
    fit = conclude(moments, penalty, intercept, coef, gradient, solved, inverse=False, method="active set")
    return replace(fit, excess=excess)


def minimise_quadratic(H: np.ndarray, c: np.ndarray) -> np.ndarray:
    """w >= 0 that minimises 1/2 w'Hw - c'w, for H >= 0 and c in its range."""
    scale = np.sqrt(np.maximum(np.diagonal(H), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    Hs, cs = H / scale / scale[:, None], c / scale
    # With H = R'R the programme is the least distance of Rw from R^-T c (Lawson and Hanson).
    values, V = scipy.linalg.eigh(Hs, check_finite=False)
    kept = values > 8 * len(H) * np.finfo(np.float64).eps * values.max(initial=0.0)
    if not kept.any():
        return np.zeros(len(c))
    root = np.sqrt(values[kept])
    w = scipy.optimize.nnls(root[:, None] * V[:, kept].T, (V[:, kept].T @ cs) / root, maxiter=30 * len(H) + 100)[0]
    support = w > 0
    if support.any():  # the equations of the support once more, from H itself
        exact = solve_normal_equations(Hs[np.ix_(support, support)], cs[support][:, None]).x[:, 0]
        if (exact > 0).all():
            w[support] = exact
    return np.asarray(w / scale)
