"""Adding up states, always from the left, in place where nobody else can hold the sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import EngineError

#: What a statistic returns: a tuple of arrays, numbers, or objects with ``+``.
State = tuple[Any, ...]


class Fold:
    """The running sum  ((s_0 + s_1) + s_2) + ...  of tuples, elementwise."""

    def __init__(self) -> None:
        self._sum: list[Any] | None = None
        self._owned: list[bool] = []

    def add(self, state: State) -> None:
        """Add one state on the right."""
        if self._sum is None:
            if not isinstance(state, tuple):
                raise EngineError(f"a statistic returned {type(state).__name__}; expected a tuple")
            self._sum, self._owned = list(state), [False] * len(state)
            return
        if len(state) != len(self._sum):
            raise EngineError(f"a statistic returned {len(state)} terms after {len(self._sum)}")
        for i, term in enumerate(state):
            total = self._sum[i]
            # Only a sum made here is written to: the first state may be an array that the statistic still holds.
            if self._owned[i] and type(term) is np.ndarray and term.dtype == total.dtype and term.shape == total.shape:
                np.add(total, term, out=total)
            else:
                self._sum[i] = total = total + term
                self._owned[i] = type(total) is np.ndarray

    @property
    def began(self) -> bool:
        """Whether anything was added."""
        return self._sum is not None

    @property
    def total(self) -> State:
        """The sum so far."""
        if self._sum is None:
            raise EngineError("the data has no rows: there is nothing to sum")
        return tuple(self._sum)
