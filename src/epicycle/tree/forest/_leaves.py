"""Targets of the training rows in every leaf, and the quantiles that a forest predicts from them (Meinshausen, 2006).

Row i of the training data has the weight  w_i(x) = mean over trees of  1(i in the leaf of x) / size of the leaf,  and
the distribution of y given x is estimated by sum_i w_i(x) 1(y_i <= y).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

__all__ = ["LeafSamples", "leaf_indicator", "quantiles_of"]


class LeafSamples:
    """Rows of all leaves, by the rank of their target."""

    def __init__(self, y: np.ndarray, earlier: Mapping[str, np.ndarray] | None = None) -> None:
        order = np.argsort(y, kind="stable")
        self.y = np.asarray(y, np.float64)[order]
        self.rank = np.empty(len(y), np.int32)
        self.rank[order] = np.arange(len(y), dtype=np.int32)
        self.ranks = [] if earlier is None else [earlier["rank"]]
        self.shares = [] if earlier is None else [earlier["share"]]
        self.sizes = [] if earlier is None else [earlier["size"]]

    def add(self, rows: np.ndarray, shares: np.ndarray, sizes: np.ndarray) -> None:
        """One tree: its rows leaf by leaf, their shares, and how many each of its nodes has."""
        self.ranks.append(self.rank[rows])
        self.shares.append(shares.astype(np.float32))
        self.sizes.append(sizes.astype(np.int32))

    def state(self) -> dict[str, np.ndarray]:
        return {
            "y": self.y,
            "rank": np.concatenate(self.ranks),
            "share": np.concatenate(self.shares),
            "size": np.concatenate(self.sizes),
        }


def leaf_indicator(leaves: np.ndarray, roots: np.ndarray) -> sp.csr_array:
    """Leaves (n, T), numbered in each tree, as an indicator matrix over the nodes of all trees."""
    n, T = leaves.shape
    indices = (leaves.astype(np.int64) + roots[:-1]).ravel()
    return sp.csr_array((np.ones(n * T, np.float32), indices, np.arange(0, n * T + 1, T)), shape=(n, int(roots[-1])))


def quantiles_of(
    leaves: np.ndarray, roots: np.ndarray, samples: Mapping[str, np.ndarray], levels: np.ndarray
) -> np.ndarray:
    """Quantiles at `levels`, (n, len(levels)), of rows with these leaves: the smallest y whose distribution function
    reaches the level."""
    y, T = samples["y"], leaves.shape[1]
    start = np.concatenate([[0], np.cumsum(samples["size"], dtype=np.int64)])
    content = sp.csr_array((samples["share"], samples["rank"], start), shape=(len(start) - 1, len(y)))
    out = np.empty((len(leaves), len(levels)))
    per_leaf = len(samples["rank"]) / max(1, int(np.count_nonzero(samples["size"])))
    step = max(1, int((1 << 24) / (T * (per_leaf + 1))))
    for i in range(0, len(leaves), step):
        weights = sp.csr_array(leaf_indicator(leaves[i : i + step], roots) @ content)
        weights.sort_indices()
        sums = np.cumsum(weights.data, dtype=np.float64)
        before = np.concatenate([[0.0], sums])[weights.indptr[:-1]]
        for k, level in enumerate(levels):
            # Rounding must not step over a row whose sum meets the level exactly.
            wanted = before + level * T - 1e-6 * T
            at = np.searchsorted(sums, wanted, side="left")
            at = np.clip(at, weights.indptr[:-1], weights.indptr[1:] - 1)
            out[i : i + step, k] = y[weights.indices[at]]
    return out
