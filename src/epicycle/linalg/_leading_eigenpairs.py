"""The largest eigenvalues of a matrix S = A'A that is known by its products only, and how good they are.

Block Lanczos with thick restarts. Orthonormal columns V = [Q_1 ... Q_m] with

    S V = V T + Q_{m+1} [0 ... 0 B],        T = V'S V,

give Ritz pairs (theta_j, V u_j) from the eigenvectors of T, with residuals of the lengths |B u_j| (the last block of
u_j): neither S V nor the vectors are formed before the end. |theta_j - lambda| is at most the residual for an
eigenvalue lambda of S, and the angle between the vectors at most the residual over the gap to the next eigenvalue. A
few more columns than are asked for keep the vectors that are sought apart from the rest. Beyond a few blocks V is cut
back to its best Ritz vectors, for which an equation of the same form holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import DataError
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order

_SIZE = 6  # times the vectors that are kept: the space is cut back to these beyond it, memory against products
_BLOCK = 32  # columns of a product: narrow blocks see higher powers of S for the same work, wide ones read S less often
_UNLIMITED = 100  # products from which on their number is a safeguard, and not a wish
_NOTHING = 1e-14  # parts of S Q that are shorter than this share of the largest eigenvalue are rounding
_CANCELLED = 1e-5  # where so little of S Q is left, it is made orthogonal once more
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


class _Space:
    """Orthonormal columns V with T = V'S V, and the Ritz values of S in their space."""

    def __init__(self, p: int, most: int, n_jobs: int | None) -> None:
        self.V, self.T, self.size, self.n_jobs = np.empty((p, most)), np.zeros((most, most)), 0, n_jobs
        self.theta, self.U = np.zeros(0), np.zeros((0, 0))

    @property
    def columns(self) -> np.ndarray:
        return self.V[:, : self.size]

    @property
    def largest(self) -> float:
        return float(self.theta[0]) if self.theta[0] > 0 else 1.0

    def clear(self) -> None:
        self.size = 0

    def grow(self, Q: np.ndarray, SQ: np.ndarray) -> np.ndarray:
        """Take the columns Q with their images in, and return what the images have outside the space."""
        before, self.size = self.size, self.size + Q.shape[1]
        self.V[:, before : self.size] = Q
        C = inner_product(self.columns, SQ, self.n_jobs)
        self.T[: self.size, before : self.size] = C
        self.T[before : self.size, :before] = C[:before].T
        block = C[before:]
        self.T[before : self.size, before : self.size] = (block + block.T) / 2
        theta, U = scipy.linalg.eigh(self.T[: self.size, : self.size])
        self.theta, self.U = theta[::-1], U[:, ::-1]
        W = SQ.copy()
        subtract_product(W, self.columns, C, self.n_jobs)
        # Once more: what cancellation left of the space in W would grow with every restart.
        subtract_product(W, self.columns, inner_product(self.columns, W, self.n_jobs), self.n_jobs)
        return W

    def ritz(self, count: int) -> np.ndarray:
        return right_product(self.columns, np.ascontiguousarray(self.U[:, :count]), self.n_jobs)

    def cut(self, count: int) -> None:
        """Keep the best Ritz vectors only."""
        Y = self.ritz(count)
        self.size = count
        self.V[:, :count] = Y
        self.T[:count, :count] = np.diag(self.theta[:count])

    def split(self, W: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
        """(Q, B) with W = Q B and orthonormal Q; parts shorter than `least` are left out."""
        Q, R = scipy.linalg.qr(W, mode="economic", overwrite_a=True, check_finite=False)
        left, s, right = scipy.linalg.svd(R, check_finite=False)
        kept = min(int((s > least).sum()), len(self.V) - self.size)
        if not kept:
            return Q[:, :0], np.zeros((0, W.shape[1]))
        Q, B = right_product(Q, np.ascontiguousarray(left[:, :kept]), self.n_jobs), s[:kept, None] * right[:kept]
        if s[kept - 1] < _CANCELLED * self.largest:
            for _ in range(2):
                subtract_product(Q, self.columns, inner_product(self.columns, Q, self.n_jobs), self.n_jobs)
            Q, R = scipy.linalg.qr(Q, mode="economic", overwrite_a=True, check_finite=False)
            B = R @ B
        return Q, B


def leading_eigenpairs(
    product: Callable[[np.ndarray], np.ndarray],
    p: int,
    k: int,
    rng: np.random.Generator,
    *,
    tol: float,
    max_products: int,
    n_more: int = 10,
    n_jobs: int | None = None,
) -> Eigenpairs:
    """The k largest eigenpairs of S of shape (p, p), positive semi-definite, until residuals are `tol` of the largest.

    `product` maps columns V of shape (p, l) to S V. Few products are products with all of k + n_more columns, many with
    fewer.
    """
    width = min(p, k + n_more)
    block = width if max_products < _UNLIMITED else min(width, _BLOCK)
    space = _Space(p, min(_SIZE * width, p), n_jobs)
    Q = scipy.linalg.qr(rng.standard_normal((p, block)), mode="economic")[0]
    residuals: list[float] = []
    fresh: int | None = None  # the number of products at which what is done afresh ends
    while True:
        before = space.size
        W = space.grow(Q, _finite(product(Q)))
        Q, B = space.split(W, max(_NOTHING, 0.01 * tol) * space.largest)
        lengths = np.linalg.norm((B / space.largest) @ space.U[before : space.size, :k], axis=0)
        residuals.append(float(lengths.max(initial=0.0 if space.size >= k or not Q.shape[1] else 1.0)))
        done = residuals[-1] <= tol or len(residuals) >= max_products or not Q.shape[1]
        exact = tol >= _ROUNDING or fresh is not None
        if fresh == len(residuals) or (done and (exact or len(residuals) >= max_products)):
            break
        if fresh is None and (done or _at_rounding(residuals)):
            # The recurrence tells less than rounding: once more from the vectors themselves.
            Q = scipy.linalg.qr(space.ritz(min(width, space.size)), mode="economic")[0]
            space.clear()
            fresh = min(len(residuals) + 3, max_products)
            continue
        if space.size + Q.shape[1] > space.V.shape[1]:
            space.cut(min(width, space.size))
    return Eigenpairs(space.theta[:k].clip(min=0.0), np.ascontiguousarray(space.ritz(k).T), residuals)


def _at_rounding(residuals: list[float]) -> bool:
    """Whether small residuals have stopped falling."""
    return residuals[-1] <= _ROUNDING and len(residuals) > 4 and residuals[-1] > 0.9 * min(residuals[-5:-1])


def _finite(SV: np.ndarray) -> np.ndarray:
    if not np.isfinite(SV).all():
        raise DataError("X: products of its columns overflow; scale them down")
    return SV


def largest_outside(times: Callable[[np.ndarray], np.ndarray], vectors: np.ndarray, rng: np.random.Generator) -> float:
    """A bound on the spectral norm of A (I - V V') from random probes (Halko, Martinsson and Tropp, lemma 4.1).

    `times` maps columns to A times them, `vectors` are the rows V'. It fails with probability 10^-PROBES.
    """
    probes = rng.standard_normal((vectors.shape[1], PROBES))
    probes -= vectors.T @ (vectors @ probes)
    return 10.0 * math.sqrt(2.0 / math.pi) * float(np.linalg.norm(times(probes), axis=0).max())


# Products of tall matrices, in blocks of rows on several threads: the same bits for any number of them.

_ROWS = 4096  # of a block


def _blocks(rows: int) -> list[slice]:
    return [slice(start, min(start + _ROWS, rows)) for start in range(0, rows, _ROWS)]


def inner_product(V: np.ndarray, W: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """V'W."""
    total = np.zeros((V.shape[1], W.shape[1]))
    threads = n_threads(float(V.size) * W.shape[1], n_jobs)
    in_order(
        iter(_blocks(len(V))), lambda rows: V[rows].T @ W[rows], lambda part: np.add(total, part, out=total), threads
    )
    return total


def subtract_product(W: np.ndarray, V: np.ndarray, C: np.ndarray, n_jobs: int | None = None) -> None:
    """W -= V C, in place."""

    def work(rows: slice) -> None:
        W[rows] -= V[rows] @ C

    in_order(_blocks(len(W)), work, None, n_threads(float(V.size) * C.shape[1], n_jobs))


def right_product(V: np.ndarray, U: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """V U."""
    out = np.empty((len(V), U.shape[1]))

    def work(rows: slice) -> None:
        np.matmul(V[rows], U, out=out[rows])

    in_order(_blocks(len(V)), work, None, n_threads(float(V.size) * U.shape[1], n_jobs))
    return out
