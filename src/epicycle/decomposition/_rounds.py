"""Rounds of alternating descent: how long they go on, and who is told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._monitor import Monitor


@dataclass(frozen=True)
class Rounds:
    """Limits of the rounds, their callbacks, and the state of an earlier run that was stopped."""

    tol: float
    max_iter: int
    monitor: Monitor
    x: Callable[[], np.ndarray]
    keep: Callable[[], Mapping[str, Any]] | None  # all that is needed to go on, except the numbers of the loop
    earlier: Mapping[str, Any] | None = None

    @property
    def done(self) -> int:
        return 0 if self.earlier is None else int(self.earlier["round"])

    def known(self, name: str) -> float | None:
        return None if self.earlier is None else float(self.earlier[name])

    def record(self, round_: int, value: float, relative: float, **numbers: float) -> bool:
        """Tell the monitor of a round; True asks to stop."""
        keep = self.keep
        state = None if keep is None else lambda: {**keep(), "round": round_, **numbers}
        return self.monitor(round_, self.x(), objective=value, state=state, stationarity=relative)
