"""Labels from the rows of eigenvectors: by a rotation to indicators, or by pivoted QR."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, svd

#: Turns of the rotation, and the change of its objective at which it has settled.
_TURNS, _SETTLED = 100, 1e-12


def cluster_qr(U: np.ndarray) -> np.ndarray:
    """The column that a row is largest in, after the rotation that is best for k pivots (Damle, Minden, Ying 2019).

    The pivots of a QR factorisation of U' are rows that are far from each other's span: one in each cluster.
    """
    k = U.shape[1]
    _, pivots = qr(U.T, mode="r", pivoting=True)
    left, _, right = svd(U[pivots[:k]].T, full_matrices=False)
    return np.asarray(np.abs(U @ (left @ right)).argmax(axis=1))


def discretize(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The partition nearest to the rows of U up to a rotation (Yu and Shi 2003), by turns that never lower the fit.

    Rows are scaled to unit length. Given a partition Z, the best rotation R of U comes from the singular vectors of
    Z'U; given R, the best Z has the largest column of every row of UR.
    """
    length = np.linalg.norm(U, axis=1, keepdims=True)
    rows = np.divide(U, length, out=np.zeros_like(U), where=length > 0)
    n, k = rows.shape
    R = np.zeros((k, k))
    R[:, 0] = rows[rng.integers(n)]
    closeness = np.zeros(n)
    for j in range(1, k):  # rows that are least in the direction of those before
        closeness += np.abs(rows @ R[:, j - 1])
        R[:, j] = rows[closeness.argmin()]
    fit, label = -np.inf, np.zeros(n, dtype=np.intp)
    for _ in range(_TURNS):
        label = (rows @ R).argmax(axis=1)
        Z = np.zeros((n, k))
        Z[np.arange(n), label] = 1.0
        left, singular, right = svd(Z.T @ rows, full_matrices=False)
        if singular.sum() - fit <= _SETTLED * n:
            break
        fit, R = float(singular.sum()), right.T @ left.T
    return np.asarray(label)
