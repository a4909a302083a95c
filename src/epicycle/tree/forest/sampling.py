"""Which rows a tree sees: drawn from a stream of its own, so that they can be drawn again."""

from __future__ import annotations

import numbers

import numpy as np

from epicycle.exceptions import ParameterError
from epicycle.randomness import stream

__all__ = ["row_counts", "sample_size"]


def sample_size(asked: float | None, n: int) -> int:
    """Rows of a sample, asked for as a number or as a share of n."""
    if asked is None:
        return n
    if isinstance(asked, numbers.Integral):
        if asked > n:
            raise ParameterError(f"max_samples={asked}; there are {n} rows of positive weight")
        return int(asked)
    return max(1, round(n * asked))


def row_counts(seed: int, tree: int, rows: np.ndarray, n: int, size: int, *, bootstrap: bool) -> np.ndarray | None:
    """How often each of n rows is in the sample of a tree, drawn from `rows`; None where all are, once."""
    random = stream(seed, "rows", tree)
    if bootstrap:
        drawn = random.integers(0, len(rows), size)
        counts = np.bincount(drawn, minlength=len(rows))
    elif size < len(rows):
        counts = np.zeros(len(rows), np.int64)
        counts[random.permutation(len(rows))[:size]] = 1
    else:
        return None
    if len(rows) == n:
        return counts
    of_all = np.zeros(n, np.int64)
    of_all[rows] = counts
    return of_all
