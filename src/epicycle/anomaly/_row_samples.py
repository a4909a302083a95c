"""Samples of rows for isolation trees.

Rows are put in an order that depends on their content alone, and draws are positions in this order: a forest does not
depend on the order of the rows, and a row of weight 3 is drawn exactly as three equal rows are.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._random import draw_distinct, stream
from epicycle.engine._row_order import row_hashes

_AUTO = 256  # rows of a sample, of Liu, Ting and Zhou
_MOST_REPETITIONS = 2.0**52  # up to which whole weights are counted exactly


class IsolationSamples:
    """Samples of the rows of positive weight, one for each tree.

    Parameters
    ----------
    X : array or CSR matrix
    weight : ndarray of shape (n,), or None
        Whole numbers are repetitions; others are shares with which rows are drawn.
    max_samples : "auto", int or float
    bootstrap : bool
        Whether rows are drawn with replacement.
    """

    def __init__(self, X: Any, weight: np.ndarray | None, max_samples: Any, *, bootstrap: bool) -> None:
        order = np.argsort(row_hashes(X), kind="stable")
        self.rows = order if weight is None else order[weight[order] > 0]
        if len(self.rows) == 0:
            raise DataError("sample_weight: no row of positive weight is left to learn from")
        self.bootstrap = bootstrap
        self.mass = self.ends = None
        self.total = len(self.rows)
        if weight is not None and not bool((weight[self.rows] == 1).all()):
            mass = weight[self.rows]
            if mass.max() > _MOST_REPETITIONS:  # shares, of which none vanishes
                mass = np.maximum(mass / mass.max(), np.finfo(np.float64).tiny)
            self.ends = np.cumsum(mass)
            if bool((mass == np.floor(mass)).all()) and self.ends[-1] <= _MOST_REPETITIONS:
                self.total = int(self.ends[-1])
            else:
                self.mass = mass
        self.asked = max_samples
        self.size = min(self._size(max_samples), self.total)

    def _size(self, asked: Any) -> int:
        if isinstance(asked, str):
            return _AUTO
        return int(asked) if isinstance(asked, numbers.Integral) else max(1, int(asked * self.total))

    @property
    def asks_too_many(self) -> bool:
        """Whether more rows are asked for than there are."""
        return not isinstance(self.asked, str) and self._size(self.asked) > self.total

    def draw(self, seed: int, tree: int) -> np.ndarray:
        """Numbers of the rows in the sample of a tree, in the order of their content."""
        random, size = stream(seed, "rows", tree), self.size
        require_memory(32.0 * size, f"a sample of {size:,} rows", "take a smaller max_samples")
        if self.mass is not None and not self.bootstrap:
            return np.asarray(self.rows[np.sort(draw_distinct(random, self.mass, size))])
        if self.mass is not None and self.ends is not None:
            places = np.searchsorted(self.ends, random.random(size) * self.ends[-1], side="right")
            return np.asarray(self.rows[np.sort(np.minimum(places, len(self.rows) - 1))])
        drawn = random.integers(0, self.total, size) if self.bootstrap else random.choice(self.total, size, False)
        drawn = np.sort(drawn)
        return np.asarray(self.rows[drawn if self.ends is None else np.searchsorted(self.ends, drawn, side="right")])
