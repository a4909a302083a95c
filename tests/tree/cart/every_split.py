"""All splits of one node, tried one after the other in plain NumPy, with costs written from their definitions."""

from itertools import combinations

import numpy as np


def median(y, w):
    order = np.argsort(y)
    below = np.cumsum(w[order])
    return y[order][np.searchsorted(below, below[-1] / 2)]


def cost(y, w, criterion, l2=0.0):
    """The loss of the best constant, summed over rows; y are numbers, or classes as whole numbers."""
    W = w.sum()
    if criterion == "squared_error":
        c = (w @ y) / (W + l2)
        return w @ (y - c) ** 2 + l2 * c * c
    if criterion == "absolute_error":
        return w @ np.abs(y - median(y, w))
    if criterion == "poisson":
        c = (w @ y) / W
        if c <= 0:
            return np.inf
        return w @ (np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / c), 0.0) - y + c)
    p = np.bincount(y.astype(int), weights=w) / W
    p = p[p > 0]
    return W * (1 - p @ p) if criterion == "gini" else -W * (p @ np.log2(p))


def candidates(x, categorical):
    """Masks of the rows that go left."""
    missing = np.isnan(x)
    if categorical:
        codes = np.where(missing, -1, x)
        levels = np.unique(codes)
        for size in range(1, len(levels)):
            for chosen in combinations(levels, size):
                if levels[0] in chosen:
                    yield np.isin(codes, chosen)
        return
    numbers = np.unique(x[~missing])
    for v in numbers[:-1]:
        yield ~missing & (x <= v)
        if missing.any():
            yield missing | (x <= v)
    if missing.any() and len(numbers):
        yield ~missing


def best_gain(X, y, w, criterion, *, categorical=(), min_leaf=1, min_weight=0.0, l2=0.0):
    """The largest fall of the cost by any split that is allowed; -inf where there is none."""
    whole, best = cost(y, w, criterion, l2), -np.inf
    for j in range(X.shape[1]):
        for left in candidates(X[:, j], j in categorical):
            n = np.count_nonzero(left)
            if min(n, len(y) - n) < min_leaf or min(w[left].sum(), w[~left].sum()) < min_weight:
                continue
            both = cost(y[left], w[left], criterion, l2) + cost(y[~left], w[~left], criterion, l2)
            best = max(best, whole - both)
    return best
