r"""NOTEARS: linear equations whose weights form no cycle, by continuous optimisation (Zheng et al. 2018).

    minimise 1/(2n) ||X - XW||^2 + l1 ||W||_1  with  h(W) = tr exp(W o W) - p = 0,

by the augmented Lagrangian with W = W+ - W-, both not negative. The problem is not convex, and the order of the
variables is found by their variances: on standardised data it may be wrong. Weights below the threshold are set to
zero, and further ones until no cycle is left, which is then exact.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm
from scipy.optimize import minimize

from epicycle.causal.discovery._marks import topological_order

Array = np.ndarray


def _problem(S: Array, l1: float, rho: float, alpha: float) -> tuple[object, list[tuple[float, float]]]:
    p = len(S)

    def value(w: Array) -> tuple[float, Array]:
        W = (w[: p * p] - w[p * p :]).reshape(p, p)
        R = np.eye(p) - W
        SR = S @ R
        E = expm(W * W)
        h = float(np.trace(E)) - p
        gradient = -SR + (rho * h + alpha) * E.T * 2 * W
        f = 0.5 * float(np.sum(R * SR)) + l1 * float(w.sum()) + 0.5 * rho * h * h + alpha * h
        return f, np.concatenate([gradient.ravel() + l1, -gradient.ravel() + l1])

    bounds = [(0.0, 0.0) if i == j else (0.0, np.inf) for _ in range(2) for i in range(p) for j in range(p)]
    return value, bounds


def acyclicity(W: Array) -> float:
    """h(W) = tr exp(W o W) - p."""
    return float(np.trace(expm(W * W)) - len(W))


def notears(S: Array, l1: float, threshold: float, max_iter: int = 60) -> tuple[Array, list[float], float]:
    """Weights without a cycle, h in every round, and the threshold that was needed."""
    p = len(S)
    w, rho, alpha, h = np.zeros(2 * p * p), 1.0, 0.0, np.inf
    history: list[float] = []
    for _ in range(max_iter):
        for _ in range(20):
            value, bounds = _problem(S, l1, rho, alpha)
            with np.errstate(over="ignore", invalid="ignore"):  # a step that is too long is taken back
                new = minimize(value, w, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 1000}).x
            h_new = acyclicity((new[: p * p] - new[p * p :]).reshape(p, p))
            if h_new <= 0.25 * h or rho >= 1e16:
                break
            rho *= 10
        w, h = new, h_new
        history.append(h)
        alpha += rho * h
        if h <= 1e-10 or rho >= 1e16:
            break
    raw = (w[: p * p] - w[p * p :]).reshape(p, p)
    W = np.where(np.abs(raw) >= threshold, raw, 0.0)
    used = threshold
    while topological_order(W != 0) is None:  # at most every weight is removed
        used = float(np.abs(W[W != 0]).min())
        W[np.abs(W) <= used] = 0.0
    return W, history, used
