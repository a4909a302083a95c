"""Boosted trees by the book: every split of every leaf is tried, on the bins themselves, in plain NumPy."""

from itertools import combinations

import numpy as np

MISSING = 255


def score(G, H, l2):
    return G * G / (H + l2)


def candidates(column, categorical):
    """Masks of the rows that go left: every threshold with either side for the missing, or every set of levels."""
    missing = column == MISSING
    if categorical:
        levels = np.unique(column)
        for size in range(1, len(levels)):
            for chosen in combinations(levels, size):
                if levels[0] in chosen:  # a set and its complement are one split
                    yield np.isin(column, chosen)
        return
    numbers = np.unique(column[~missing])
    for b in numbers[:-1]:
        yield ~missing & (column <= b)
        if missing.any():
            yield missing | (column <= b)
    if missing.any() and len(numbers):
        yield ~missing


def best_split(bins, g, h, rows, *, l2=0.0, min_samples=1, min_child_weight=1e-3, categorical=(), smoothing=0.0):
    """(gain, mask among `rows` of those that go left) of the best split; gain 0 where there is none."""
    best = (0.0, None)
    for j in range(bins.shape[1]):
        extra = l2 + (smoothing if j in categorical else 0.0)
        parent = score(g[rows].sum(), h[rows].sum(), extra)
        for left in candidates(bins[rows, j], j in categorical):
            n_left = np.count_nonzero(left)
            GL, HL = g[rows][left].sum(), h[rows][left].sum()
            GR, HR = g[rows][~left].sum(), h[rows][~left].sum()
            if min(n_left, len(rows) - n_left) < min_samples or min(HL, HR) < min_child_weight:
                continue
            gain = (score(GL, HL, extra) + score(GR, HR, extra) - parent) / 2
            if gain > best[0] * (1 + 1e-9) + 1e-12:
                best = (gain, left)
    return best


def grow(bins, g, h, *, max_leaves, l2=0.0, **rules):
    """Leaf values of every row of a tree that is grown best first."""
    leaves = [np.arange(len(g))]
    options = [best_split(bins, g, h, leaves[0], l2=l2, **rules)]
    while len(leaves) < max_leaves and max(gain for gain, _ in options) > 0:
        i = int(np.argmax([gain for gain, _ in options]))
        rows, (_, left) = leaves.pop(i), options.pop(i)
        for part in (rows[left], rows[~left]):
            leaves.append(part)
            options.append(best_split(bins, g, h, part, l2=l2, **rules))
    value = np.empty(len(g))
    for rows in leaves:
        value[rows] = -g[rows].sum() / (h[rows].sum() + l2)
    return value
