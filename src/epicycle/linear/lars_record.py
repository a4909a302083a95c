"""What is kept of a path of least angle regression: breakpoints, active columns and their coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.linear.lars_steps import LeastAngle, Step

__all__ = ["PathRecord"]


class PathRecord:
    """Points of one path, of which only the active coefficients are stored."""

    def __init__(self) -> None:
        self.alphas: list[float] = []
        self._columns: list[np.ndarray] = []
        self._values: list[np.ndarray] = []
        self._signs = np.empty(0)

    @property
    def n_steps(self) -> int:
        """Points without the first."""
        return len(self.alphas) - 1

    def add(self, path: LeastAngle, step: Step | None = None) -> None:
        """The point where the path, or a step of it, has come to."""
        self.alphas.append(path.C if step is None else step.alpha)
        if step is not None and step.alpha != path.C:  # a step of length zero: the coefficients are those before it
            self._columns.append(self._columns[-1])
            self._values.append(self._values[-1])
        else:
            self._columns.append(path.active)
            self._values.append(path.w.copy())
            self._signs = path.s

    def replace_last(self, path: LeastAngle) -> None:
        """The end of the path once more, without the rounding of the way there."""
        self._columns[-1], self._values[-1] = path.active, path.w.copy()

    def active(self) -> np.ndarray:
        """Columns at the end."""
        return self._columns[-1].copy()

    def matrix(self, p: int) -> sp.csc_array:
        """The coefficients, one column for each point."""
        starts = np.cumsum([0, *(len(columns) for columns in self._columns)])
        rows, values = np.concatenate(self._columns), np.concatenate(self._values)
        matrix = sp.csc_array((values, rows, starts), shape=(p, len(self.alphas)))
        matrix.sort_indices()
        return matrix

    def last(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Active columns, signs, coefficients and C, to go on from."""
        return self._columns[-1], self._signs, self._values[-1], self.alphas[-1]

    def state(self) -> dict[str, Any]:
        """All of it, as plain arrays."""
        return {
            "alphas": np.array(self.alphas),
            "lengths": np.array([len(columns) for columns in self._columns]),
            "columns": np.concatenate(self._columns),
            "values": np.concatenate(self._values),
            "signs": self._signs,
        }

    @classmethod
    def resumed(cls, state: Mapping[str, Any]) -> PathRecord:
        """The record of an interrupted fit."""
        record = cls()
        cuts = np.cumsum(np.asarray(state["lengths"]))[:-1]
        record.alphas = [float(alpha) for alpha in state["alphas"]]
        record._columns = np.split(np.asarray(state["columns"]), cuts)
        record._values = np.split(np.asarray(state["values"]), cuts)
        record._signs = np.asarray(state["signs"])
        return record
