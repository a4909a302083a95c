"""Proof about a tree after the fit: merges of a sample, recomputed from the definition of the linkage.

Let A be the smaller cluster of a merge of height h. At that time d(A, C) is computed for every other cluster C from the
distances of the rows (means, for Ward's, the centroid and the median linkage). It must be h for the partner of A, and
no C may be nearer. For single linkage this is the cut property of a minimum spanning tree. In a graph only clusters
that an edge joins count.
"""

from __future__ import annotations

import numpy as np

from epicycle.cluster.hierarchy._cut import children_of, labels_before, parents_of
from epicycle.cluster.hierarchy._linkage import MEAN_LINKAGES, Problem, Tree
from epicycle.core._certificate import Certificate

_MERGES, _ROWS = 12, 16  # merges of the sample, and the most rows of A where its distances to all rows are computed
TOLERANCE = 1e-8


def certificate_of(problem: Problem, tree: Tree) -> Certificate:
    """The largest deviation from the definition over a sample of merges, relative to the largest height."""
    heights = np.ldexp(tree.Z[:, 2], -problem.distances.exponent)
    scale = float(heights.max(initial=0.0))
    chosen = _sample(problem, tree)
    children = children_of(tree.Z)
    worst = 0.0
    for t in chosen if scale > 0 else []:
        found = _values(problem, children, tree.n_leaves, t)
        if found is None:
            continue
        partner, least = found
        worst = max(worst, abs(partner - heights[t]) / scale, (heights[t] - least) / scale)
    falls = _largest_fall(tree.Z[:, 2], children, tree.n_leaves)
    if problem.graph is None and problem.linkage not in ("centroid", "median"):
        worst = max(worst, falls / max(float(tree.Z[:, 2].max(initial=0.0)), np.finfo(float).tiny))
    meaning = (
        f"largest deviation from the definition of {problem.linkage} linkage over {len(chosen)} of {len(tree.Z)} "
        "merges, relative to the largest height: the height, and that no cluster was nearer"
    )
    if problem.linkage == "single" and problem.graph is None:
        meaning += f"; the spanning tree has length {tree.Z[:, 2].sum():.6g}"
    elif falls > 0:
        meaning += "; some merges are lower than merges below them"
    return Certificate("linkage definition", worst, TOLERANCE, meaning)


def _sample(problem: Problem, tree: Tree) -> np.ndarray:
    """Merges that are checked, evenly taken from those that are cheap to check."""
    counts = np.concatenate([np.ones(tree.n_leaves), tree.Z[:, 3]])
    smaller = counts[children_of(tree.Z)].min(axis=1)
    cheap = np.arange(len(tree.Z))
    if problem.linkage not in MEAN_LINKAGES or problem.means is None or problem.graph is not None:
        cheap = np.flatnonzero(smaller <= _ROWS)
    if len(cheap) == 0:
        return cheap
    most = _MERGES if tree.n_leaves < 20_000 else _MERGES // 2
    return cheap[np.unique(np.linspace(0, len(cheap) - 1, most).astype(np.int64))]


def _values(problem: Problem, children: np.ndarray, n: int, t: int) -> tuple[float, float] | None:
    """(d(A, its partner), the least d(A, C) over all others) before merge t."""
    label = labels_before(children, n, t)
    a, b = (int(node) for node in children[t])
    if (label == a).sum() > (label == b).sum():
        a, b = b, a
    share = _shares(problem, children, n, t)
    if problem.graph is not None:
        return _graph_values(problem, label, a, b)
    if problem.linkage in MEAN_LINKAGES:
        if problem.means is None:
            return _given_means(problem, label, a, b, share)
        value = _mean_values(problem, label, share, a)
    else:
        value = _pair_values(problem, label, share, a)
    partner = float(value[b])
    value[a] = np.inf
    return partner, float(value.min())


def _shares(problem: Problem, children: np.ndarray, n: int, t: int) -> np.ndarray:
    """Share of each row in its cluster: its weight, or one half for each merge above it ("weighted", "median")."""
    if problem.linkage not in ("weighted", "median"):
        return np.ones(n) if problem.weight is None else problem.weight
    parent = parents_of(children[:t], n)
    depth = np.zeros(n + t)
    for node in range(n + t - 1, -1, -1):
        if parent[node] < n + t:
            depth[node] = depth[parent[node]] + 1
    return np.asarray(0.5 ** np.minimum(depth[:n], 1000))


def _totals(label: np.ndarray, share: np.ndarray) -> np.ndarray:
    total = np.bincount(label, weights=share)
    return np.where(total > 0, total, 1.0)


def _pair_values(problem: Problem, label: np.ndarray, share: np.ndarray, a: int) -> np.ndarray:
    """d(A, C) of every cluster C by its node; infinite where there is none."""
    rows = np.flatnonzero(label == a)
    D = problem.distances.block(rows)
    present = np.bincount(label) > 0
    if problem.linkage in ("complete", "single"):
        complete = problem.linkage == "complete"
        value = np.full(len(present), -np.inf if complete else np.inf)
        (np.maximum if complete else np.minimum).at(value, label, D.max(axis=0) if complete else D.min(axis=0))
    else:
        mean = share[rows] @ D / share[rows].sum()
        value = np.bincount(label, weights=share * mean) / _totals(label, share)
    return np.where(present, value, np.inf)


def _mean_values(problem: Problem, label: np.ndarray, share: np.ndarray, a: int) -> np.ndarray:
    assert problem.means is not None
    X = problem.means - problem.means.mean(axis=0)
    total = _totals(label, share)
    means = np.stack([np.bincount(label, weights=share * column) / total for column in X.T], axis=1)
    value = np.sqrt(((means - means[a]) ** 2).sum(axis=1))
    if problem.linkage == "ward":
        value *= np.sqrt(2 * total * total[a] / (total + total[a]))
    return np.where(np.bincount(label) > 0, value, np.inf)


def _given_means(problem: Problem, label: np.ndarray, a: int, b: int, share: np.ndarray) -> tuple[float, float] | None:
    """The distance of means from distances of rows:  |A - B|^2 = mean d(a, b)^2 - (mean d(a, a')^2 + ...) / 2."""
    rows = [np.flatnonzero(label == node) for node in (a, b)]
    if len(rows[1]) > 64 * _ROWS:
        return None
    u, v = (share[part] / share[part].sum() for part in rows)
    D = [problem.distances.block(part) ** 2 for part in rows]
    square = u @ D[0][:, rows[1]] @ v - u @ D[0][:, rows[0]] @ u / 2 - v @ D[1][:, rows[1]] @ v / 2
    if problem.linkage == "ward":
        n, m = (share[part].sum() for part in rows)
        square *= 2 * n * m / (n + m)
    found = float(np.sqrt(max(square, 0.0)))
    return found, found


def _graph_values(problem: Problem, label: np.ndarray, a: int, b: int) -> tuple[float, float] | None:
    """From the edges between two clusters; the average linkage of a graph has no such definition, but needs an edge."""
    assert problem.graph is not None
    share = np.ones(len(label)) if problem.weight is None else problem.weight
    if problem.linkage == "ward":
        value = float(_mean_values(problem, label, share, a)[b])
        return value, value
    rows = np.flatnonzero(label == a)
    first, second = problem.graph[rows].nonzero()
    joined = label[second] == b
    if problem.linkage == "average" or not joined.any():  # components that were joined have no edge of the user's
        return None
    lengths = problem.distances.pairs(rows[first[joined]], second[joined].astype(np.int64))
    value = float(lengths.max() if problem.linkage == "complete" else lengths.min())
    return value, value


def _largest_fall(heights: np.ndarray, children: np.ndarray, n: int) -> float:
    """Largest difference by which a merge is below one of the merges below it."""
    below = np.concatenate([np.zeros(n), heights])[children].max(axis=1, initial=0.0)
    return float((below - heights).max(initial=0.0))
