"""Places of rows by their dissimilarities to landmarks that have places."""

from __future__ import annotations

import numpy as np

from epicycle.manifold._classical_mds import triangulated
from epicycle.manifold._majorizer import Run

_STEPS = 100  # to place a row by its distances to landmarks
_BLOCK = 1 << 20  # differences from landmarks held at a time


def placed(
    run: Run, near: np.ndarray, D: np.ndarray, chosen: np.ndarray, eps: float, by_size: bool
) -> tuple[np.ndarray, float, float, float]:
    """(places of all rows, their stress and squared distances to landmarks, largest step) from a run of landmarks.

    A row alone is majorised too: z = mean of z_l + t_l (z - z_l) / |z - z_l| over landmarks l.
    """
    L = run.places
    apart = np.linalg.norm(L[:, None] - L, axis=2)
    known = np.triu(near, 1) > 0
    order = np.argsort(near[known], kind="stable")
    given, targets = near[known][order], run.targets[known][order]
    Z = np.empty((len(D), L.shape[1]))
    Z[chosen] = L
    stress, size, worst = 0.0, 0.0, 0.0
    others = np.setdiff1d(np.arange(len(D)), chosen)
    chunk = max(1, _BLOCK // L.size)
    for start in range(0, len(others), chunk):
        rows = others[start : start + chunk]
        # the target of a dissimilarity: itself, or by the order between those of the landmarks
        T = D[rows] if by_size or not len(given) else np.interp(D[rows], given, targets)
        Z[rows] = triangulated(L, apart, T)
        for _ in range(_STEPS):
            move, length = _towards(Z[rows], L, T)
            Z[rows] += move
            step = float(np.sqrt(np.square(move).sum() / max(float(np.square(length).mean(axis=1).sum()), 1e-300)))
            if step * step < eps:
                break
        length = np.linalg.norm(Z[rows][:, None] - L, axis=2)
        stress, size = stress + float(np.square(length - T).sum()), size + float(np.square(length).sum())
        worst = max(worst, step)
    return Z, stress, size, worst


def _towards(Z: np.ndarray, L: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(steps of the rows, their distances from the landmarks)."""
    gap = Z[:, None] - L
    length = np.linalg.norm(gap, axis=2)
    ratio = np.divide(T, length, out=np.zeros_like(length), where=length > 0)
    return (L + ratio[:, :, None] * gap).mean(axis=1) - Z, length
