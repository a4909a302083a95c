"""First centres: k-means++ (Arthur and Vassilvitskii 2007), k-means|| (Bahmani et al. 2012), rows at random, given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import _native, engine
from epicycle.cluster.kmeans._lloyd import nearest
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import draw_distinct, stream
from epicycle.core._threads import n_threads
from epicycle.data import ArrayData, Batch, Data
from epicycle.engine._row_order import row_hashes
from epicycle.stats._class_scatter import dense_rows

#: Rounds of k-means||, each of which draws about twice as many rows as there are clusters, as its authors advise.
ROUNDS, OVERSAMPLING = 5, 2.0
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / phi: spreads the bits of an index over those of a hash


def plus_plus(
    X: Any, weight: np.ndarray, k: int, rng: np.random.Generator, trials: int | None = None, n_jobs: int | None = None
) -> np.ndarray:
    """Indices of k rows, each drawn with a probability proportional to v |x - nearest centre so far|^2.

    Of `trials` rows drawn each time the one is kept that lowers the sum most; by default 2 + log k of them.
    """
    n, p = X.shape
    trials = 2 + int(np.log(k)) if trials is None else trials
    origin = X.mean(axis=0, dtype=np.float64) if isinstance(X, np.ndarray) else np.zeros(p)
    threads = n_threads(float(n) * trials * p, n_jobs)
    # In an order by content, a row that is repeated and one that weighs more take the same room.
    order = np.argsort(content_keys(X), kind="stable")
    chosen = np.empty(k, dtype=np.int64)
    chosen[0] = _draws(weight, order, 1, rng)[0]

    def closest_to(rows: np.ndarray, closest: np.ndarray | None) -> np.ndarray:
        candidates = np.ascontiguousarray(dense_rows(X[rows]) - origin)
        return np.asarray(_native.cluster.closest_distances(X, origin, candidates, closest, threads))

    closest = closest_to(chosen[:1], None)[0]
    for a in range(1, k):
        # Where all rows are centres already any row will do.
        share = weight * closest
        rows = _draws(share if share.sum() > 0 else weight, order, trials, rng)
        distances = closest_to(rows, closest)
        best = int(np.argmin(distances @ weight))
        chosen[a], closest = rows[best], distances[best]
    return chosen


def _draws(share: np.ndarray, order: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn with probabilities proportional to `share`, with replacement."""
    total = np.cumsum(share[order])
    at = np.searchsorted(total, rng.random(count) * total[-1], side="right")
    return np.asarray(order[np.minimum(at, np.flatnonzero(share[order] > 0)[-1])])


def content_keys(X: Any) -> np.ndarray:
    """64 bits for each row, the same for float32 and float64; equal rows have equal ones."""
    with np.errstate(over="ignore"):
        return row_hashes(X.astype(np.float32, copy=False))


def random_rows(X: Any, weight: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of k distinct rows, drawn in proportion to their weights; some again where there are fewer."""
    positive = np.flatnonzero(weight > 0)
    _, first, number = np.unique(content_keys(X)[positive], return_index=True, return_inverse=True)
    share = np.bincount(number, weights=weight[positive])
    drawn = draw_distinct(rng, share, min(k, len(first)))
    return positive[first[np.resize(drawn, k)]]


def given_centers(init: Any, k: int, p: int) -> np.ndarray:
    """Centres that the user brought, checked."""
    centers = np.array(init, dtype=np.float64, ndmin=2)
    if centers.shape[0] != k:
        raise ParameterError(
            f"The shape of the initial centers {centers.shape} does not match the number of clusters {k}."
        )
    if centers.shape[1] != p:
        raise DataError(
            f"The shape of the initial centers {centers.shape} does not match the number of features of the data {p}."
        )
    if not np.isfinite(centers).all():
        raise DataError("init: contains NaN or infinity; expected finite centers")
    return centers


# ------------------------------------------------------------------------------------------------- rows in batches


@dataclass
class Drawn:
    """Rows that a pass has drawn, in the order of the batches, and the sum of v |x - nearest centre|^2."""

    rows: np.ndarray
    potential: float

    def __add__(self, other: Drawn) -> Drawn:
        return Drawn(np.concatenate([self.rows, other.rows]), self.potential + other.potential)


def parallel_plus_plus(data: Data, k: int, seed: int, n_jobs: int | None) -> np.ndarray:
    """First centres in a few passes: rows far from those so far are drawn, then k-means++ chooses among the drawn.

    Whether a row is drawn depends on its content and the seed, not on the batch that it comes in.
    """
    first = first_row(data, seed, n_jobs)
    candidates = first
    (found,) = engine.sum(_drawn, data, candidates, 0.0, seed, 0, n_jobs=n_jobs)
    for number in range(1, ROUNDS + 1):
        if found.potential == 0:
            break
        rate = OVERSAMPLING * k / found.potential
        (found,) = engine.sum(_drawn, data, candidates, rate, seed, number, n_jobs=n_jobs)
        candidates = np.unique(np.concatenate([candidates, found.rows]), axis=0)
    (weight,) = engine.sum(_nearest_weight, data, candidates, n_jobs=n_jobs)
    if len(candidates) <= k:
        return np.concatenate([candidates, candidates[np.arange(k - len(candidates)) % len(candidates)]])
    kept = weight > 0
    rng = stream(seed, "k-means||")
    chosen: np.ndarray = candidates[kept][plus_plus(candidates[kept], weight[kept], min(k, int(kept.sum())), rng)]
    return chosen


def first_row(data: Data, seed: int, n_jobs: int | None) -> np.ndarray:
    """A row drawn with a probability proportional to its weight, as an array of one row."""
    best: First
    (best,) = engine.sum(_first, data, seed, n_jobs=n_jobs)
    return best.row


@dataclass
class First:
    """The row with the smallest key."""

    key: float
    row: np.ndarray

    def __add__(self, other: First) -> First:
        return self if self.key <= other.key else other


def _first(batch: Batch, seed: int) -> tuple[First]:
    # The least of exponential variables with rates v_i is that of row i with probability v_i / sum v.
    weight = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    with np.errstate(divide="ignore"):
        key = -np.log1p(-_uniform(batch.X, seed, 0)) / weight
    at = int(np.argmin(key))
    return (First(float(key[at]), dense_rows(batch.X[np.array([at])])),)


def _drawn(batch: Batch, candidates: np.ndarray, rate: float, seed: int, number: int) -> tuple[Drawn]:
    origin = candidates.mean(axis=0) if isinstance(batch.X, np.ndarray) else np.zeros(batch.X.shape[1])
    share = _native.cluster.closest_distances(batch.X, origin, candidates - origin, None, 1).min(axis=0)
    if batch.weight is not None:
        share = share * batch.weight
    at = np.flatnonzero(_uniform(batch.X, seed, number) < rate * share)
    return (Drawn(dense_rows(batch.X[at]), float(share.sum())),)


def _nearest_weight(batch: Batch, candidates: np.ndarray) -> tuple[np.ndarray]:
    return (np.bincount(nearest(batch.X, candidates), weights=batch.weight, minlength=len(candidates)),)


def _uniform(X: Any, seed: int, number: int) -> np.ndarray:
    """Numbers in [0, 1) that depend on the content of the rows, the seed and the number of the pass."""
    return row_keys(X, seed, number, np.zeros(1, dtype=np.uint64))


def row_keys(X: Any, seed: int, number: int, index: np.ndarray) -> np.ndarray:
    """The same, with the index of each row besides: equal rows have different ones."""
    drawn, offset = stream(seed, "rows", number).integers(2**63, size=2).astype(np.uint64)
    salt = drawn * np.uint64(2) + np.uint64(1)
    with np.errstate(over="ignore"):
        # A row of zeros has the key 0, which no factor changes.
        bits = (content_keys(X) + index * _GOLDEN_RATIO + offset) * salt
        bits = (bits ^ (bits >> np.uint64(32))) * salt
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53)


def memory_start(data: ArrayData, init: str, k: int, seed: int, start: int, n_jobs: int | None) -> np.ndarray:
    """First centres from rows in memory: "k-means++" or "random"."""
    weight = np.ones(data.n_rows) if data.weight is None else data.weight
    rng = stream(seed, "start", start)
    rows = (
        plus_plus(data.X, weight, k, rng, n_jobs=n_jobs) if init == "k-means++" else random_rows(data.X, weight, k, rng)
    )
    return dense_rows(data.X[rows])
