"""The rows of a fit by medoids: equal rows as one, distances between all or some of them, samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.cluster._descent import Round
from epicycle.cluster.kmeans._starts import content_keys
from epicycle.cluster.medoids._swaps import Problem
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._random import draw_distinct, stream
from epicycle.data import ArrayData
from epicycle.engine._row_order import row_hashes
from epicycle.spatial._metrics import MetricInUse
from epicycle.spatial._pairs import pairs_of
from epicycle.spatial._search import distance_block

_BLOCK = 1 << 21  # distances of a block


@dataclass
class Distinct:
    """One row of each kind, in an order by content, the weight of all of its kind, and the number of rows of weight."""

    first: np.ndarray
    weight: np.ndarray
    count: int


def distinct_rows(data: ArrayData, *, precomputed: bool) -> Distinct:
    """Rows of positive weight; equal ones are one, so that what is repeated and what weighs more is the same."""
    weight = np.ones(data.n_rows) if data.weight is None else data.weight
    rows = np.flatnonzero(weight > 0)
    if precomputed:
        return Distinct(rows, weight[rows], len(rows))
    X = data.X[rows]
    order = np.lexsort((row_hashes(X), content_keys(X)))
    hashes = row_hashes(X)[order]
    begins = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    first = np.minimum.reduceat(rows[order], begins)
    return Distinct(first, np.add.reduceat(weight[rows][order], begins), len(rows))


def between(metric: MetricInUse, Q: Any, X: Any) -> np.ndarray:
    """Distances of the rows of Q and X."""
    if sp.issparse(Q) != sp.issparse(X):
        Q, X = sp.csr_array(Q), sp.csr_array(X)
    if Q.dtype != X.dtype:
        Q, X = Q.astype(np.float64), X.astype(np.float64)
    if metric.blocks is not None:
        return metric.blocks.block(Q, X)
    assert metric.native is not None
    return np.asarray(distance_block(metric.native, metric.scaled(Q), metric.scaled(X)))


class Work:
    """Problems for the starts of a fit: all different rows, or a sample of them for each start."""

    def __init__(self, X: Any, metric: MetricInUse, rows: Distinct, size: int, n_jobs: int | None, seed: int) -> None:
        self.X, self.metric, self.rows, self.size, self.n_jobs, self.seed = X, metric, rows, size, n_jobs, seed
        self.sampling = size < len(rows.first)
        self._at = -1
        self._now: Problem | None = None
        self._ends: dict[tuple[int, ...], float] = {}

    def rng(self, start: int) -> np.random.Generator:
        return stream(self.seed, "start", start)

    def problem(self, start: int, given: np.ndarray | None = None) -> Problem:
        """The problem of a start; `given` rows are in it."""
        if self._now is not None and start == self._at:
            return self._now
        first, weight = self.rows.first, self.rows.weight
        if self.sampling:
            at = draw_distinct(stream(self.seed, "sample", start), weight, self.size)
            first = np.union1d(first[at], first[:0] if given is None else given)
            problem = Problem(first, self._distances(first), np.ones(len(first)), self.n_jobs)
        else:
            D = self._distances(first) if self._now is None else self._now.D
            problem = Problem(first, D, weight, self.n_jobs)
        self._at, self._now = start, problem
        return problem

    def rounds(self, start: int, given: np.ndarray | None) -> Callable[[np.ndarray], Round]:
        problem = self.problem(start, given)

        def step(medoids: np.ndarray) -> Round:
            made = problem.round(medoids)
            if made.moved == 0:
                self._ends[_key(made.centers)] = max(-problem.least, 0.0) / max(made.value, np.finfo(float).tiny)
            return made

        return step

    def gain(self, medoids: np.ndarray) -> float:
        """By how much the best swap would lower the sum, relative to it."""
        return self._ends[_key(medoids)]

    def scale(self) -> float:
        """The largest that the sum can be."""
        return float(self.problem(0).D.max(initial=0.0) * self.problem(0).weight.sum())

    def cost(self, medoids: np.ndarray) -> float:
        """The sum over all rows."""
        step, total = max(1, _BLOCK // len(medoids)), 0.0
        for a in range(0, len(self.rows.first), step):
            rows = self.rows.first[a : a + step]
            if self.metric.is_given:
                found = np.asarray(self.X[np.ix_(rows, medoids)], dtype=np.float64)
            else:
                found = between(self.metric, self.X[rows], self.X[medoids])
            total += float(found.min(axis=1) @ self.rows.weight[a : a + step])
        return total

    def _distances(self, rows: np.ndarray) -> np.ndarray:
        """D[x, o], the distance of row o from row x as a medoid."""
        n = len(rows)
        if self.metric.is_given:  # finite, as all tables are
            D = self.X if n == len(self.X) else self.X[np.ix_(rows, rows)]
            return np.ascontiguousarray(D if _is_symmetric(D) else D.T)
        require_memory(8.0 * n * n, f"the distances between {n:,} rows", "a smaller sample_size")
        D = np.empty((n, n))
        pairs = pairs_of(self.X[rows], self.metric)

        def fill(span: slice) -> None:
            D[:, span] = pairs.distances(span, slice(None)).T

        def fill_rows(span: slice) -> None:
            D[span] = pairs.distances(span, slice(None))

        pairs.over_rows(fill_rows if self.metric.is_symmetric else fill, self.n_jobs)
        if not np.isfinite(D).all():
            raise DataError(
                f"distances: some are infinite or NaN with metric={self.metric!r:.60}; expected finite ones"
            )
        return D


def _is_symmetric(D: np.ndarray) -> bool:
    """Whether a matrix equals its transpose, in tiles that fit into the cache."""
    starts = range(0, len(D), 256)
    tiles = ((slice(a, a + 256), slice(b, b + 256)) for a in starts for b in starts if b >= a)
    return all(np.array_equal(D[rows, columns], D[columns, rows].T) for rows, columns in tiles)


def _key(medoids: np.ndarray) -> tuple[int, ...]:
    return tuple(sorted(medoids.tolist()))
