r"""The point of a convex hull nearest to a target:  minimise 1/2 ||A w - b||^2 + ridge/2 ||w||^2  over the simplex.

Wolfe's (1976) method for the point of least norm: a set of columns with positive weights, the affine minimiser over
them, and steps to the border where a weight would turn negative. It ends after finitely many steps. For any w of the
simplex f(w) - min f <= g'w - min_j g_j with the gradient g, which is the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class HullPoint:
    """Weights, the bound g'w - min g on what could be gained, the objective at each step, and the objective's scale."""

    weights: Array
    gap: float
    objectives: list[float]
    scale: float


def _affine(G: Array, c: Array, active: list[int]) -> Array:
    """Minimiser of 1/2 w'Gw - c'w over the weights of the active columns that sum to one."""
    k = len(active)
    K = np.zeros((k + 1, k + 1))
    K[:k, :k] = G[np.ix_(active, active)]
    K[:k, k] = K[k, :k] = 1.0
    return np.asarray(np.linalg.lstsq(K, np.append(c[active], 1.0), rcond=None)[0][:k])


def nearest_in_hull(A: Array, b: Array, ridge: float = 0.0, tol: float = 1e-12) -> HullPoint:
    """Weights on the columns of A, none negative, that sum to one and come nearest to b."""
    n = A.shape[1]
    # Differences from b keep the digits that squares of large outcomes would lose.
    D = A - b[:, None]
    G, c = D.T @ D + ridge * np.eye(n), np.zeros(n)
    scale = max(float(np.diag(G).max()), np.finfo(float).tiny)
    w = np.zeros(n)
    active = [int(np.diag(G).argmin())]
    w[active] = 1.0
    objectives: list[float] = []
    for _ in range(20 * n + 100):
        g = G @ w
        objectives.append(float(w @ g) / 2)
        j = int(g.argmin())
        if float(g @ w - g[j]) <= tol * scale or j in active:
            break
        active.append(j)
        for _ in range(n + 1):
            v = _affine(G, c, active)
            if v.min() > 1e-14:
                break
            now = w[active]
            down = v < now
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = np.where(down & (v <= 1e-14), now / (now - v), np.inf)
            step = min(float(steps.min()), 1.0)
            moved = now + step * (v - now)
            moved[int(steps.argmin())] = 0.0
            w[:] = 0.0
            w[active] = np.maximum(moved, 0.0)
            active = [a for a in active if w[a] > 0.0]
        w[:] = 0.0
        w[active] = np.maximum(v if len(v) == len(active) else _affine(G, c, active), 0.0)
        w /= w.sum()
    g = G @ w
    return HullPoint(w, max(float(g @ w - g.min()), 0.0), objectives, scale)
