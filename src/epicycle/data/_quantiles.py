"""Exact quantiles of groups of numbers that are in many places, in six passes.

A float, its sign bit turned, is an integer in the same order. Eleven bits of it at a time are counted in every group,
which tells those of the quantile, and only numbers that begin like them are counted next.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["digit_counts", "quantiles"]

_DIGITS = ((53, 11), (42, 11), (31, 11), (20, 11), (9, 11), (0, 9))  # (shift, bits) from the first to the last
_SIGN = np.uint64(1 << 63)


def digit_counts(
    x: np.ndarray, group: np.ndarray, weight: np.ndarray | None, begin: np.ndarray, shift: int, bits: int
) -> np.ndarray:
    """Weights (or numbers) by group and digit, (s, groups, 2**bits), of the x that begin like `begin` (s, groups)."""
    word = (x + 0.0).view(np.uint64)  # no negative zero
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


def quantiles(
    count: Callable[[np.ndarray, int, int], np.ndarray], tau: float, n: np.ndarray, total: np.ndarray | None
) -> np.ndarray:
    """The middle of the numbers that minimise the weighted quantile loss, of every group.

    `count` sums :func:`digit_counts` up for (begin, shift, bits); n says how many each group has, `total` their
    weights. The same as :func:`epicycle.tree.boosting._losses.weighted_quantile`.
    """
    if total is None:  # by the number of those up to and with the quantile
        low = np.maximum(np.ceil(tau * n - 1e-9), 1.0)
        high = np.minimum(np.floor(tau * n + 1e-9) + 1, n)
    else:
        slack = 1e-9 * total / n
        low, high = tau * total - slack, tau * total + slack
    begin, below = np.zeros((2, len(n)), np.uint64), np.zeros((2, len(n)))
    for shift, bits in _DIGITS:
        counts = count(begin, shift, bits)
        up_to = below[:, :, None] + np.cumsum(counts, axis=2)
        enough = up_to >= np.stack([low, high])[:, :, None]
        if total is not None:
            enough[1] = up_to[1] > high[:, None]
        last = (1 << bits) - 1 - np.argmax(counts[:, :, ::-1] > 0, axis=2)
        digit = np.where(enough.any(axis=2), np.argmax(enough, axis=2), last)
        digit = np.minimum(digit, last)
        at = digit[:, :, None]
        below = np.take_along_axis(up_to - counts, at, axis=2)[:, :, 0]
        begin = (begin << np.uint64(bits)) | digit.astype(np.uint64)
    word = np.where(begin & _SIGN, begin ^ _SIGN, ~begin)
    a, b = word.view(np.float64)
    return a + (b - a) / 2
