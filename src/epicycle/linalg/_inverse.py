"""The inverse of a factored matrix, a tile at a time, on threads: the same bits for any number of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.engine._ordered import in_order
from epicycle.linalg._cholesky import _PANEL, Factor

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

    in_order(iter(range(0, n, _PANEL)), work, lambda _done: None, threads)
    return out


def inverse_tiles(
    inverse: np.ndarray, work: Callable[[slice, slice, np.ndarray], Any], consume: Callable[[Any], None], threads: int
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
