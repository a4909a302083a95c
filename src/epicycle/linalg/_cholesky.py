"""Cholesky factors S = L L' in tiles, on threads, inverses from them, and factors of matrices that are nearly singular.

Results have the same bits for any number of threads, and are computed at the speed of products.

Column panels from the left: with all columns before it known, a panel is  P = S_panel - L_before L_before'  (a product
of matrices), its upper square is factored, and the rest is multiplied with the inverse of that square's factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import ConvergenceError, EpicycleWarning
from epicycle.engine._ordered import in_order

_PANEL = 128  # columns: wide enough for fast products, narrow enough that its square factor costs little
_ROWS = 512  # of a panel that a thread takes at a time


class NotPositiveError(ValueError):
    """The matrix is not positive definite in its precision."""


class Factor:
    """L, with the inverses of its squares on the diagonal."""

    def __init__(self, L: np.ndarray, inverses: list[np.ndarray]) -> None:
        self.L, self.inverses = L, inverses

    def solve(self, Y: np.ndarray) -> np.ndarray:
        """S^-1 Y for Y of shape (n, t), in float64; as exact as the type of L."""
        return self.half_solve_t(self.half_solve(Y))

    def half_solve(self, Y: np.ndarray) -> np.ndarray:
        """L^-1 Y."""
        L, n = self.L, len(self.L)
        X = np.array(Y, dtype=L.dtype, order="C")
        for inverse, start in zip(self.inverses, range(0, n, _PANEL), strict=True):
            stop = min(start + _PANEL, n)
            if start:
                X[start:stop] -= L[start:stop, :start] @ X[:start]
            X[start:stop] = inverse @ X[start:stop]
        return X

    def half_solve_t(self, Y: np.ndarray) -> np.ndarray:
        """L'^-1 Y, in float64."""
        L, n = self.L, len(self.L)
        X = np.array(Y, dtype=L.dtype, order="C")
        for inverse, start in reversed(list(zip(self.inverses, range(0, n, _PANEL), strict=True))):
            stop = min(start + _PANEL, n)
            X[start:stop] = inverse.T @ X[start:stop]
            if start:
                X[:start] -= L[start:stop, :start].T @ X[start:stop]
        return X.astype(np.float64)

    @property
    def log_determinant(self) -> float:
        """log det S."""
        return 2 * float(np.log(np.diagonal(self.L).astype(np.float64)).sum())


def factor(S: np.ndarray, threads: int) -> Factor:
    """Factor S in place: its lower triangle becomes L. The upper triangle is left as it is and never read.

    Raises
    ------
    NotPositiveError
        S is then of no use any more.
    """
    n = len(S)
    inverses = []
    for start in range(0, n, _PANEL):
        stop = min(start + _PANEL, n)
        before = S[start:stop, :start]
        square = S[start:stop, start:stop] - before @ before.T if start else S[start:stop, start:stop]
        # LAPACK reads the lower triangle only
        L, info = scipy.linalg.get_lapack_funcs(("potrf",), (square,))[0](square, lower=1, clean=1)
        if info != 0 or not np.isfinite(L[-1, -1]):
            raise NotPositiveError(f"the leading minor of order {start + abs(int(info))} is not positive")
        inverse = np.ascontiguousarray(
            scipy.linalg.get_lapack_funcs(("trtri",), (square,))[0](L, lower=1)[0], dtype=S.dtype
        )
        S[start:stop, start:stop] = L
        inverses.append(inverse)

        def panel(
            first: int, start: int = start, stop: int = stop, before: Any = before, inverse: Any = inverse
        ) -> None:
            rows = slice(first, min(first + _ROWS, n))
            P = S[rows, start:stop]
            if start:
                P = P - S[rows, :start] @ before.T
            S[rows, start:stop] = P @ inverse.T

        in_order(range(stop, n, _ROWS), panel, None, threads)
    return Factor(S, inverses)


TILE = 256  # rows and columns of a tile, a multiple of the panels of a factor


def factor_of(L: np.ndarray) -> Factor:
    """A factor from its lower triangle."""
    inverses = []
    trtri = scipy.linalg.get_lapack_funcs(("trtri",), (L,))[0]
    for start in range(0, len(L), _PANEL):
        square = np.tril(L[start : start + _PANEL, start : start + _PANEL])
        inverses.append(np.ascontiguousarray(trtri(square, lower=1)[0], dtype=L.dtype))
    return Factor(L, inverses)


def inverted(found: Factor, threads: int) -> np.ndarray:
    """L^-1. Above the tiles on its diagonal nothing is written, and nothing may be read."""
    L, n = found.L, len(found.L)
    out = np.empty_like(L)

    def work(first: int) -> None:
        last = min(first + _PANEL, n)
        out[first:last, first:last] = found.inverses[first // _PANEL]
        if first % TILE:  # the rest of the tile on the diagonal
            out[first - first % TILE : first, first:last] = 0.0
        for start in range(last, n, _PANEL):
            stop = min(start + _PANEL, n)
            step = L[start:stop, first:start] @ out[first:start, first:last]
            np.matmul(-found.inverses[start // _PANEL], step, out=out[start:stop, first:last])

    in_order(range(0, n, _PANEL), work, None, threads)
    return out


def inverse_tiles(
    inverse: np.ndarray,
    work: Callable[[slice, slice, np.ndarray], Any],
    consume: Callable[[Any], None] | None,
    threads: int,
) -> None:
    """``consume(work(I, J, T))`` for the tiles T = (S^-1)_IJ with I >= J of S = L L', from L^-1, in a fixed order."""
    n = len(inverse)

    def pairs() -> Iterator[tuple[int, int]]:
        for i in range(0, n, TILE):
            for j in range(0, i + 1, TILE):
                yield i, j

    def one(pair: tuple[int, int]) -> Any:
        i, j = pair
        mine, other = slice(i, min(i + TILE, n)), slice(j, min(j + TILE, n))
        return work(mine, other, inverse[i:, mine].T @ inverse[i:, other])

    in_order(pairs(), one, consume, threads)


def diagonal_of_inverse(inverse: np.ndarray) -> np.ndarray:
    """(S^-1)_ii from L^-1."""
    n = len(inverse)
    out = np.empty(n)
    for start in range(0, n, TILE):
        part = inverse[start:, start : start + TILE]
        out[start : start + TILE] = np.einsum("ij,ij->j", part, part)
    return out


def lower_product(inverse: np.ndarray, V: np.ndarray) -> np.ndarray:
    """L^-1 V, from what `inverted` has written."""
    out = np.empty_like(V)
    for start in range(0, len(V), TILE):
        stop = min(start + TILE, len(V))
        np.matmul(inverse[start:stop, :stop], V[:stop], out=out[start:stop])
    return out


_STEP = 10.0  # between two values of the jitter that are tried
_HALVINGS = 3  # of the last step, on the scale of logarithms: within a third of the smallest that works
T = TypeVar("T")


class JitterWarning(EpicycleWarning):
    """A covariance matrix was not positive definite to working precision; a multiple of the identity was added."""


def smallest_jitter(attempt: Callable[[float], T], scale: float, n: int, *, refine: bool = True) -> tuple[T, float]:
    """(what the attempt gives, the jitter that it took): 0, or the smallest of a ladder with which it succeeds.

    Parameters
    ----------
    attempt : callable
        jitter -> result; raises `NotPositiveError` where the jitter is too small.
    scale : float
        Mean of the diagonal; the ladder climbs from its rounding error to the diagonal itself.
    n : int
        Size of the matrix.
    refine : bool, default=True
        Whether the jitter is then made smaller within its step of the ladder.
    """
    try:
        return attempt(0.0), 0.0
    except NotPositiveError:
        pass
    jitter = float(np.finfo(np.float64).eps * max(scale, np.finfo(np.float64).tiny))
    while True:
        try:
            found = attempt(jitter)
            break
        except NotPositiveError:
            jitter *= _STEP
            if not jitter <= 1.0001 * scale < np.inf:  # a scale that overflowed is never reached
                raise ConvergenceError(
                    f"the covariance matrix of {n:,} rows is not positive semi-definite, not even with its own mean "
                    f"({scale:.2e}) on the diagonal; is_mercer(kernel, X) shows where"
                ) from None
    if refine:
        low, high = jitter / _STEP, jitter
        for _ in range(_HALVINGS):
            middle = float(np.sqrt(low * high))
            try:
                found, high = attempt(middle), middle
            except NotPositiveError:
                low = middle
        jitter = high
    return found, float(jitter)


def factor_repaired(K: np.ndarray, diagonal: np.ndarray, threads: int) -> tuple[Factor, float]:
    """(factor of K + diag(diagonal) + jitter I, jitter)."""
    mean = float(np.diagonal(K).mean() + diagonal.mean())
    index = np.arange(len(K))

    def attempt(jitter: float) -> Factor:
        S = K.copy()
        S[index, index] += diagonal + jitter
        return factor(S, threads)

    return smallest_jitter(attempt, mean, len(K))
