"""Exact quantiles of groups of numbers in batches or on a cluster, in six passes (radix selection).

A float, its sign bit turned, is an integer in the same order. Eleven bits of it at a time are counted in every group,
which gives those of the quantile, and only numbers that begin like them are counted next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

# 2048 counts a group stay in the first-level cache; six passes cover the 64 bits.
_DIGITS = ((53, 11), (42, 11), (31, 11), (20, 11), (9, 11), (0, 9))  # (shift, bits) from the first to the last
_SIGN = np.uint64(1 << 63)


def digit_counts(
    x: np.ndarray, group: np.ndarray, weight: np.ndarray | None, begin: np.ndarray, shift: int, bits: int
) -> np.ndarray:
    """Weights (or numbers) by group and digit, (s, groups, 2**bits), of the x that begin like `begin` (s, groups)."""
    word = (x + 0.0).view(np.uint64)  # no negative zero
    # Negative numbers: all bits turned, since a larger magnitude is a smaller number; others: above all of them.
    key = np.where(word & _SIGN, ~word, word | _SIGN)
    digit = ((key >> np.uint64(shift)) & np.uint64((1 << bits) - 1)).astype(np.intp)
    n_groups = begin.shape[1]
    counts = np.empty((len(begin), n_groups, 1 << bits))
    for out, of_side in zip(counts, begin, strict=True):
        here = slice(None) if shift + bits == 64 else (key >> np.uint64(shift + bits)) == of_side[group]
        cell = (group[here] << bits) + digit[here]
        of_rows = None if weight is None else weight[here]
        out[:] = np.bincount(cell, of_rows, minlength=n_groups << bits).reshape(out.shape)
    return counts


def select_by_digits(
    count: Callable[[np.ndarray, int, int], np.ndarray],
    weight_below: np.ndarray,
    *,
    strict: Sequence[bool] = (),
    relative: bool = False,
) -> np.ndarray:
    """The smallest number of every group with at least some weight at or below it.

    Parameters
    ----------
    count : callable
        (begin, shift, bits) -> the sum of :func:`digit_counts` over all rows; called once for each of six digits.
    weight_below : ndarray of shape (s, groups)
        The weight that has to lie at or below each of the s numbers of a group.
    strict : sequence of s bools, optional
        Where true, more weight than that.
    relative : bool
        Whether `weight_below` are shares of the weight of the group.

    Returns
    -------
    ndarray of shape (s, groups)
    """
    exceeds = np.array(strict or [False] * len(weight_below))[:, None, None]
    begin, below = np.zeros(weight_below.shape, np.uint64), np.zeros(weight_below.shape)
    target = None if relative else weight_below
    for shift, bits in _DIGITS:
        counts = count(begin, shift, bits)
        if target is None:
            target = weight_below * counts.sum(axis=2)
        up_to = below[:, :, None] + np.cumsum(counts, axis=2)
        enough = np.where(exceeds, up_to > target[:, :, None], up_to >= target[:, :, None])
        # Rounding of sums of weights may leave the whole group short of the target: then it is the largest number.
        last = (1 << bits) - 1 - np.argmax(counts[:, :, ::-1] > 0, axis=2)
        digit = np.where(enough.any(axis=2), np.argmax(enough, axis=2), last)
        digit = np.minimum(digit, last)
        below = np.take_along_axis(up_to - counts, digit[:, :, None], axis=2)[:, :, 0]
        begin = (begin << np.uint64(bits)) | digit.astype(np.uint64)
    # Undo the map to integers: a set first bit was a number >= 0.
    selected: np.ndarray = np.where(begin & _SIGN, begin ^ _SIGN, ~begin).view(np.float64)
    return selected


def quantiles(
    count: Callable[[np.ndarray, int, int], np.ndarray], tau: float, n: np.ndarray, total: np.ndarray | None
) -> np.ndarray:
    """The middle of the numbers that minimise the weighted quantile loss, of every group.

    `count` is as for :func:`select_by_digits`; n says how many numbers each group has, `total` their weights. The same
    as :func:`epicycle.tree.boosting._sums.weighted_quantile`.
    """
    # The minimisers are an interval where tau n is whole, up to rounding: its ends are selected.
    if total is None:
        low = np.maximum(np.ceil(tau * n - 1e-9), 1.0)
        high = np.minimum(np.floor(tau * n + 1e-9) + 1, n)
    else:
        slack = 1e-9 * total / n
        low, high = tau * total - slack, tau * total + slack
    ends = select_by_digits(count, np.stack([low, high]), strict=(False, total is not None))
    middle: np.ndarray = ends[0] + (ends[1] - ends[0]) / 2
    return middle
