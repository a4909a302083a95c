"""A sum of trees as plain arrays: growth, predictions, importances and Shapley values.

The arrays of an ensemble: `nodes` (m, 2), see :mod:`epicycle.tree._nodes`; `values` (m,) of the leaves, learning rate
included; `roots` (T + 1,), where each tree begins; `levels` (c, 4), the sets of levels that go left; and for every node
the `gain` of its split, its `cover` (curvature) and its `count` of rows. With K outputs tree t belongs to output t % K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import _native, engine
from epicycle.data import ArrayData, Batch, Data
from epicycle.tree._nodes import (
    CATEGORICAL,
    NodeArrays,
    dense_pieces,
    leaf_nodes,
    pack_nodes,
    path_threads,
    split_features,
)
from epicycle.tree._partial_dependence import expected_values

#: The arrays described above.
Ensemble = dict[str, np.ndarray]


@dataclass(frozen=True)
class GrownTree:
    """One tree in terms of bins, as the kernel grew it; a node without `left` child is a leaf."""

    feature: np.ndarray
    bin: np.ndarray
    left: np.ndarray
    kind: np.ndarray
    sides: np.ndarray
    gain: np.ndarray
    G: np.ndarray
    H: np.ndarray
    value: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    @property
    def leaves(self) -> np.ndarray:
        """Numbers of the leaves."""
        return np.flatnonzero(self.left == 0)

    @property
    def is_stump(self) -> bool:
        """Whether the root is a leaf."""
        return len(self.left) == 1


def empty_ensemble() -> Ensemble:
    """An ensemble without trees."""
    return {
        "nodes": np.empty((0, 2), np.uint64),
        "values": np.empty(0),
        "roots": np.zeros(1, np.int64),
        "levels": np.empty((0, 4), np.uint64),
        "gain": np.empty(0),
        "cover": np.empty(0),
        "count": np.empty(0, np.int64),
    }


def extend(ensemble: Ensemble, trees: list[tuple[GrownTree, np.ndarray]], table: np.ndarray) -> Ensemble:
    """The ensemble with more trees, each given with the values of its nodes; `table` holds the padded bin edges."""
    parts = {name: [array] for name, array in ensemble.items()}
    n_nodes, n_levels = len(ensemble["nodes"]), len(ensemble["levels"])
    for tree, values in trees:
        # Behind the last edge the table is infinite: all that is not missing goes left.
        nodes = pack_nodes(tree.feature, table[tree.feature, tree.bin], tree.left, tree.kind, n_levels)
        levels = tree.sides.reshape(-1, 4)[(tree.kind & CATEGORICAL) > 0]
        n_nodes, n_levels = n_nodes + len(nodes), n_levels + len(levels)
        new = {
            "nodes": nodes,
            "values": np.where(tree.left == 0, values, 0.0),
            "roots": np.array([n_nodes], np.int64),
            "levels": levels,
            "gain": tree.gain,
            "cover": tree.H,
            "count": tree.end - tree.begin,
        }
        for name, array in new.items():
            parts[name].append(array)
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def truncate(ensemble: Ensemble, n_trees: int) -> Ensemble:
    """The first trees."""
    roots = ensemble["roots"][: n_trees + 1]
    first = {name: ensemble[name][: roots[-1]] for name in ("nodes", "values", "gain", "cover", "count")}
    return {**ensemble, **first, "roots": roots}


def n_trees(ensemble: Ensemble) -> int:
    """Number of trees."""
    return len(ensemble["roots"]) - 1


def _node_arrays(ensemble: Ensemble) -> NodeArrays:
    return ensemble["nodes"], ensemble["values"], ensemble["roots"], ensemble["levels"]


# ------------------------------------------------------------------------------------------------ predictions


def scores_of_batch(
    batch: Batch, ensemble: Ensemble, start: np.ndarray, first: int, last: int, n_jobs: int | None
) -> np.ndarray:
    """`start` plus the trees first..last-1, (n, K), for rows of numbers."""
    out = np.empty((batch.X.shape[0], len(start)))
    out[:] = start
    for rows, X in dense_pieces(batch.X):
        threads = path_threads(len(X), last - first, n_jobs)
        _native.tree.predict(X, *_node_arrays(ensemble), first, last, out[rows], threads)
    return out


def scores_of_data(data: Data, ensemble: Ensemble, start: np.ndarray, n_jobs: int | None) -> Any:
    """`start` plus all trees, (n, K), for Dask input as a lazy array."""
    last = n_trees(ensemble)
    if isinstance(data, ArrayData) and not data.sparse:  # one call of the kernel, whose threads share the rows
        return scores_of_batch(data.rows(0, data.n_rows), ensemble, start, 0, last, n_jobs)
    return engine.map(scores_of_batch, data, ensemble, start, 0, last, 1, n_jobs=n_jobs)


def expected_scores(ensemble: Ensemble, start: np.ndarray, columns: list[int], points: np.ndarray) -> np.ndarray:
    """Scores (g, K) that the trees expect at the points where only these columns are known."""
    nodes, values, roots, levels = _node_arrays(ensemble)
    scores = np.tile(start, (len(points), 1))
    trees = expected_values((nodes, values[:, None], roots, levels), ensemble["count"], columns, points)
    for t, of_tree in enumerate(trees):
        scores[:, t % len(start)] += of_tree[:, 0]
    return scores


# ------------------------------------------------------------------------------------------------ inspection


def importances(ensemble: Ensemble, n_features: int, kind: str) -> np.ndarray:
    """Total gain of the splits of every feature, or their number."""
    inner = ~leaf_nodes(ensemble["nodes"])
    weights = ensemble["gain"][inner] if kind == "gain" else None
    feature = split_features(ensemble["nodes"])[inner]
    return np.bincount(feature, weights=weights, minlength=n_features).astype(np.float64)


def shapley_values(data: Data, ensemble: Ensemble, n_outputs: int, n_jobs: int | None) -> Any:
    """Shapley values (n, p) or (n, p, K), for Dask input as a lazy array.

    The value of a set S of known features is the expected score where conditions on features outside of S are passed in
    the shares in which the training rows passed them (path-dependent TreeSHAP; Lundberg et al., 2020). The Shapley
    values divide the difference of the score and the average score among the features, and add up to it exactly.
    """
    values = engine.map(_shapley_of_batch, data, ensemble, n_outputs, n_jobs=n_jobs)
    return values[:, :, 0] if n_outputs == 1 else values


def _shapley_of_batch(batch: Batch, ensemble: Ensemble, n_outputs: int) -> np.ndarray:
    out = np.zeros((*batch.X.shape, n_outputs))
    count = ensemble["count"].astype(np.float64)
    for rows, X in dense_pieces(batch.X):
        _native.tree.shap_values(X, *_node_arrays(ensemble), count, out[rows], 1)
    return out


def average_score(ensemble: Ensemble, start: np.ndarray) -> np.ndarray | float:
    """Average score of the training rows, tree by tree and added up: the score of a row without known features."""
    roots, K = ensemble["roots"][:-1], len(start)
    total = np.array(start, np.float64)
    if len(roots):
        # Only leaves have values other than zero: the sum over the nodes of a tree is that over its leaves.
        means = np.add.reduceat(ensemble["values"] * ensemble["count"], roots) / ensemble["count"][roots]
        np.add.at(total, np.arange(len(roots)) % K, means)
    return float(total[0]) if K == 1 else total
