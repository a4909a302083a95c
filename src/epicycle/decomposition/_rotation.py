r"""Rotations of loadings L (p, k) to a simple structure, in which most entries are near zero.

Orthogonal: L R maximises  sum_jc b_jc^4 - gamma/p sum_c (sum_j b_jc^2)^2  for B = L R, with gamma = 1 (varimax) or 0
(quartimax). Oblique: factors may be correlated. Promax fits the fourth powers of varimax's loadings; oblimin minimises
sum_{c != d} sum_j b_jc^2 b_jd^2  by projected gradients (Jennrich 2002).
"""

from __future__ import annotations

import numpy as np

_ROUNDS = 1000
_TOL = 1e-10
_POWER = 4
_INDEPENDENT = 1e8  # condition of a change of factors beyond which its inverse has no digits left


def rotated(components: np.ndarray, method: str) -> tuple[np.ndarray, np.ndarray]:
    """(rotated loadings of shape (k, p), correlations of the factors) of loadings given as rows."""
    k = len(components)
    if k < 2:
        return components, np.eye(k)
    # The criteria are fourth powers, and have no unit: loadings of about one neither overflow nor vanish.
    exponent = int(np.frexp(np.abs(components).max(initial=0.0))[1])
    L = np.ldexp(components.T, -exponent)
    if method in ("varimax", "quartimax"):
        B, T = _orthogonal(L, 1.0 if method == "varimax" else 0.0), np.eye(k)
    else:
        B, T = _promax(L) if method == "promax" else _oblimin(L)
    return np.ldexp(B.T, exponent), T.T @ T


def _orthogonal(L: np.ndarray, gamma: float) -> np.ndarray:
    p, k = L.shape
    R, before = np.eye(k), 0.0
    for _ in range(_ROUNDS):
        B = L @ R
        # The polar factor of the gradient: the rotation that a linear criterion would choose.
        U, s, V = np.linalg.svd(L.T @ (B**3 - gamma / p * B * (B**2).sum(axis=0)))
        R, value = U @ V, float(s.sum())
        if value <= before * (1 + _TOL):
            break
        before = value
    return L @ R


def _promax(L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(loadings, T with correlations T'T)."""
    B = _orthogonal(L, 1.0)
    U = np.linalg.lstsq(B, B * np.abs(B) ** (_POWER - 1), rcond=None)[0]
    if np.linalg.cond(U) > _INDEPENDENT:  # factors without loadings of their own: only the orthogonal rotation is left
        return B, np.eye(B.shape[1])
    # B U has factors U^-1 z, which are scaled to unit variance.
    size = np.sqrt(np.diagonal(np.linalg.inv(U.T @ U)))
    U = U * size
    return B @ U, np.linalg.inv(U).T


def _oblimin(L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(loadings, T with correlations T'T), columns of T of length one; loadings L T'^-1."""
    k = L.shape[1]
    others = np.ones((k, k)) - np.eye(k)
    T, step = np.eye(k), 1.0

    def at(T: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        inverse = np.linalg.inv(T)
        B = L @ inverse.T
        slope = B * (B**2 @ others)
        return B, float((B * slope).sum()) / 4, -(B.T @ slope @ inverse).T

    B, value, G = at(T)
    for _ in range(_ROUNDS):
        projected = G - T * (T * G).sum(axis=0)
        size = float((projected**2).sum())
        if size <= _TOL * max(value, 1e-300) * 1e-4:
            break
        step *= 2
        for _ in range(60):
            moved = T - step * projected
            moved = moved / np.sqrt((moved**2).sum(axis=0))
            if np.linalg.cond(moved) > _INDEPENDENT:
                step /= 2
                continue
            found = at(moved)
            if found[1] <= value - 0.5 * size * step:
                break
            step /= 2
        else:
            break
        T, (B, value, G) = moved, found
    return B, T
