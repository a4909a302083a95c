"""Tile coding: several grids, each moved a little, cover the states; a state is the tiles that it lies in."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._checks import count
from epicycle.rl.linear._bounds import checked_bounds, scaled

Array = np.ndarray


class TileCoding:
    r"""Features of continuous states: one tile of each of several grids.

    Every grid divides the box of the states into tiles of the same size; grid i is moved by
    :math:`(1, 3, 5, \ldots)\, i / n_\text{tilings}` of a tile along the coordinates (Sutton and Barto, section 9.5.4).
    So `n_tilings` features are one, all others zero, and the resolution is a tile divided by the number of grids.

    Parameters
    ----------
    low, high : arrays (d,)
        Box of the states; what lies outside is moved to its edge.
    n_tiles : int or tuple of int, default=8
        Tiles of a grid along each coordinate.
    n_tilings : int, default=8
        Number of grids.

    Attributes
    ----------
    n_features : int
        Number of tiles of all grids.

    Examples
    --------
    >>> from epicycle.rl import TileCoding
    >>> tiles = TileCoding([0.0], [1.0], n_tiles=4, n_tilings=2)
    >>> tiles.n_features
    10
    >>> tiles([[0.3], [0.6]]).nonzero()[1].tolist()
    [1, 6, 2, 7]
    """

    def __init__(self, low: Any, high: Any, *, n_tiles: int | tuple[int, ...] = 8, n_tilings: int = 8) -> None:
        self.low, self.high = checked_bounds(low, high)
        given = (n_tiles,) * len(self.low) if isinstance(n_tiles, int | np.integer) else tuple(n_tiles)
        self.n_tiles = tuple(count("n_tiles", n, low=1) for n in given)
        self.n_tilings = count("n_tilings", n_tilings, low=1)
        self._shape = np.array([n + 1 for n in self.n_tiles])  # one more, since grids are moved
        self._size = int(self._shape.prod())
        self.n_features = self.n_tilings * self._size
        odd = 2 * np.arange(len(self.low)) + 1
        self._moved = np.arange(self.n_tilings)[:, None] * odd % self.n_tilings / self.n_tilings
        self._factor = np.append(np.cumprod(self._shape[:0:-1])[::-1], 1).astype(np.int64)
        self._first = np.arange(self.n_tilings) * self._size

    def active(self, x: Array) -> tuple[Array, Array | None]:
        """Indices of the features of one state that are not zero, and their values; None for ones."""
        place = scaled(x, self.low, self.high) * self.n_tiles
        tile = np.minimum((place + self._moved).astype(np.int64), self._shape - 1)
        return self._first + tile @ self._factor, None

    @property
    def scale(self) -> float:
        """Sum of the squares of the features of a state, by which learning rates are divided."""
        return float(self.n_tilings)

    def __call__(self, X: Any) -> Array:
        """Features of states (rows, d), as an array (rows, n_features)."""
        X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        out = np.zeros((len(X), self.n_features))
        for row, x in zip(out, X, strict=True):
            row[self.active(x)[0]] = 1.0
        return out

    def __repr__(self) -> str:
        return f"TileCoding({len(self.low)} coordinates, n_tiles={self.n_tiles}, n_tilings={self.n_tilings})"

    def __epi_state__(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "n_tiles": list(self.n_tiles), "n_tilings": self.n_tilings}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]  # an object that was only allocated
            state["low"], state["high"], n_tiles=tuple(state["n_tiles"]), n_tilings=state["n_tilings"]
        )
