"""Monitors: called by a solver after every iteration, they record the history and may ask the solver to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epicycle.core._history import History


class Monitor:
    """Records one row per iteration. The contract layer derives from it to call callbacks and show progress."""

    def __init__(self) -> None:
        self._rows: list[dict[str, float]] = []
        self._began = time.perf_counter()

    def __call__(
        self,
        iteration: int,
        x: np.ndarray,
        *,
        objective: float,
        state: Callable[[], Mapping[str, Any]] | None = None,
        **columns: float,
    ) -> bool:
        """Record an iteration; True asks the solver to stop after it.

        `state` gives, on demand, all that the solver needs to go on from here (arrays, numbers and strings only).
        """
        self._rows.append({"objective": objective, **columns, "seconds": time.perf_counter() - self._began})
        return False

    def history(self) -> History:
        """Everything recorded so far; a column that an iteration did not give is nan there."""
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        return History(**{name: [row.get(name, np.nan) for row in self._rows] for name in names})
