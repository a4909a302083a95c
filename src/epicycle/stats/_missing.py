"""Tables with missing entries, NaN: rows in which the same columns are there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def patterns(absent: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(columns that are there, rows) for every distinct row of a boolean table."""
    packed = np.packbits(absent, axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.ravel()
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse))
    for at, start, end in zip(first, np.concatenate([[0], ends[:-1]]), ends, strict=True):
        yield np.flatnonzero(~absent[at]), order[start:end]
