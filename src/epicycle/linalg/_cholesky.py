"""Cholesky factors S = L L' in tiles, on threads: the same bits for any number of them, at the speed of products.

Column panels from the left: with all columns before it known, a panel is  P = S_panel - L_before L_before'  (a product
of matrices), its upper square is factored, and the rest is multiplied with the inverse of that square's factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

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

        in_order(iter(range(stop, n, _ROWS)), panel, lambda _done: None, threads)
    return Factor(S, inverses)
