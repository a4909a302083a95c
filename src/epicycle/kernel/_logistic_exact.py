"""Newton's step of kernel logistic regression, exactly, for a kernel matrix K = G G' of few columns.

The step solves (W K + l) dC = rho. With g = G'dC,

    (G'W G + l) g = G'rho,      K dC = G g,      dC = (rho - W G g) / l:

a system of r t unknowns for r columns of G and t scores, positive definite, whatever the curvature W.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

if TYPE_CHECKING:
    from epicycle.kernel._logistic_newton import LogisticProblem, Point

__all__ = ["exact_step", "pivoted_factor"]

_UNKNOWNS = 1500
_ROWS, _RANK = 2000, 128  # beyond so many rows only a rank as low as this is looked for


def pivoted_factor(K: np.ndarray, scores: int) -> np.ndarray | None:
    """G of shape (n, r) with K = G G' to rounding, or None where r is too large for exact steps."""
    n = len(K)
    most = min(n, _UNKNOWNS // scores if n <= _ROWS else min(_RANK, _UNKNOWNS // scores))
    rest = np.diagonal(K).copy()
    floor = 4 * n * float(np.finfo(np.float64).eps) * max(float(rest.max()), 0.0)
    G = np.empty((most, n))
    for r in range(most + 1):
        i = int(rest.argmax())
        if rest[i] <= floor:
            return np.ascontiguousarray(G[:r].T) if r else None
        if r == most:
            break
        G[r] = (K[i] - G[:r, i] @ G[:r]) / np.sqrt(rest[i])
        rest -= G[r] ** 2
        rest[i] = 0.0
    return None


def exact_step(problem: LogisticProblem, G: np.ndarray, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """(dC, K dC)."""
    P, V, r = point.P, problem.V, G.shape[1]
    t = P.shape[1]
    rho = V * (problem.Y - P) - problem.l2 * point.C
    H = np.zeros((t * r, t * r))  # the upper triangle is not read, but it is added to
    B = np.empty((t * r, t))  # G'W 1
    for k in range(t):
        for j in range(k + 1):
            weight = V[:, 0] * P[:, k] * ((1.0 if j == k else 0.0) - P[:, j])
            H[k * r : (k + 1) * r, j * r : (j + 1) * r] = G.T @ (weight[:, None] * G)
            B[k * r : (k + 1) * r, j] = sums = G.T @ weight
            B[j * r : (j + 1) * r, k] = sums
    S = problem.intercept_inverse(P)
    if S is not None:
        H -= B @ S @ B.T
    H[np.diag_indices(t * r)] += problem.l2
    # The penalty keeps H positive definite, by a margin that rounding may eat up where it is tiny.
    g = scipy.linalg.solve(H, (G.T @ rho).T.ravel(), lower=True, assume_a="pos", check_finite=False)
    U = G @ g.reshape(t, r).T
    return (rho - problem.eliminated(P, U, S)) / problem.l2, U
