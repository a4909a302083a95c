"""Histories: the trace of a fit, one row for each iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.core._checks import optional_import
from epicycle.core._plot_style import Axes, axes_of, styled

if TYPE_CHECKING:
    import pandas as pd


class History(Mapping[str, np.ndarray]):
    """Record of a fit, one row for each iteration, columns such as ``objective``, ``step`` and ``seconds``.

    Columns are read as attributes (``history.objective``) or items (``history["objective"]``).
    """

    def __init__(self, **columns: Sequence[float] | np.ndarray) -> None:
        arrays = {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}
        if len({len(a) for a in arrays.values()}) > 1:
            raise ValueError(f"columns differ in length: { {k: len(a) for k, a in arrays.items()} }")
        self._columns = arrays

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._columns)

    @property
    def n_iter(self) -> int:
        """Number of recorded iterations."""
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __getattr__(self, name: str) -> np.ndarray:
        columns: dict[str, np.ndarray] = self.__dict__.get("_columns", {})  # empty while a copy is being built
        if name not in columns:
            raise AttributeError(f"history has no column {name!r}; it has {list(columns)}")
        return columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, History)
            and self.columns == other.columns
            and all(np.array_equal(self[c], other[c], equal_nan=True) for c in self)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self._columns:
            return "History(empty)"
        last = ", ".join(f"{c}={a[-1]:.6g}" for c, a in self._columns.items() if len(a))
        return f"History({self.n_iter} iterations; last: {last})"

    def to_frame(self) -> pd.DataFrame:
        """The history as a pandas DataFrame indexed by iteration."""
        pd = optional_import("pandas", "History.to_frame")
        return pd.DataFrame(self._columns).rename_axis("iteration")

    @styled
    def plot(self, column: str = "objective", *, ax: Axes | None = None, **line: Any) -> Axes:
        """Draw one column against the iteration, as the distance to its best value on a log scale where it fits."""
        ax = axes_of(ax)
        values = self[column]
        excess = values - np.nanmin(values) if values.size else values
        if column == "objective" and np.count_nonzero(excess > 0) >= 3:
            shown = np.where(excess > 0, excess, np.nan)
            ax.semilogy(np.arange(len(values)), shown, marker="o", ms=3, **line)
            ax.set_ylabel("objective above its best value")
        else:
            ax.plot(np.arange(len(values)), values, marker="o", ms=3, **line)
            ax.set_ylabel(column)
        ax.set_xlabel("iteration")
        ax.locator_params(axis="x", integer=True)
        return ax
