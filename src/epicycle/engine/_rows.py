"""Results for rows, written one after the other into one array."""

from __future__ import annotations

import numpy as np

from epicycle.core._exceptions import EngineError

__all__ = ["Rows"]


class Rows:
    """Collects pieces of rows in order: into one array where the number of rows is known, otherwise in a list."""

    def __init__(self, n_rows: int | None) -> None:
        self._n_rows = n_rows
        self._filled = 0
        self._out: np.ndarray | None = None
        self._pieces: list[np.ndarray] = []

    def add(self, piece: tuple[int, np.ndarray]) -> None:
        """Append the rows of one batch: how many it had, and its result."""
        n, rows = piece
        if rows.ndim == 0 or len(rows) != n:
            raise EngineError(f"a function returned shape {rows.shape} for a batch of {n} rows")
        if self._n_rows is None:
            self._pieces.append(rows)
            return
        if n == self._n_rows:
            self._out = rows
            return
        if self._out is None:
            self._out = np.empty((self._n_rows, *rows.shape[1:]), rows.dtype)
        elif rows.dtype != self._out.dtype:
            self._out = self._out.astype(np.promote_types(rows.dtype, self._out.dtype))
        self._out[self._filled : self._filled + n] = rows
        self._filled += n

    @property
    def result(self) -> np.ndarray:
        """All rows."""
        if self._pieces:
            return np.concatenate(self._pieces)
        if self._out is None:
            raise EngineError("the data has no rows: there is nothing to map")
        return self._out
