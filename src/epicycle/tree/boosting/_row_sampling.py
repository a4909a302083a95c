"""Which rows a round of boosting sees, and what each of them then counts for.

Uniform: every row with the same probability, and what a tree sums up is a share of all. By gradient: with
r_i = sqrt(sum_k g_ik^2 + lambda_k h_ik^2), which is what a row can add to the sums of a tree, row i is seen with
probability p_i = min(1, r_i / mu) and counts 1 / p_i times. Sums over the rows that are seen then have the sums over
all rows as their expectation, and among all such draws of the same expected size these have the least variance
(Ibragimov and Gusev, 2019). lambda_k is the square of the mean step sum |g| / sum h.

The numbers that decide are drawn by the seed, the round and the number of the row, and mu follows from how many rows
have which r: both are the same wherever the rows are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from epicycle.core._random import stream
from epicycle.tree.boosting._losses import power_above

__all__ = ["BUCKETS", "Drawn", "bucket_counts", "draw", "ridges", "row_sizes", "threshold"]

_SHIFT = 16  # r is told to seven bits: mu is within a hundredth
BUCKETS = 1 << (31 - _SHIFT)


class Drawn(NamedTuple):
    """Numbers of rows, None for all, and how often each of them counts, None for once."""

    rows: np.ndarray | None
    factor: np.ndarray | None = None

    def times(self, of_rows: np.ndarray) -> np.ndarray:
        """An array with an entry for every row, each as often as its row counts."""
        if self.factor is None:
            return of_rows
        out = of_rows.copy()
        out[self.rows] *= self.factor if out.ndim == 1 else self.factor[:, None]
        return out


def draw(
    seed: int, number: int, share: float, start: int, stop: int, *, sizes: np.ndarray | None = None, mu: float = 0.0
) -> Drawn:
    """Which of the rows start:stop round `number` sees, counted from start; by gradient where `sizes` r are given."""
    if share == 1:
        return Drawn(None)
    generator = stream(seed, "rows", number)
    philox: Any = generator.bit_generator
    philox.advance(start // 4)  # it makes four numbers at a time
    numbers = generator.random(start % 4 + stop - start)[start % 4 :]
    if sizes is None:
        return Drawn(np.flatnonzero(numbers < share).astype(np.uint32))
    rows = np.flatnonzero((sizes > 0) & (numbers * mu < sizes)).astype(np.uint32)
    return Drawn(rows, np.maximum(np.float32(mu) / sizes[rows], np.float32(1.0)))


def ridges(abs_gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """lambda of each output, as a power of two, which no order of summation changes."""
    steps = np.divide(abs_gradient, curvature, out=np.ones_like(abs_gradient), where=curvature > 0)
    return np.array([power_above(float(step)) ** 2 for step in steps])


def row_sizes(gh: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """r of every row for gradients and curvatures (K, n, 2), in single precision."""
    total = np.zeros(gh.shape[1])
    for of_output, factor in zip(gh, ridge, strict=True):
        g, h = of_output[:, 0].astype(np.float64), of_output[:, 1].astype(np.float64)
        total += g * g + factor * (h * h)
    return np.sqrt(total).astype(np.float32)


def bucket_counts(sizes: np.ndarray) -> np.ndarray:
    """How many rows have an r of which first bits."""
    return np.bincount(sizes.view(np.uint32) >> np.uint32(_SHIFT), minlength=BUCKETS)


def threshold(counts: np.ndarray, share: float) -> float:
    """The mu with which so large a share of the rows is seen in expectation."""
    used = np.flatnonzero(counts)
    edges = (used.astype(np.uint32) << np.uint32(_SHIFT)).view(np.float32).astype(np.float64)
    some = counts[used].astype(np.float64)
    wanted = share * some.sum()
    # With mu between two edges, rows from the upper one on are all seen.
    below = np.concatenate([[0.0], np.cumsum(some * edges)])
    rest = wanted - np.concatenate([np.cumsum(some[::-1])[::-1], [0.0]])
    mu = np.divide(below, rest, out=np.full(len(below), np.inf), where=rest > 0)
    return float(mu[np.argmax(mu <= np.append(edges, np.inf))])
