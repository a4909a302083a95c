"""Rounds that assign every row to its nearest prototype and make each prototype the best for its rows.

The dissimilarity of a row and a prototype is a sum over columns: |x - c| or (x - c)^2 of numbers, and gamma where two
categories differ. The best prototype has in every column the median, the mean or the most frequent category of its
rows, so that no round raises  J = sum_i v_i min_a d(x_i, c_a).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from epicycle.cluster._descent import Round
from epicycle.core._exceptions import DataError
from epicycle.core._random import draw_distinct

_BLOCK = 1 << 20  # dissimilarities computed at a time


@dataclass(frozen=True)
class Dissimilarity:
    """Comparison of columns: those that hold codes of categories, their factor, and the loss of all others."""

    categories: np.ndarray
    gamma: float
    squared: bool

    def between(self, X: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
        """d of every row and prototype."""
        numbers = np.setdiff1d(np.arange(X.shape[1]), self.categories)
        step = max(1, _BLOCK // len(prototypes))
        return np.concatenate(
            [np.zeros((0, len(prototypes)))]
            + [self._block(X[a : a + step], prototypes, numbers) for a in range(0, len(X), step)]
        )

    def _block(self, X: np.ndarray, prototypes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        out = np.zeros((len(X), len(prototypes)))
        if len(numbers):
            kind = "sqeuclidean" if self.squared else "cityblock"
            out += cdist(X[:, numbers], prototypes[:, numbers], kind)
        differ = np.zeros(out.shape)
        for j in self.categories:
            differ += X[:, j, None] != prototypes[None, :, j]
        return out + self.gamma * differ

    def best(self, X: np.ndarray, weight: np.ndarray, label: np.ndarray, k: int) -> np.ndarray:
        """The best prototype of every cluster; of equally frequent categories the first. No cluster is empty."""
        out = np.empty((k, X.shape[1]))
        for j in range(X.shape[1]):
            if j in self.categories:
                codes = X[:, j].astype(np.int64)
                levels = int(codes.max()) + 1
                out[:, j] = np.bincount(label * levels + codes, weight, k * levels).reshape(k, levels).argmax(axis=1)
            elif self.squared:
                # About the mean of the column, so that a large offset costs no digits.
                middle = float(np.average(X[:, j], weights=weight))
                sums = np.bincount(label, weight * (X[:, j] - middle), k)
                out[:, j] = middle + sums / np.bincount(label, weight, k)
            else:
                out[:, j] = medians(X[:, j], weight, label, k)
        return out


def medians(x: np.ndarray, weight: np.ndarray, label: np.ndarray, k: int) -> np.ndarray:
    """The median of every cluster: the middle of the lower and the upper one."""
    order = np.lexsort((x, label))
    x, total = x[order], np.cumsum(weight[order])
    ends = np.cumsum(np.bincount(label, minlength=k))
    before = np.concatenate([[0.0], total[ends[:-1] - 1]])
    half = before + (total[ends - 1] - before) / 2
    # Sums are rounded: what is half but for that is half.
    slack = 1e-12 * total[-1]
    lower, upper = np.searchsorted(total, half - slack), np.searchsorted(total, half + slack, side="right")
    starts = np.concatenate([[0], ends[:-1]])
    return np.asarray((x[lower.clip(starts, ends - 1)] + x[upper.clip(starts, ends - 1)]) / 2)


@dataclass
class Rounds:
    """The rows of a fit, and one round after another."""

    X: np.ndarray
    weight: np.ndarray
    how: Dissimilarity
    last: float = np.inf

    def begun(self) -> Rounds:
        """The same rows for another start."""
        return Rounds(self.X, self.weight, self.how)

    def round(self, prototypes: np.ndarray) -> Round:
        """J of the clusters with their new prototypes; the movement is the number of prototypes that changed.

        A round that does not lower J is undone: categories have ties, among which rounds could go in a circle.
        """
        k, rows = len(prototypes), np.arange(len(self.X))
        d = self.how.between(self.X, prototypes)
        label = self._filled(d.argmin(axis=1), d.min(axis=1), k)
        after = self.how.best(self.X, self.weight, label, k)
        value = float(self.weight @ self.how.between(self.X, after)[rows, label])
        if not value < self.last * (1 - 1e-12):
            return Round(prototypes, self.last, 0.0)
        self.last = value
        return Round(after, value, float((after != prototypes).any(axis=1).sum()))

    def _filled(self, label: np.ndarray, d: np.ndarray, k: int) -> np.ndarray:
        """An empty cluster takes the row that is farthest from its prototype, of those whose cluster has others."""
        label = label.copy()
        sizes = np.bincount(label, minlength=k)
        order = iter(np.argsort(-d, kind="stable"))
        for a in np.flatnonzero(sizes == 0):
            row = next(i for i in order if sizes[label[i]] > 1)
            sizes[label[row]] -= 1
            label[row], sizes[a] = a, 1
        return label

    def scale(self) -> float:
        """The size of J with one cluster."""
        one = self.how.best(self.X, self.weight, np.zeros(len(self.X), dtype=np.int64), 1)
        d = self.how.between(self.X, one)[:, 0]
        with np.errstate(over="ignore"):
            most = 4.0 * d.max() * self.weight.sum()  # J of any k rows as prototypes is at most that
        if not np.isfinite(most):
            raise DataError("X, sample_weight: weighted sums of dissimilarities overflow; scale X or the weights down")
        return float(self.weight @ d)


# ------------------------------------------------------------------------------------------------- first prototypes


def first_rows(rounds: Rounds, init: str, k: int, rng: np.random.Generator) -> np.ndarray:
    """k different rows to begin with."""
    X, weight = rounds.X, rounds.weight
    if init == "random":
        return np.asarray(X[draw_distinct(rng, weight, k)])
    if init == "cao":
        return np.asarray(X[_dense_and_apart(rounds, k)])
    if init == "huang":
        return np.asarray(X[_near_drawn_categories(rounds, k, rng)])
    chosen, nearest, free = [], np.ones(len(X)), np.ones(len(X), dtype=bool)
    for i in range(k):
        # Relative to the largest that are left, products of weights and dissimilarities neither overflow nor vanish.
        left, far = np.where(free, weight, 0.0), np.where(free, nearest, 0.0)
        left, far = left / left.max(), far / max(float(far.max()), np.finfo(np.float64).tiny)
        share = left * far if (left * far).any() else left
        chosen.append(int(draw_distinct(rng, share, 1)[0]))
        free[chosen[-1]] = False
        d = rounds.how.between(X, X[chosen[-1:]])[:, 0]
        nearest = d if i == 0 else np.minimum(nearest, d)
    return np.asarray(X[chosen])


def _frequencies(rounds: Rounds) -> list[np.ndarray]:
    """The share of every category, column by column."""
    total = rounds.weight.sum()
    return [np.bincount(rounds.X[:, j].astype(np.int64), rounds.weight) / total for j in rounds.how.categories]


def _dense_and_apart(rounds: Rounds, k: int) -> np.ndarray:
    """Rows of frequent categories that differ much from those before (Cao, Liang and Bai 2009)."""
    X, columns = rounds.X, rounds.how.categories
    shares = [f[X[:, j].astype(np.int64)] for j, f in zip(columns, _frequencies(rounds), strict=True)]
    density = np.mean(shares, axis=0) if shares else np.ones(len(X))
    chosen, free = [int(density.argmax())], np.ones(len(X), dtype=bool)
    apart = np.full(len(X), np.inf)
    for _ in range(1, k):
        free[chosen[-1]] = False
        apart = np.minimum(apart, rounds.how.between(X, X[chosen[-1:]])[:, 0])
        chosen.append(int(np.where(free, apart * density, -1.0).argmax()))
    return np.array(chosen)


def _near_drawn_categories(rounds: Rounds, k: int, rng: np.random.Generator) -> np.ndarray:
    """The rows nearest to prototypes whose categories are drawn by their frequencies (Huang 1998)."""
    X, columns = rounds.X, rounds.how.categories
    free, chosen = np.ones(len(X), dtype=bool), []
    frequencies = _frequencies(rounds)
    for _ in range(k):
        drawn = [rng.choice(len(f), p=f / f.sum()) for f in frequencies]
        differ = (X[:, columns] != np.array(drawn)).sum(axis=1) if len(columns) else rng.random(len(X))
        chosen.append(int(np.where(free, differ, np.inf).argmin()))
        free[chosen[-1]] = False
    return np.array(chosen)


def as_codes(X: np.ndarray, categories: np.ndarray, counts: Any) -> np.ndarray:
    """Missing categories, NaN, as a code of their own after all others."""
    out = np.array(X, dtype=np.float64)
    for j, count in zip(categories, counts, strict=True):
        out[np.isnan(out[:, j]), j] = count
    return out
