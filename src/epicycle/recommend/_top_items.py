"""The best items of users, and the items next to an item, by blocks of scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

Array = np.ndarray

#: Scores that are held at a time.
_BLOCK_SCORES = 1 << 22


def largest(scores: Array, n: int) -> Array:
    """Places of the n largest numbers, the largest first; among equal ones the first."""
    if n < len(scores):
        least = np.partition(scores, len(scores) - n)[len(scores) - n]
        above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
        kept = np.concatenate([above, equal[: n - len(above)]])
    else:
        kept = np.arange(len(scores))
    kept = np.sort(kept)
    order: Array = kept[np.argsort(-scores[kept], kind="stable")]
    return order


def best_items(
    users: Array, factors: Array, items: Array, constants: Array, seen: tuple[Array, Array] | None, n: int
) -> Iterator[tuple[Array, Array]]:
    """For every user (a code, -1 for none) places and scores of the n best items, without those that were seen."""
    k = items.shape[1]
    at_once = max(1, _BLOCK_SCORES // max(1, len(items)))
    for lo in range(0, len(users), at_once):
        block = users[lo : lo + at_once]
        known = np.where((block >= 0)[:, None], factors[np.maximum(block, 0)], 0.0)
        scores = known @ items.T + constants if k else np.tile(constants, (len(block), 1))
        for u, row in zip(block.tolist(), scores, strict=True):
            allowed = n
            if seen is not None and u >= 0:
                start, at = seen
                mine = at[start[u] : start[u + 1]]
                row[mine] = -np.inf
                allowed = min(n, len(row) - len(mine))
            found = largest(row, allowed)
            yield found, row[found]
