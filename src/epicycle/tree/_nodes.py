"""Nodes of trees as the kernels walk them, two 64-bit words each, and predictions by such trees.

The first word is the threshold (a float64), or the number of a set of levels; the second is

    left child (bits 0-31) | feature (bits 32-55) | flags (bits 56-63: missing values go left, leaf, categorical).

Children are numbered within their tree; the right child follows the left one. A leaf is its own left child, so that a
walk of fixed length stays there.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.data import Batch
from epicycle.engine import n_threads

MISSING_LEFT, LEAF, CATEGORICAL = 1, 2, 4

#: nodes (m, 2), values (m, K) or (m,), roots (T + 1,) and levels (c, 4).
NodeArrays: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

# Sparse rows are made dense in pieces of so many cells: 2 MiB, within the second-level cache of a core.
_PIECE_CELLS = 1 << 18
# About 20 operations for the path of a row through a tree: decides on the number of threads.
_WORK_PER_PATH = 20.0


def pack_nodes(
    feature: np.ndarray, threshold: np.ndarray, left: np.ndarray, kind: np.ndarray, first_level: int = 0
) -> np.ndarray:
    """The words (m, 2) of nodes; `left` is 0 in a leaf, and sets of levels are numbered from `first_level`."""
    leaf, categorical = left == 0, (kind & CATEGORICAL) > 0
    words = np.empty((len(left), 2), np.uint64)
    words[:, 0] = np.where(leaf, np.inf, threshold).view(np.uint64)
    words[categorical, 0] = first_level + np.arange(np.count_nonzero(categorical), dtype=np.uint64)
    to = np.where(leaf, np.arange(len(left)), left).astype(np.uint64)
    flags = np.where(leaf, LEAF | MISSING_LEFT, kind).astype(np.uint64)
    words[:, 1] = to | (feature.astype(np.uint64) << np.uint64(32)) | (flags << np.uint64(56))
    return words


def _flag(nodes: np.ndarray, bit: int) -> np.ndarray:
    return (nodes[:, 1] >> np.uint64(56)) & np.uint64(bit) > 0


def leaf_nodes(nodes: np.ndarray) -> np.ndarray:
    """Mask of the leaves."""
    return _flag(nodes, LEAF)


def categorical_nodes(nodes: np.ndarray) -> np.ndarray:
    """Mask of the nodes that split by a set of levels."""
    return _flag(nodes, CATEGORICAL)


def missing_left_nodes(nodes: np.ndarray) -> np.ndarray:
    """Mask of the nodes that send missing values left, leaves among them."""
    return _flag(nodes, MISSING_LEFT)


def left_children(nodes: np.ndarray) -> np.ndarray:
    """Numbers of the left children within their tree; a leaf has its own."""
    return (nodes[:, 1] & np.uint64(0xFFFFFFFF)).astype(np.int64)


def split_features(nodes: np.ndarray) -> np.ndarray:
    """Features of the nodes; 0 in leaves."""
    return ((nodes[:, 1] >> np.uint64(32)) & np.uint64(0xFFFFFF)).astype(np.int64)


def thresholds(nodes: np.ndarray) -> np.ndarray:
    """First words of the nodes as float64."""
    return np.ascontiguousarray(nodes[:, 0]).view(np.float64)


def level_sets(levels: np.ndarray) -> np.ndarray:
    """Sets of four words as masks (c, 256) of the level codes that go left."""
    words = np.ascontiguousarray(levels).view(np.uint8).reshape(-1, 32)
    return np.unpackbits(words, axis=1, bitorder="little") > 0


# ------------------------------------------------------------------------------------------------ predictions


def dense_pieces(X: Any) -> list[tuple[slice, np.ndarray]]:
    """Dense rows as they are, sparse ones in small dense pieces."""
    if not sp.issparse(X):
        return [(slice(0, X.shape[0]), X)]
    step = max(1, _PIECE_CELLS // max(X.shape[1], 1))
    return [(slice(i, i + step), X[i : i + step].toarray()) for i in range(0, X.shape[0], step)]


def path_threads(n_rows: int, n_trees: int, n_jobs: int | None) -> int:
    """Number of threads for the paths of rows through trees."""
    return n_threads(_WORK_PER_PATH * n_rows * max(n_trees, 1), n_jobs)


def sums_of_batch(
    batch: Batch, nodes: np.ndarray, values: np.ndarray, roots: np.ndarray, levels: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """The sum of the leaf values (m, K) of all trees for every row, (n, K)."""
    out = np.zeros((batch.X.shape[0], values.shape[1]))
    for rows, X in dense_pieces(batch.X):
        threads = path_threads(len(X), len(roots) - 1, n_jobs)
        _native.cart.forest_sums(X, nodes, values, roots, levels, out[rows], threads)
    return out


def leaves_of_batch(
    batch: Batch, nodes: np.ndarray, roots: np.ndarray, levels: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """The leaf of every row in every tree, (n, n_trees)."""
    out = np.empty((batch.X.shape[0], len(roots) - 1), np.int32)
    for rows, X in dense_pieces(batch.X):
        threads = path_threads(len(X), len(roots) - 1, n_jobs)
        _native.cart.forest_leaves(X, nodes, roots, levels, out[rows], threads)
    return out
