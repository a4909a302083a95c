"""A panel in long form: one row for each unit and time, and a treatment that begins once and stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.causal.designs._inputs import binary, codes, column
from epicycle.core._exceptions import DataError

Array = np.ndarray


@dataclass(frozen=True)
class Panel:
    """Rows of units and times by their codes, and the time at which each unit's treatment begins (T for never)."""

    y: Array
    unit: Array
    time: Array
    treated: Array
    units: Array
    times: Array
    start: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of units and of times."""
        return len(self.units), len(self.times)

    def table(self, owner: str) -> Array:
        """Outcomes as a table of units and times, all of which have to be there."""
        n, T = self.shape
        if len(self.y) != n * T:
            count = np.bincount(self.unit, minlength=n)
            short = self.units[int(count.argmin())]
            raise DataError(
                f"y: {owner} needs every unit at every time, {n * T} rows; got {len(self.y)} (unit {short!s} has "
                f"{count.min()} of {T} times)"
            )
        out = np.empty((n, T))
        out[self.unit, self.time] = self.y
        return out


def panel_of(y: Any, unit: Any, time: Any, treatment: Any) -> Panel:
    """Check the columns of a panel."""
    y = column("y", y)
    n = len(y)
    unit_code, units = codes("unit", unit, n)
    time_code, times = codes("time", time, n)
    d = binary("treatment", treatment, n)
    pairs = unit_code * len(times) + time_code
    values, counts = np.unique(pairs, return_counts=True)
    if (counts > 1).any():
        u, t = divmod(int(values[counts.argmax()]), len(times))
        raise DataError(f"unit, time: {counts.max()} rows for unit {units[u]!s} at {times[t]!s}; expected one")
    start = np.full(len(units), len(times))
    np.minimum.at(start, unit_code[d == 1], time_code[d == 1])
    ended = (d == 0) & (time_code >= start[unit_code])
    if ended.any():
        u = units[unit_code[int(ended.argmax())]]
        raise DataError(f"treatment: ends again for unit {u!s}; expected a treatment that stays once it has begun")
    return Panel(y, unit_code, time_code, d, units, times, start)
