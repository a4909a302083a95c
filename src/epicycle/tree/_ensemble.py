"""A sum of trees as plain arrays: how it grows, what it predicts, what it used.

The arrays of an ensemble: `nodes` (m, 2), two words a node as the kernel walks them; `values` (m,) of the leaves,
learning rate included; `roots` (T + 1,), where each tree begins; `levels` (c, 4), the sets of levels that go left; and
for every node the `gain` of its split, its `cover` (curvature) and its `count` of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import _native
from epicycle.data import Batch
from epicycle.engine import n_threads

__all__ = [
    "Ensemble",
    "GrownTree",
    "empty_ensemble",
    "extend",
    "importances",
    "n_trees",
    "scores_of_batch",
    "split_features",
    "truncate",
]

#: The arrays described above.
Ensemble = dict[str, np.ndarray]

LEAF, MISSING_LEFT, CATEGORICAL = 2, 1, 4


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
        """Whether nothing was split."""
        return len(self.left) == 1


def empty_ensemble() -> Ensemble:
    """No tree."""
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
    """The ensemble with more trees, each given with the values of its nodes; `table` holds the padded cuts."""
    parts = {name: [array] for name, array in ensemble.items()}
    n_nodes, n_levels = len(ensemble["nodes"]), len(ensemble["levels"])
    for tree, values in trees:
        nodes, levels = _pack(tree, table, n_levels)
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


def _pack(tree: GrownTree, table: np.ndarray, n_levels: int) -> tuple[np.ndarray, np.ndarray]:
    """The words of the nodes, and the sets of levels that they refer to, numbered from `n_levels`."""
    leaf = tree.left == 0
    categorical = (tree.kind & CATEGORICAL) > 0
    words = np.empty((len(leaf), 2), np.uint64)
    # Behind the last cut the table is infinite: all that is not missing goes left.
    threshold = np.where(leaf, np.inf, table[tree.feature, tree.bin])
    words[:, 0] = threshold.view(np.uint64)
    words[categorical, 0] = n_levels + np.arange(np.count_nonzero(categorical), dtype=np.uint64)
    left = np.where(leaf, np.arange(len(leaf)), tree.left).astype(np.uint64)
    flags = np.where(leaf, LEAF | MISSING_LEFT, tree.kind).astype(np.uint64)
    words[:, 1] = left | (tree.feature.astype(np.uint64) << np.uint64(32)) | (flags << np.uint64(56))
    return words, tree.sides.reshape(-1, 4)[categorical]


def truncate(ensemble: Ensemble, n_trees: int) -> Ensemble:
    """The first trees."""
    roots = ensemble["roots"][: n_trees + 1]
    first = {name: ensemble[name][: roots[-1]] for name in ("nodes", "values", "gain", "cover", "count")}
    return {**ensemble, **first, "roots": roots}


def n_trees(ensemble: Ensemble) -> int:
    """Number of trees."""
    return len(ensemble["roots"]) - 1


def scores_of_batch(
    batch: Batch, ensemble: Ensemble, start: np.ndarray, first: int, last: int, n_jobs: int | None
) -> np.ndarray:
    """`start` plus the trees first..last-1, (n, K), for rows of numbers; sparse rows pass in small dense pieces."""
    X = batch.X
    out = np.empty((X.shape[0], len(start)))
    out[:] = start
    nodes, values, roots, levels = (ensemble[name] for name in ("nodes", "values", "roots", "levels"))
    if not hasattr(X, "toarray"):
        threads = n_threads(20.0 * len(X) * max(last - first, 1), n_jobs)
        _native.tree.predict(X, nodes, values, roots, levels, first, last, out, threads)
        return out
    step = max(1, (1 << 18) // max(X.shape[1], 1))
    for i in range(0, X.shape[0], step):
        piece = np.ascontiguousarray(out[i : i + step])
        _native.tree.predict(X[i : i + step].toarray(), nodes, values, roots, levels, first, last, piece, 1)
        out[i : i + step] = piece
    return out


def split_features(ensemble: Ensemble) -> tuple[np.ndarray, np.ndarray]:
    """(numbers of the nodes that split, their features)."""
    meta = ensemble["nodes"][:, 1]
    inner = np.flatnonzero((meta >> np.uint64(57)) & np.uint64(1) == 0)
    return inner, ((meta[inner] >> np.uint64(32)) & np.uint64(0xFFFFFF)).astype(np.intp)


def importances(ensemble: Ensemble, n_features: int, kind: str) -> np.ndarray:
    """Of every feature the total gain of its splits, or their number."""
    inner, feature = split_features(ensemble)
    weights = ensemble["gain"][inner] if kind == "gain" else None
    return np.bincount(feature, weights=weights, minlength=n_features).astype(np.float64)
