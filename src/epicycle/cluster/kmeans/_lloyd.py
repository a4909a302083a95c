"""Lloyd's iteration:  c_k = mean of the rows nearest to it,  until nothing moves.

Each round lowers  J = sum_i v_i min_k |x_i - c_k|^2  or leaves it, and there are finitely many clusterings, so that it
ends. Rows in memory keep bounds on their distances, which show for most of them that their centre is still the nearest
(Hamerly 2010; one bound for each group of centres, Ding et al. 2015); the labels are those of the plain loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import _native, engine
from epicycle.cluster._descent import Round
from epicycle.cluster.kmeans._spread import Spread
from epicycle.core._threads import n_threads
from epicycle.data import ArrayData, Batch, Data
from epicycle.stats._class_scatter import dense_rows

#: Centres whose scores are computed together, as in native/cluster.
TILE = 16
#: Bounds for single groups of centres pay where there are many centres; one bound for all of them where there are few.
FEW_CENTERS = 4 * TILE
#: Rounds after which sums are computed afresh.
_FRESH_SUMS = 32


@dataclass
class Clusters:
    """Sums over the rows of each cluster: of v (x - origin), and of weights v."""

    sums: np.ndarray
    weight: np.ndarray

    def __add__(self, other: Clusters) -> Clusters:
        return Clusters(self.sums + other.sums, self.weight + other.weight)


@dataclass
class Farthest:
    """The `count` distinct rows that are farthest from their centres, with the weight of all equal ones."""

    count: int
    distance: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    label: np.ndarray

    def __add__(self, other: Farthest) -> Farthest:
        both = [np.concatenate([getattr(self, n), getattr(other, n)]) for n in ("distance", "rows", "weight", "label")]
        return Farthest(self.count, *both).merged()

    def merged(self) -> Farthest:
        """Equal rows as one, the farthest first; which copy of a row came first plays no part."""
        rows, first, number = np.unique(self.rows, axis=0, return_index=True, return_inverse=True)
        weight = np.bincount(number.ravel(), weights=self.weight, minlength=len(rows))
        at = np.argsort(-self.distance[first], kind="stable")[: self.count]
        return Farthest(self.count, self.distance[first][at], rows[at], weight[at], self.label[first][at])


class Assigner(ABC):
    """The rows of a fit, which are assigned to centres round after round. Centres are given about the origin."""

    def __init__(self, data: Data, origin: np.ndarray, n_jobs: int | None) -> None:
        self.data, self.origin, self.n_jobs = data, origin, n_jobs

    @abstractmethod
    def clusters(self, centers: np.ndarray, moved: np.ndarray | None) -> Clusters:
        """Sums over the rows nearest to each centre; `moved` is how far each centre is from where it was last time."""

    def farthest(self, centers: np.ndarray, count: int) -> Farthest:
        """The rows with the largest distances from their centres."""
        found: Farthest
        (found,) = engine.sum(_farthest_rows, self.data, centers + self.origin, count, n_jobs=self.n_jobs)
        return found


class BatchAssigner(Assigner):
    """Rows that come in batches: every distance is computed."""

    def clusters(self, centers: np.ndarray, moved: np.ndarray | None) -> Clusters:
        found: Clusters
        (found,) = engine.sum(_clusters_of_batch, self.data, self.origin, centers, n_jobs=self.n_jobs)
        return found


class MemoryAssigner(Assigner):
    """Rows in memory, with bounds on their distances between two rounds."""

    def __init__(self, data: ArrayData, origin: np.ndarray, n_jobs: int | None, k: int, algorithm: str) -> None:
        super().__init__(data, origin, n_jobs)
        self.X, self.weight = data.X, data.weight
        n = data.n_rows
        tiles = -(-k // TILE)
        if algorithm == "auto":
            algorithm = "hamerly" if k <= FEW_CENTERS else "yinyang"
        self.per_group = tiles if algorithm == "hamerly" else 1
        groups = 0 if algorithm == "lloyd" else -(-tiles // self.per_group)
        self.label = np.zeros(n, dtype=np.int64)
        self.upper = np.zeros(n if groups else 0)
        self.lower = np.zeros((n, groups))
        self.threads = n_threads(float(n) * k * data.n_features, n_jobs)
        self.sums: Clusters | None = None
        self.rounds = 0

    def clusters(self, centers: np.ndarray, moved: np.ndarray | None) -> Clusters:
        k, before = len(centers), self.label.copy()
        _native.cluster.assign(
            self.X, self.origin, centers, self.label, self.upper, self.lower, self.per_group, moved, self.threads
        )
        self.rounds += 1
        changed = np.flatnonzero(self.label != before)
        # Few rows change their cluster after the first rounds: the sums of all others stay. Now and then they are
        # computed afresh, so that rounding does not add up.
        if self.sums is None or self.rounds % _FRESH_SUMS == 0 or 4 * len(changed) > len(self.label):
            self.sums = self._fresh_sums(k)
        elif len(changed):
            weight = self._weight_of(self.label[changed], changed, k) - self._weight_of(before[changed], changed, k)
            weight += self.sums.weight
            if self.weight is None or (weight > 0).all():
                _native.cluster.move_rows(self.X, self.origin, self.weight, before, self.label, self.sums.sums)
                self.sums = Clusters(self.sums.sums, weight)
            else:  # what is left of a cluster without rows is rounding
                self.sums = self._fresh_sums(k)
        return self.sums

    def _fresh_sums(self, k: int) -> Clusters:
        return cluster_sums(self.X, self.label, self.weight, self.origin, k, self.threads)

    def _weight_of(self, label: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
        weight = None if self.weight is None else self.weight[rows]
        return np.bincount(label, weights=weight, minlength=k).astype(np.float64)


class Lloyd:
    """Rounds of Lloyd's iteration from one start.

    A round has J of the clusters about their means; its movement is squared, relative to a feature's mean variance.
    """

    def __init__(self, rows: Assigner, spread: Spread) -> None:
        self.rows, self.spread = rows, spread
        self.total = spread.total_about(rows.origin)
        self.moved: np.ndarray | None = None

    def round(self, centers: np.ndarray) -> Round:
        clusters = refilled(self.rows, self.rows.clusters(centers, self.moved), centers)
        full = clusters.weight > 0
        weight = np.where(full, clusters.weight, 1.0)
        means = clusters.sums / weight[:, None]
        means[~full] = centers[~full]
        value = max(self.total - float((_squares(clusters.sums) / weight)[full].sum()), 0.0)
        squares = _squares(means - centers)
        self.moved = np.sqrt(squares)
        shift = float(squares.sum()) / self.spread.variance if self.spread.variance > 0 else 0.0
        return Round(means, value, shift)


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def refilled(rows: Assigner, clusters: Clusters, centers: np.ndarray) -> Clusters:
    """Give every empty cluster the row that is farthest from its own centre, which leaves its old cluster."""
    empty = np.flatnonzero(clusters.weight == 0)
    if not len(empty):
        return clusters
    found = rows.farthest(centers, len(empty))
    sums, weight = clusters.sums.copy(), clusters.weight.copy()
    for a, far in zip(empty, range(len(found.distance)), strict=False):
        old, w = found.label[far], found.weight[far]
        if found.distance[far] == 0 or w == 0 or weight[old] <= w * (1 + 1e-9):
            continue  # every row is at a centre, or the row is all that its cluster has
        row = w * (found.rows[far] - rows.origin)
        sums[old], weight[old] = sums[old] - row, weight[old] - w
        sums[a], weight[a] = row, w
    return Clusters(sums, weight)


def cluster_sums(
    X: Any, label: np.ndarray, weight: np.ndarray | None, origin: np.ndarray, k: int, threads: int
) -> Clusters:
    """Sums over the rows of every label."""
    total = np.bincount(label, weights=weight, minlength=k).astype(np.float64)
    if not isinstance(X, np.ndarray):
        return Clusters(_native.bayes.class_sums(X, label, weight, k, threads) - total[:, None] * origin, total)
    # Differences are added up, not rows: a large common offset costs no digits.
    sums = np.zeros((k, X.shape[1]))
    _native.cluster.move_rows(X, origin, weight, None, label, sums)
    return Clusters(sums, total)


def nearest(X: Any, centers: np.ndarray, threads: int = 1) -> np.ndarray:
    """The number of the nearest centre of every row; of equal distances the first."""
    origin = np.zeros(X.shape[1]) if not isinstance(X, np.ndarray) else centers.mean(axis=0)
    label = np.zeros(X.shape[0], dtype=np.int64)
    none = np.zeros(0), np.zeros((X.shape[0], 0))
    _native.cluster.assign(X, origin, np.ascontiguousarray(centers - origin), label, *none, 1, None, threads)
    return label


def squared_distances(X: Any, centers: np.ndarray, label: np.ndarray) -> np.ndarray:
    """|x - c|^2 of every row and its centre, from differences: exact also where clusters are tight."""
    if isinstance(X, np.ndarray):
        difference = X - centers[label]
        return np.asarray(np.einsum("ij,ij->i", difference, difference))
    # |x|^2 - 2 x'c + |c|^2 from the entries that are stored.
    lengths = np.asarray(np.einsum("ij,ij->i", centers, centers))
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    entries = X.data.astype(np.float64, copy=False)
    terms = entries * (entries - 2 * centers[label[row], X.indices])
    return np.asarray(np.maximum(np.bincount(row, weights=terms, minlength=X.shape[0]) + lengths[label], 0.0))


def _clusters_of_batch(batch: Batch, origin: np.ndarray, centers: np.ndarray) -> tuple[Clusters]:
    label = nearest(batch.X, centers + origin)
    return (cluster_sums(batch.X, label, batch.weight, origin, len(centers), 1),)


def _farthest_rows(batch: Batch, centers: np.ndarray, count: int) -> tuple[Farthest]:
    label = nearest(batch.X, centers)
    distance = squared_distances(batch.X, centers, label)
    weight = np.ones(len(label)) if batch.weight is None else batch.weight
    distance = np.where(weight > 0, distance, -1.0)
    least = np.unique(distance)[-count:][0]
    at = np.flatnonzero((distance >= least) & (weight > 0))
    return (Farthest(count, distance[at], dense_rows(batch.X[at]), weight[at], label[at]).merged(),)


def distortion_statistic(batch: Batch, centers: np.ndarray) -> tuple[float]:
    """J of a batch."""
    distance = squared_distances(batch.X, centers, nearest(batch.X, centers))
    return (float(distance.sum() if batch.weight is None else distance @ batch.weight),)
