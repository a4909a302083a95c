"""The order of OPTICS, the distance at which each row is reached, and from where."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import sort_graph_by_row_values

from epicycle import _native
from epicycle.cluster.density._dense_regions import sample_of_rows
from epicycle.cluster.density._hierarchy import core_by_pairs, core_of_rows
from epicycle.core._certificate import Certificate
from epicycle.spatial._distance_graph import first_of_graph
from epicycle.spatial._metric import COSINE
from epicycle.spatial._metrics import MetricInUse
from epicycle.spatial._pairs import Pairs, pairs_of
from epicycle.spatial._search import native_rows, scaled_radius, tree_pays

_ROUNDING = 1e-9  # relative difference of distances that are computed in two ways


@dataclass(frozen=True)
class Reached:
    """Rows in order; by row: core distance, distance at which it is reached, and the row from which it is."""

    order: np.ndarray
    core: np.ndarray
    reach: np.ndarray
    predecessor: np.ndarray


def reached(X: Any, metric: MetricInUse, k: int, radius: float, algorithm: str, n_jobs: int | None) -> Reached:
    """The order of the rows X, or of the distances X."""
    if metric.is_given and sp.issparse(X):
        X = with_diagonal(X)
        core = first_of_graph(X, k)[0][:, -1].astype(np.float64)
        return _by_pairs(pairs_of(X, metric), _cut(core, radius), radius)
    native = metric.native
    plain = native is not None and not sp.issparse(X) and native.kind != COSINE and native.power >= 1
    scaled = native_rows(metric.scaled(X), native) if plain and native is not None else None
    if scaled is None or native is None:
        pairs = pairs_of(X, metric)
        core = core_by_pairs(X, metric, pairs, k, algorithm, n_jobs)
        return _by_pairs(pairs, _cut(core, radius), radius)
    rows, exponent = scaled
    near = scaled_radius(radius, exponent)
    core = _cut(core_of_rows(rows, native, k, algorithm, n_jobs), near)
    by_tree = math.isfinite(near) and tree_pays(rows, k, native, algorithm)
    table = rows if by_tree else np.ascontiguousarray(rows.T)
    order, reach, predecessor = _native.cluster.optics(table, native.kind, native.power, core, near, by_tree)
    return Reached(order, np.ldexp(core, exponent), np.ldexp(reach, exponent), predecessor)


def _cut(core: np.ndarray, radius: float) -> np.ndarray:
    return np.where(core > radius, np.inf, core)


def with_diagonal(graph: Any) -> Any:
    """Sparse distances with those of every row from itself, which are zero where they are not stored."""
    n = graph.shape[0]
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    missing = np.setdiff1d(np.arange(n), rows[rows == graph.indices])
    parts = ((rows, missing), (graph.indices, missing), (graph.data, np.zeros(len(missing), dtype=graph.dtype)))
    row, column, value = (np.concatenate(part) for part in parts)
    return sort_graph_by_row_values(sp.csr_array((value, (row, column)), shape=graph.shape), warn_when_not_sorted=False)


def _by_pairs(pairs: Pairs, core: np.ndarray, radius: float) -> Reached:
    """The same with the distances of one row at a time."""
    n = pairs.n
    order, predecessor = np.empty(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    reach, left = np.full(n, np.inf), np.arange(n)
    for step in range(n):
        at = int(np.argmin(reach[left]))
        row = int(left[at])
        order[step], left = row, np.delete(left, at)
        if np.isinf(core[row]) or not len(left):
            continue
        apart = pairs.distances(np.array([row]), left)[0]
        better = (apart <= radius) & (np.maximum(apart, core[row]) < reach[left])
        reach[left[better]] = np.maximum(apart[better], core[row])
        predecessor[left[better]] = row
    return Reached(order, core, reach, predecessor)


def checked(X: Any, metric: MetricInUse, k: int, radius: float, found: Reached) -> Certificate:
    """Reachability and core distances from their definition, for some of the rows."""
    n = int(X.shape[0])
    X = with_diagonal(X) if metric.is_given and sp.issparse(X) else X
    pairs, sample, wrong = pairs_of(X, metric), sample_of_rows(n), 0
    place = np.empty(n, dtype=np.int64)
    place[found.order] = np.arange(n)
    for i in sample:
        own = np.array([i])
        from_i = pairs.distances(own, slice(0, n))[0]
        to_i = from_i if metric.is_symmetric else pairs.distances(slice(0, n), own)[:, 0]
        core = float(_cut(np.partition(from_i, k - 1)[k - 1 : k], radius)[0])
        before = (place < place[i]) & (to_i <= radius * (1 + _ROUNDING))
        least = np.maximum(to_i[before], found.core[before]).min(initial=np.inf)
        wrong += int(not (_same(core, found.core[i]) and _same(least, found.reach[i])))
    meaning = (
        f"core distances and reachability follow their definition for {len(sample)} of {n} rows, given the order; "
        "checked by brute force after the fit"
    )
    return Certificate("definition", float(wrong), 0.0, meaning)


def _same(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= _ROUNDING * max(abs(a), abs(b))
