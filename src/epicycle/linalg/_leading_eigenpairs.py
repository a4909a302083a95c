"""The largest eigenvalues of a matrix S = A'A that is known by its products only, and how good they are.

Block Lanczos with restarts: from random columns on, the space is enlarged by the residuals

    R = S V - V diag(theta)

of the best eigenpairs it holds. |theta_j - lambda| <= |R_j| for an eigenvalue lambda of S, and the angle between the
vectors is at most |R_j| over the gap to the next eigenvalue. A few more columns than are asked for keep the vectors
that are sought apart from the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import DataError

_BLOCKS = 5  # the space is cut back to its best block beyond these: memory against products
_DEPENDENT = 1e-10  # columns that lose this share of their length lie in the space already
_ROUNDING = 1e-11  # residuals below this may be as small as rounding allows
PROBES = 10  # random vectors of the bound on what was left out; it fails with probability 10^-PROBES


@dataclass(frozen=True)
class Eigenpairs:
    """Eigenvalues that fall, vectors as rows, and after every product the largest residual over the largest value."""

    values: np.ndarray
    vectors: np.ndarray
    residuals: list[float]

    @property
    def residual(self) -> float:
        return self.residuals[-1] if self.residuals else 0.0


def leading_eigenpairs(
    product: Callable[[np.ndarray], np.ndarray],
    p: int,
    k: int,
    rng: np.random.Generator,
    *,
    tol: float,
    max_products: int,
    n_more: int = 10,
) -> Eigenpairs:
    """The k largest eigenpairs of S of shape (p, p), positive semi-definite, until residuals are `tol` of the largest.

    `product` maps columns V of shape (p, l) to S V.
    """
    width = min(p, k + n_more)
    V = scipy.linalg.qr(rng.standard_normal((p, width)), mode="economic")[0]
    SV = _finite(product(V))
    residuals: list[float] = []
    fresh: int | None = None  # the number of products at which what is done afresh ends
    while True:
        theta, W = scipy.linalg.eigh((V.T @ SV + SV.T @ V) / 2)
        theta, W = theta[::-1], W[:, ::-1]
        kept = min(width, len(theta))
        ritz, image = V @ W[:, :kept], SV @ W[:, :kept]
        largest = float(theta[0]) if theta[0] > 0 else 1.0
        R = image / largest - ritz * (theta[:kept] / largest)  # divided first: squares may overflow
        length = np.linalg.norm(R, axis=0)
        residuals.append(float(length[:k].max(initial=0.0)))
        if residuals[-1] <= tol or len(residuals) >= max_products or fresh == len(residuals) > 1:
            break
        if fresh is None and (_at_rounding(residuals) or V.shape[1] == p):
            # Restarts have left their rounding in S V: once more from the vectors themselves.
            V = scipy.linalg.qr(ritz, mode="economic")[0]
            SV, fresh = _finite(product(V)), len(residuals) + 3
            continue
        if V.shape[1] + width > min(_BLOCKS * width, p):
            V, SV = ritz, image
        new = _orthogonal_to(V, R[:, length > 0.01 * tol])
        new = new[:, : p - V.shape[1]]
        if not new.shape[1]:
            break
        V, SV = np.hstack([V, new]), np.hstack([SV, _finite(product(new))])
    return Eigenpairs(theta[:k].clip(min=0.0), np.ascontiguousarray(ritz[:, :k].T), residuals)


def _at_rounding(residuals: list[float]) -> bool:
    """Whether small residuals have stopped falling."""
    return residuals[-1] <= _ROUNDING and len(residuals) > 4 and residuals[-1] > 0.9 * min(residuals[-5:-1])


def _finite(SV: np.ndarray) -> np.ndarray:
    if not np.isfinite(SV).all():
        raise DataError("X: products of its columns overflow; scale them down")
    return SV


def _orthogonal_to(V: np.ndarray, R: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what R adds to the space of V; projected twice, as once leaves rounding behind."""
    before = np.linalg.norm(R, axis=0)
    R = R / np.where(before > 0, before, 1.0)
    for _ in range(2):
        R = R - V @ (V.T @ R)
    R = R[:, np.linalg.norm(R, axis=0) > _DEPENDENT]
    if not R.shape[1]:
        return R
    Q, T, _ = scipy.linalg.qr(R, mode="economic", pivoting=True)
    diagonal = np.abs(np.diagonal(T))
    Q = Q[:, diagonal > _DEPENDENT * diagonal[0]]
    return np.asarray(Q - V @ (V.T @ Q))


def largest_outside(times: Callable[[np.ndarray], np.ndarray], vectors: np.ndarray, rng: np.random.Generator) -> float:
    """A bound on the spectral norm of A (I - V V') from random probes (Halko, Martinsson and Tropp, lemma 4.1).

    `times` maps columns to A times them, `vectors` are the rows V'. It fails with probability 10^-PROBES.
    """
    probes = rng.standard_normal((vectors.shape[1], PROBES))
    probes -= vectors.T @ (vectors @ probes)
    return 10.0 * math.sqrt(2.0 / math.pi) * float(np.linalg.norm(times(probes), axis=0).max())
