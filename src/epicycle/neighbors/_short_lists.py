"""Short lists of candidates, one for each query, that native code fills and cuts."""

from __future__ import annotations

import numpy as np

__all__ = ["ShortLists"]


class ShortLists:
    """Room for the candidates of n queries of which k are wanted."""

    def __init__(self, n: int, k: int) -> None:
        room = 2 * k + 96
        self.k = k
        self.score = np.empty((n, room))
        self.row = np.zeros((n, room), dtype=np.int64)
        self.count = np.zeros(n, dtype=np.int64)
        self.limit = np.full(n, np.inf)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.score, self.row, self.count, self.limit
