"""Medoids of a matrix of distances: first ones, and swaps until none lowers the sum.

``D[x, o]`` is the distance of row o from row x as a medoid; the sum is  TD = sum_o v_o min_i D[m_i, o].
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from epicycle import _native
from epicycle.cluster._descent import Round
from epicycle.core._random import draw_distinct
from epicycle.core._threads import n_threads


@dataclass
class Problem:
    """Rows of the table by number, the distances between them, and their weights."""

    rows: np.ndarray
    D: np.ndarray
    weight: np.ndarray
    n_jobs: int | None
    least: float = np.inf  # the least change of TD by a swap that was looked at since the last one
    _until: int = field(default=-1, repr=False)

    def __post_init__(self) -> None:
        n = len(self.rows)
        self._until = n
        self.threads = n_threads(float(n) ** 2, self.n_jobs)
        self._counted = None if (self.weight == 1).all() else self.weight

    def first(self, init: str, k: int, rng: np.random.Generator) -> np.ndarray:
        """k different rows to begin with."""
        if init == "build":
            medoids = np.zeros(k, dtype=np.int64)
            _native.cluster.build_medoids(self.D, self._counted, medoids, self.threads)
        elif init == "lab":
            medoids = self._build_from_samples(k, rng)
        elif init == "k-medoids++":
            medoids = self._plus_plus(k, rng)
        else:
            medoids = draw_distinct(rng, self.weight, k)
        return np.asarray(self.rows[medoids])

    def _build_from_samples(self, k: int, rng: np.random.Generator) -> np.ndarray:
        """BUILD, in which every next medoid comes from a sample of 10 + sqrt(n) rows, and is evaluated on it (LAB)."""
        n = len(self.rows)
        size = min(n, 10 + int(np.ceil(np.sqrt(n))))
        nearest, free = np.full(n, np.inf), np.ones(n, dtype=bool)
        chosen = np.empty(k, dtype=np.int64)
        for i in range(k):
            share = np.where(free, self.weight, 0.0)
            some = draw_distinct(rng, share, min(size, int(np.count_nonzero(share))))
            sums = np.minimum(self.D[np.ix_(some, some)], nearest[some]) @ self.weight[some]
            chosen[i] = some[int(np.argmin(sums))]
            free[chosen[i]] = False
            nearest = np.minimum(nearest, self.D[chosen[i]])
        return chosen

    def _plus_plus(self, k: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn one by one with probabilities proportional to v times the distance from those before."""
        n = len(self.rows)
        chosen = np.empty(k, dtype=np.int64)
        nearest, free, weight = np.ones(n), np.ones(n, dtype=bool), self.weight / self.weight.max()
        for i in range(k):
            share = np.where(free, weight * (nearest / max(nearest.max(), np.finfo(np.float64).tiny)), 0.0)
            share = share if share.sum() > 0 else np.where(free, self.weight, 0.0)  # all others are at distance 0
            chosen[i] = draw_distinct(rng, share, 1)[0]
            free[chosen[i]] = False
            nearest = np.array(self.D[chosen[0]]) if i == 0 else np.minimum(nearest, self.D[chosen[i]])
        return chosen

    def round(self, medoids: np.ndarray) -> Round:
        """Look at every row once as a new medoid, and swap where that lowers TD."""
        order = np.argsort(self.rows)
        local = order[np.searchsorted(self.rows[order], medoids)].astype(np.int64)
        swaps, last, value, least = _native.cluster.swap_medoids(
            self.D, self._counted, local, self._until, self.threads
        )
        # The rows after the last swap have been looked at since; the next round needs only those before.
        self.least = least if swaps else min(self.least, least)
        self._until = last if swaps else self._until
        return Round(np.asarray(self.rows[local]), value, float(swaps))
