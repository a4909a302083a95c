"""The factors of rows, which change round by round: W in this process, or beside the partitions of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.data import ArrayData, Batch, DaskData, Data

#: function(batch, rows of W, *parameters): moves the rows of W in place, and returns sums over them.
Step = Callable[..., tuple[Any, ...]]


class RowFactors:
    """W of shape (n, k), and the rows that it belongs to.

    Parameters
    ----------
    data : Data
    W : ndarray of shape (n, k)
        The start, which is taken over and written to.
    n_jobs : int or None
    """

    def __init__(self, data: Data, W: np.ndarray, n_jobs: int | None) -> None:
        self.data, self.n_jobs = data, n_jobs
        self._W = W
        self._states = engine.make_states(data, _state, W, n_jobs=n_jobs) if isinstance(data, DaskData) else None

    def step(self, function: Step, *parameters: Any) -> tuple[Any, ...]:
        """Move all rows of W, and return the sums over them, always added in the same order."""
        if self._states is None:
            return engine.sum(_in_place, self.data, self._W, function, parameters, n_jobs=self.n_jobs)
        self._states = self._states.map(_moved, function, parameters)
        return self._states.sum(_sums)

    def kept(self) -> Any:
        """The state that `restore` needs to come back to W as it is now."""
        return self._W.copy() if self._states is None else self._states

    def restore(self, kept: Any) -> None:
        """Go back to an earlier W."""
        if self._states is None:
            self._W[:] = kept
        else:
            self._states = kept

    @property
    def factors(self) -> np.ndarray:
        """The rows of this process; on a cluster they stay there."""
        return self._W


def _in_place(batch: Batch, W: np.ndarray, function: Step, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
    return function(batch, W[batch.start : batch.start + batch.n_rows], *parameters)


def _state(part: ArrayData, _number: int, start: int, W: np.ndarray) -> Any:
    return part, W[start : start + part.n_rows].copy(), ()


def _moved(state: Any, function: Step, parameters: tuple[Any, ...]) -> Any:
    part, W, _ = state
    W = W.copy()  # a state is never changed in place: it may have to be made again
    total: tuple[Any, ...] = ()
    for batch in part.batches():
        sums = _in_place(batch, W, function, parameters)
        total = sums if not total else tuple(a + b for a, b in zip(total, sums, strict=True))
    return part, W, total


def _sums(state: Any) -> tuple[Any, ...]:
    return tuple(state[2])
