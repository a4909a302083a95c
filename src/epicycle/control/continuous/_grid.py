"""Regular grids over a box, with multilinear interpolation between their points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

Array = np.ndarray


@dataclass(frozen=True)
class Grid:
    """Points in C order; along a periodic axis the upper end is the lower one and has no point of its own."""

    low: Array
    high: Array
    shape: tuple[int, ...]
    periodic: tuple[bool, ...]

    @property
    def n_points(self) -> int:
        """Number of points."""
        return int(np.prod(self.shape))

    @property
    def axes(self) -> list[Array]:
        """Coordinates along each axis."""
        ends = zip(self.low, self.high, self.shape, self.periodic, strict=True)
        return [np.linspace(a, b, k, endpoint=not p) for a, b, k, p in ends]

    def points(self) -> Array:
        """All points, one in each row."""
        return np.stack([part.ravel() for part in np.meshgrid(*self.axes, indexing="ij")], axis=1)

    def finer(self) -> Grid:
        """Grid with twice as many intervals along each axis; it has the points of this one."""
        shape = tuple(2 * k if p else 2 * k - 1 for k, p in zip(self.shape, self.periodic, strict=True))
        return Grid(self.low, self.high, shape, self.periodic)

    def coarse_places(self) -> Array:
        """Numbers of the points of this grid in the finer one."""
        finer = self.finer()
        places = np.meshgrid(*(2 * np.arange(k) for k in self.shape), indexing="ij")
        return np.asarray(np.ravel_multi_index([p.ravel() for p in places], finer.shape))

    def weights(self, X: Array) -> sp.csr_array:
        """Weights of the corners around each row (rows, points); rows outside of the box count as on its edge."""
        n, d = X.shape
        total = np.ones((n, 1))
        index = np.zeros((n, 1), dtype=np.int64)
        for j, (k, periodic) in enumerate(zip(self.shape, self.periodic, strict=True)):
            span = self.high[j] - self.low[j]
            place = (X[:, j] - self.low[j]) / span * (k if periodic else k - 1)
            place = place % k if periodic else np.clip(place, 0, k - 1)
            cell = np.minimum(np.floor(place).astype(np.int64), k - 1 if periodic else max(k - 2, 0))
            upper = (cell + 1) % k if periodic else np.minimum(cell + 1, k - 1)
            share = place - cell
            total = np.hstack([total * (1 - share)[:, None], total * share[:, None]])
            index = np.hstack([index * k + cell[:, None], index * k + upper[:, None]])
        rows = np.repeat(np.arange(n), 2**d)
        W = sp.csr_array((total.ravel(), (rows, index.ravel())), shape=(n, self.n_points))
        W.sum_duplicates()
        W.eliminate_zeros()
        return W
