"""Sampling of rows for a round of boosting: uniformly, or by gradient with minimal variance.

Uniform: every row has the same probability. By gradient: with the size

    r_i = sqrt(sum_k g_ik^2 + lambda_k h_ik^2),

a bound on the share of row i in the sums of a tree, it is drawn with probability p_i = min(1, r_i / mu) and weighted by
1 / p_i. Sums over the drawn rows are then unbiased, and among all such draws of the same expected size these have the
least variance (Ibragimov and Gusev, 2019; gradient-based one-side sampling, Ke et al., 2017, is a coarser form of it).
lambda_k is the square of the mean step sum |g| / sum h.

Random numbers depend on the seed, the round and the number of the row, and mu on the counts of rows by r: both are the
same for rows in memory and in partitions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from epicycle.core._random import stream
from epicycle.tree.boosting._sums import power_above

# Bits of a float32 r that are dropped when rows are counted by r: seven of the mantissa remain, and mu is within 1%.
_SHIFT = 16
BUCKETS = 1 << (31 - _SHIFT)


class Drawn(NamedTuple):
    """Numbers of the drawn rows, None for all, and the weights 1 / p of these, None for one."""

    rows: np.ndarray | None
    factor: np.ndarray | None = None

    def times(self, of_rows: np.ndarray) -> np.ndarray:
        """An array with an entry for every row, multiplied by the weights of the drawn rows."""
        if self.factor is None:
            return of_rows
        out = of_rows.copy()
        out[self.rows] *= self.factor if out.ndim == 1 else self.factor[:, None]
        return out


def draw(
    seed: int, number: int, share: float, start: int, stop: int, *, sizes: np.ndarray | None = None, mu: float = 0.0
) -> Drawn:
    """The drawn rows among start:stop in round `number`, counted from start; by gradient where `sizes` r are given."""
    if share == 1:
        return Drawn(None)
    generator = stream(seed, "rows", number)
    philox: Any = generator.bit_generator
    philox.advance(start // 4)  # the generator makes four numbers at a time
    numbers = generator.random(start % 4 + stop - start)[start % 4 :]
    if sizes is None:
        return Drawn(np.flatnonzero(numbers < share).astype(np.uint32))
    # u < p = min(1, r / mu) without a division; rows of size zero add nothing to any sum.
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
    """Counts of the rows by the leading bits of r."""
    return np.bincount(sizes.view(np.uint32) >> np.uint32(_SHIFT), minlength=BUCKETS)


def threshold(counts: np.ndarray, share: float) -> float:
    """The mu with which the expected share of drawn rows is `share`."""
    used = np.flatnonzero(counts)
    edges = (used.astype(np.uint32) << np.uint32(_SHIFT)).view(np.float32).astype(np.float64)
    some = counts[used].astype(np.float64)
    wanted = share * some.sum()
    # sum_i min(1, r_i / mu) = wanted. With mu between two edges, rows from the upper one on have probability one:
    # mu = (sum of r below) / (wanted - number of rows above).
    below = np.concatenate([[0.0], np.cumsum(some * edges)])
    rest = wanted - np.concatenate([np.cumsum(some[::-1])[::-1], [0.0]])
    mu = np.divide(below, rest, out=np.full(len(below), np.inf), where=rest > 0)
    return float(mu[np.argmax(mu <= np.append(edges, np.inf))])
