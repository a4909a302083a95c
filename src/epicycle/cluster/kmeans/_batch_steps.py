"""Steps of mini-batch k-means, the smoothed distortion that ends them, samples of rows, and what is left at the end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from epicycle import engine
from epicycle.cluster.kmeans._lloyd import Clusters, cluster_sums, nearest, squared_distances
from epicycle.cluster.kmeans._starts import random_rows, row_keys
from epicycle.core._random import stream
from epicycle.data import ArrayData, Batch, Data
from epicycle.stats._class_scatter import dense_rows

#: Rows for each centre after which those with few are moved, and the largest share of a batch that they take.
ROWS_BETWEEN, MOST_OF_A_BATCH = 10, 0.5


@dataclass
class Stream:
    """State of the steps: the centres, the weight of all rows that each had, that since the last reassignment."""

    centers: np.ndarray
    counts: np.ndarray
    since: float
    steps: int

    def state(self) -> Mapping[str, Any]:
        return {"centers": self.centers, "counts": self.counts, "since": self.since, "steps": self.steps}

    @staticmethod
    def resumed(state: Mapping[str, Any]) -> Stream:
        return Stream(np.array(state["centers"]), np.array(state["counts"]), float(state["since"]), int(state["steps"]))


@dataclass
class Found:
    """Result of a step: the mean distortion of the batch before it, and the squared movement of all centres."""

    mean: float
    moved: float


def step(X: Any, weight: np.ndarray | None, at: Stream, ratio: float, seed: int, threads: int) -> tuple[Stream, Found]:
    """Move every centre towards the mean of the batch's rows nearest to it; the old stream stays as it was."""
    k, n = len(at.centers), X.shape[0]
    v = np.ones(n) if weight is None else weight
    label = nearest(X, at.centers, threads)
    mean = float(squared_distances(X, at.centers, label) @ v / v.sum())
    clusters = cluster_sums(X, label, weight, np.zeros(X.shape[1]), k, threads)
    counts, centers = at.counts + clusters.weight, at.centers.copy()
    full = clusters.weight > 0
    means = clusters.sums[full] / clusters.weight[full, None]
    centers[full] += (clusters.weight[full] / counts[full])[:, None] * (means - centers[full])
    since = at.since + float(v.sum())
    if (at.counts == 0).any() or since >= ROWS_BETWEEN * k:
        since = 0.0
        centers, counts = reassigned(X, v, centers, counts, ratio, stream(seed, "reassign", at.steps))
    moved = float(((centers - at.centers) ** 2).sum())
    return Stream(centers, counts, since, at.steps + 1), Found(mean, moved)


def reassigned(
    X: Any, weight: np.ndarray, centers: np.ndarray, counts: np.ndarray, ratio: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Put centres with little weight on rows of the batch; they take the least weight of the others."""
    low = counts < ratio * counts.max()
    most = int(MOST_OF_A_BATCH * weight.sum())
    if low.sum() > most:
        low[np.argsort(counts, kind="stable")[most:]] = False
    if low.any():
        rows = random_rows(X, weight, int(low.sum()), rng)
        least = counts.min() if low.all() else counts[~low].min()
        centers[low], counts[low] = dense_rows(X[rows]), least
    return centers, counts


@dataclass
class Smoothed:
    """A moving average of the batches' distortions, its least value, and batches since then."""

    value: float = np.nan
    least: float = np.inf
    stale: float = 0.0

    def after(self, mean: float, rows: int, n_rows: int, *, first: bool) -> Smoothed:
        """With one more batch; the first one only shows how good the start was."""
        if first:
            return Smoothed(mean, np.inf, 0.0)
        share = min(2.0 * rows / (n_rows + 1), 1.0)
        value = mean if self.least == np.inf else (1 - share) * self.value + share * mean
        return Smoothed(value, value, 0.0) if value < self.least else Smoothed(value, self.least, self.stale + 1)

    def ended(self, most: int | None) -> bool:
        return most is not None and self.stale >= most

    def numbers(self) -> np.ndarray:
        return np.array([self.value, self.least, self.stale])


# ------------------------------------------------------------------------------------------------- samples


@dataclass
class Sample:
    """The `count` rows with the least keys, and how many there were."""

    count: int
    keys: np.ndarray
    X: Any
    weight: np.ndarray
    seen: int

    def __add__(self, other: Sample) -> Sample:
        keys, weight = np.concatenate([self.keys, other.keys]), np.concatenate([self.weight, other.weight])
        X = sp.vstack([self.X, other.X], format="csr") if sp.issparse(self.X) else np.concatenate([self.X, other.X])
        return Sample(self.count, keys, X, weight, self.seen + other.seen).cut()

    def cut(self) -> Sample:
        if len(self.keys) <= self.count:
            return self
        at = np.sort(np.argpartition(self.keys, self.count)[: self.count])
        return Sample(self.count, self.keys[at], self.X[at], self.weight[at], self.seen)


def sampled(data: Data, count: int, seed: int, n_jobs: int | None) -> ArrayData:
    """`count` rows drawn without replacement in proportion to their weights; all, weighted, if there are no more."""
    found: Sample
    (found,) = engine.sum(_sample, data, count, seed, n_jobs=n_jobs)
    return ArrayData(found.X, None, found.weight if data.has_weight and found.seen <= count else None)


def _sample(batch: Batch, count: int, seed: int) -> tuple[Sample]:
    # The least of exponential variables with rates v are a sample with probabilities proportional to v.
    weight = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    at = np.flatnonzero(weight > 0)
    index = np.arange(batch.start, batch.start + batch.n_rows, dtype=np.uint64)
    keys = -np.log1p(-row_keys(batch.X, seed, 0, index)[at]) / weight[at]
    return (Sample(count, keys, batch.X[at], weight[at], len(at)).cut(),)


# ------------------------------------------------------------------------------------------------- the end


@dataclass
class End:
    """Sums over all rows at the last centres: J, the length of its terms, weights, and those of the clusters."""

    value: float
    length: float
    clusters: Clusters
    centers: np.ndarray

    def __add__(self, other: End) -> End:
        length = math.hypot(self.length, other.length)
        return End(self.value + other.value, length, self.clusters + other.clusters, self.centers)

    def gain(self) -> float:
        """Relative fall of J if every centre went to the mean of its rows."""
        full = self.clusters.weight > 0
        weight = self.clusters.weight[full]
        apart = self.clusters.sums[full] / weight[:, None]  # mean less centre
        return float((weight * (apart**2).sum(axis=1)).sum() / self.value) if self.value > 0 else 0.0

    def error(self, rows: int) -> float:
        """The standard error of the mean distortion of so many rows, relative to it."""
        if self.value <= 0:
            return 0.0
        weight = self.clusters.weight.sum()
        ratio = self.length / np.sqrt(weight) / (self.value / weight)  # root of the mean square, relative to the mean
        return float(np.sqrt(max(ratio**2 - 1, 0.0) / rows))


def end_of_batch(batch: Batch, centers: np.ndarray, label: np.ndarray | None = None) -> tuple[End]:
    label = nearest(batch.X, centers) if label is None else label
    terms = squared_distances(batch.X, centers, label)
    weight = np.ones(len(label)) if batch.weight is None else batch.weight
    sums = cluster_sums(batch.X, label, batch.weight, np.zeros(centers.shape[1]), len(centers), 1)
    about = Clusters(sums.sums - sums.weight[:, None] * centers, sums.weight)
    length = float(scipy.linalg.norm(terms * np.sqrt(weight), check_finite=False))
    return (End(float(terms @ weight), length, about, centers),)
