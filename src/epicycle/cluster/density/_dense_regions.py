"""Core rows and clusters of DBSCAN, without a list of neighbours.

A row is a core row if the weights of the rows within `eps` of it, itself included, add up to `min_samples`. Core rows
within `eps` of each other are in one cluster; clusters are numbered by their first core row. Any other row belongs to
the first cluster that has a core row within `eps`, or is noise, -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._certificate import Certificate
from epicycle.core._threads import n_threads, single_threaded_blas
from epicycle.spatial._metrics import MetricInUse
from epicycle.spatial._pairs import Pairs, pairs_of
from epicycle.spatial._search import native_rows, scaled_radius, tree_pays

_CHECKED = 1 << 22  # distances that the check of a fit may cost


@dataclass(frozen=True)
class Regions:
    """Whether each row is a core row, and its cluster."""

    core: np.ndarray
    label: np.ndarray


@dataclass(frozen=True)
class Density:
    """Condition for a core row."""

    eps: float
    min_samples: float
    weight: np.ndarray | None

    def is_core(self, inside: np.ndarray) -> np.ndarray:
        """Whether rows with these neighbours are core rows."""
        total = inside.sum(axis=1) if self.weight is None else inside @ self.weight
        return np.asarray(total >= self.min_samples)


def regions(X: Any, metric: MetricInUse, density: Density, algorithm: str, n_jobs: int | None) -> Regions:
    """Core rows and clusters of the rows X, or of the distances X."""
    if sp.issparse(X) and metric.is_given:
        return _in_graph(X, density)
    native = metric.native
    if native is None or sp.issparse(X) or not tree_pays(X, 1, native, algorithm):
        return by_pairs(pairs_of(X, metric), density, n_jobs)
    scaled = native_rows(metric.scaled(X), native)
    if scaled is None:
        return by_pairs(pairs_of(X, metric), density, n_jobs)
    rows, exponent = scaled
    eps = scaled_radius(density.eps, exponent)
    threads = n_threads(100.0 * rows.size, n_jobs)
    found = _native.cluster.dbscan(
        rows, native.kind, native.power, eps, float(density.min_samples), density.weight, threads
    )
    return Regions(found[0].astype(bool), found[1])


def by_pairs(pairs: Pairs, density: Density, n_jobs: int | None) -> Regions:
    """The same from blocks of distances: once to count, and once more from core rows to rows that have no cluster."""
    n = pairs.n
    core, everything = np.zeros(n, dtype=bool), slice(0, n)

    def count(rows: slice) -> None:
        core[rows] = density.is_core(pairs.within(rows, everything, density.eps))

    pairs.over_rows(count, n_jobs)
    label = np.full(n, -1, dtype=np.int64)
    open_rows = np.arange(n)  # holds all rows without a cluster, and never more than about twice as many
    number = 0
    with single_threaded_blas():
        for seed in np.flatnonzero(core):
            if label[seed] >= 0:
                continue
            label[seed] = number
            waiting = np.array([seed])
            while len(waiting):
                reached = []
                for rows in pairs.spans(len(waiting)):
                    left = open_rows[label[open_rows] < 0]
                    if 2 * len(left) < len(open_rows):
                        open_rows = left
                    near = pairs.within(waiting[rows], open_rows, density.eps).any(axis=0)
                    new = open_rows[near & (label[open_rows] < 0)]
                    label[new] = number
                    reached.append(new[core[new]])
                waiting = np.concatenate(reached)
            number += 1
    return Regions(core, label)


def _in_graph(graph: Any, density: Density) -> Regions:
    indices, starts = graph.indices.astype(np.int64), graph.indptr.astype(np.int64)
    values = graph.data.astype(np.float64)
    core, label = _native.cluster.dbscan_graph(
        values, indices, starts, density.eps, float(density.min_samples), density.weight
    )
    return Regions(core.astype(bool), label)


def checked(X: Any, metric: MetricInUse, density: Density, found: Regions) -> Certificate:
    """The definition, checked by brute force for some of the rows."""
    n = int(X.shape[0])
    sample = sample_of_rows(n)
    pairs = pairs_of(X, metric)
    wrong = 0
    for i in sample:
        inside = pairs.within(np.array([i]), slice(0, n), density.eps)[0]
        core = bool(density.is_core(inside[None, :])[0])
        reached = found.label[inside & found.core]
        if core:
            correct = (reached == found.label[i]).all()
        else:
            correct = found.label[i] == (reached.min() if len(reached) else -1)
        # Distances that are given or come from a function need not be symmetric: core rows alone are checked then.
        wrong += int(core != found.core[i] or not (correct or not metric.is_symmetric))
    what = "core rows, clusters and noise" if metric.is_symmetric else "core rows"
    meaning = f"the definition of {what} holds for {len(sample)} of {n} rows, checked by brute force after the fit"
    return Certificate("definition", float(wrong), 0.0, meaning)


def sample_of_rows(n: int) -> np.ndarray:
    """Rows at equal steps whose distances from all n rows cost little."""
    size = min(n, max(8, min(64, _CHECKED // max(n, 1))))
    return np.unique(np.linspace(0, n - 1, size).astype(np.int64))
