"""Rules by which the trees of boosting grow, and are pruned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from epicycle import _native
from epicycle.tree._ensemble import GrownTree


@dataclass(frozen=True)
class Growth:
    """Rules of growth; 0 sets no limit to depth and leaves."""

    n_bins: np.ndarray
    categorical: np.ndarray
    max_leaf_nodes: int
    max_depth: int
    min_samples_leaf: int
    min_child_weight: float
    l2: float
    min_gain: float
    smoothing: float
    monotone: np.ndarray | None = None
    groups: np.ndarray | None = None
    min_samples_split: int = 2
    min_decrease: float = 0.0
    min_weight_fraction: float = 0.0
    ccp_alpha: float = 0.0

    def for_weight(self, total: float) -> Growth:
        """The rules for rows of this total weight.

        A split that gains g lowers the sum of w c (z - h)^2, with working responses z, by 2 g.
        """
        return replace(self, min_gain=max(self.min_gain, self.min_decrease * total / 2))

    def pruned(self, tree: GrownTree, total: float, weights: np.ndarray | None) -> GrownTree:
        """The tree without the splits of nodes that have too few rows, children of too little weight, or no worth.

        `weights` are those of the nodes, None where rows have none. A subtree is worth what its splits take off the
        mean squared error of the working response, less `ccp_alpha` for each leaf that it adds: keeping those of
        positive worth, from below, is minimal cost-complexity pruning.
        """
        inner = tree.left > 0
        cut = inner & (tree.end - tree.begin < self.min_samples_split)
        if weights is not None and self.min_weight_fraction > 0:
            lighter = np.minimum(weights[tree.left], weights[(tree.left + 1) % len(weights)])
            cut |= inner & (lighter < self.min_weight_fraction * total)
        if self.ccp_alpha > 0:
            worth = np.zeros(len(cut))
            for i in np.flatnonzero(inner & ~cut)[::-1].tolist():  # children come after their parents
                at = tree.left[i]
                worth[i] = max(0.0, 2 * tree.gain[i] / total - self.ccp_alpha + worth[at] + worth[at + 1])
                cut[i] = worth[i] == 0
        return without_splits(tree, cut)

    def split_rules(self) -> _native.tree.SplitRules:
        """The rules that the search for one split follows."""
        return _native.tree.SplitRules(
            categorical=self.categorical,
            monotone=self.monotone,
            min_samples=self.min_samples_leaf,
            min_child_weight=self.min_child_weight,
            l2=self.l2,
            min_gain=self.min_gain,
            smoothing=self.smoothing,
        )


def without_splits(tree: GrownTree, cut: np.ndarray) -> GrownTree:
    """The tree in which the nodes of a mask are leaves."""
    left, keep = tree.left.copy(), np.ones(len(tree.left), bool)
    if not cut.any():
        return tree
    for i in np.flatnonzero(left > 0).tolist():  # parents come before their children
        if cut[i] or not keep[i]:
            keep[left[i] : left[i] + 2] = False
    left[cut] = 0
    moved = np.where(left > 0, (np.cumsum(keep) - 1)[left], 0).astype(tree.left.dtype)
    arrays = {**vars(tree), "left": moved, "sides": tree.sides.reshape(-1, 4)}
    arrays["gain"] = np.where(cut, 0.0, tree.gain)
    return GrownTree(**{name: array[keep] for name, array in arrays.items()})
