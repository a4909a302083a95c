"""Rows split by time: the model learns from what came before and is scored on what came after."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from epicycle.core._checks import open_unit
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core.estimator._catalogue import in_catalogue

Array = np.ndarray


@in_catalogue("select", "E15", certificate="exact")
def split_by_time(times: Any, test_size: float = 0.2, *, groups: Any = None) -> tuple[Array, Array]:
    """Rows to learn from and later rows to test on.

    No row of the test is earlier than one to learn from. Rows of one time stay together, in the test where the cut
    would divide them.

    Parameters
    ----------
    times : array-like of shape (n,)
        Numbers, dates, or texts that are in the order of time, such as ISO dates.
    test_size : float, default=0.2
        Share of the rows that are to be tested on; later rows of the same time come on top.
    groups : array-like of shape (n,), optional
        Such as users: each group is split by itself, and those with a single time are learnt from.

    Returns
    -------
    train, test : ndarray of int
        Numbers of rows, each in the order of the rows.

    Examples
    --------
    >>> from epicycle.select import split_by_time
    >>> train, test = split_by_time([2020, 2024, 2021, 2023, 2022], test_size=0.4)
    >>> train.tolist(), test.tolist()
    ([0, 2, 4], [1, 3])
    """
    test_size = open_unit("test_size", test_size)
    rank = _ranks("times", times)
    if groups is None:
        later = _later(rank, test_size)
        if later.all():
            raise DataError("times: one time for all rows that would be learnt from; expected earlier and later rows")
    else:
        code = _ranks("groups", groups)
        if len(code) != len(rank):
            raise DataError(f"groups: {len(code)} labels for {len(rank)} times")
        later = np.zeros(len(rank), dtype=bool)
        order = np.argsort(code, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
            mine = _later(rank[rows], test_size)
            if not mine.all():
                later[rows] = mine
    return np.flatnonzero(~later), np.flatnonzero(later)


def _later(rank: Array, test_size: float) -> Array:
    """Whether a row is of the test: its time is that of the last rows, or later."""
    n = len(rank)
    wanted = max(1, min(n - 1, math.floor(test_size * n + 0.5))) if n > 1 else 1
    cut = np.partition(rank, n - wanted)[n - wanted]
    return np.asarray(rank >= cut)


def _ranks(name: str, values: Any) -> Array:
    """The places of values among the sorted distinct ones."""
    column = np.asarray(values)
    if column.ndim != 1 or len(column) == 0:
        raise DataError(f"{name}: an array of shape {column.shape}; expected one value for each row")
    missing = column != column if column.dtype.kind in "fcmM" else np.array([v is None or v != v for v in column])
    if missing.any():
        raise DataError(f"{name}: the value of row {int(np.argmax(missing))} is missing")
    try:
        return np.asarray(np.unique(column, return_inverse=True)[1])
    except TypeError:
        raise DataTypeError(f"{name}: values of several types; expected numbers, dates or texts") from None
