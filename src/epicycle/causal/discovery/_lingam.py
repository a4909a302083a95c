r"""DirectLiNGAM: an order of causes from noise that is not normal (Shimizu et al. 2011).

Of two standardised variables x, y with regression residuals r_x, r_y the cause is told by differences of entropies,
H(y) + H(r_x / sd) - H(x) - H(r_y / sd) (Hyvarinen and Smith 2013). The variable that is least caused by any other comes
first and is regressed out of the rest. Coefficients are those of least squares on all earlier variables.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

Array = np.ndarray


def _entropy(u: Array) -> Array:
    """Maximum-entropy approximation of Hyvarinen (1998) for columns of mean 0 and variance 1."""
    k1, k2, gamma = 79.047, 7.4129, 0.37457
    a = np.mean(np.log(np.cosh(u)), axis=0) - gamma
    b = np.mean(u * np.exp(-(u**2) / 2), axis=0)
    return np.asarray((1 + np.log(2 * np.pi)) / 2 - k1 * a**2 - k2 * b**2)


def _standard(X: Array) -> Array:
    X = X - X.mean(axis=0)
    return np.asarray(X / np.maximum(X.std(axis=0), 1e-300))


def causal_order(X: Array) -> list[int]:
    """Variables with causes first."""
    left = list(range(X.shape[1]))
    R = X - X.mean(axis=0)
    order: list[int] = []
    while len(left) > 1:
        Z = _standard(R)
        C = Z.T @ Z / len(Z)
        H = _entropy(Z)
        penalty = np.zeros(len(left))
        for i in range(len(left)):
            others = np.delete(np.arange(len(left)), i)
            of_others = _entropy(_standard(Z[:, others] - Z[:, [i]] * C[i, others]))
            of_this = _entropy(_standard(Z[:, [i]] - Z[:, others] * C[i, others]))
            difference = H[others] + of_this - H[i] - of_others
            penalty[i] = np.sum(np.minimum(difference, 0.0) ** 2)
        best = int(penalty.argmin())
        order.append(left.pop(best))
        rest = np.delete(np.arange(R.shape[1]), best)
        x = R[:, [best]]
        R = R[:, rest] - x * (x.T @ R[:, rest]) / max(float((x * x).sum()), 1e-300)
    return order + left


def lingam(X: Array, alpha: float) -> tuple[Array, list[int]]:
    """Coefficients B[i, j] of i in the equation of j, zero where not significant, and the order."""
    n, p = X.shape
    order = causal_order(X)
    X = X - X.mean(axis=0)
    B = np.zeros((p, p))
    for place, j in enumerate(order):
        earlier = order[:place]
        for _ in range(place):  # backward elimination, the weakest first
            A = X[:, earlier]
            inverse = np.linalg.pinv(A.T @ A)
            coef = inverse @ (A.T @ X[:, j])
            e = X[:, j] - A @ coef
            df = max(n - len(earlier) - 1, 1)
            error = np.sqrt(np.maximum(np.diag(inverse) * float(e @ e) / df, 1e-300))
            value = 2 * student.sf(np.abs(coef / error), df)
            if value.max() <= alpha:
                B[earlier, j] = coef
                break
            earlier = [v for v, keep in zip(earlier, np.arange(len(earlier)) != value.argmax(), strict=True) if keep]
            if not earlier:
                break
    return B, order
