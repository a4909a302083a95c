"""The trees of boosting as fitted regression trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.tree._ensemble import n_trees
from epicycle.tree._nodes import categorical_nodes
from epicycle.tree.cart._regressor import DecisionTreeRegressor
from epicycle.tree.cart._tree import Tree

#: Parameters that boosting and its trees share.
_SHARED = ("max_depth", "max_leaf_nodes", "min_samples_split", "min_weight_fraction_leaf", "min_impurity_decrease")


def tree_parameters(model: Any) -> dict[str, Any]:
    """The parameters that trees are grown with: those of a regression tree, and the learning rate."""
    shared = {name: getattr(model, name) for name in (*_SHARED, "ccp_alpha") if hasattr(model, name)}
    return {**shared, "learning_rate": model.learning_rate}


def regression_trees(model: Any) -> np.ndarray:
    """Trees of shape (rounds, outputs), which predict what a round adds to the scores, before the learning rate."""
    trees, K = model.trees_, len(model._start_)
    out = np.empty((n_trees(trees) // K, K), dtype=object)
    # A model of an earlier release knows the parameters of its last fit alone.
    spans = getattr(model, "_grown_with_", [{"rounds": len(out), **tree_parameters(model)}])
    for t in range(n_trees(trees)):
        rows = slice(int(trees["roots"][t]), int(trees["roots"][t + 1]))
        nodes = trees["nodes"][rows].copy()
        categorical = categorical_nodes(nodes)
        levels = trees["levels"][nodes[categorical, 0].astype(np.int64)]
        nodes[categorical, 0] = np.arange(len(levels), dtype=np.uint64)
        known = next((span for span in spans if t // K < span["rounds"]), spans[-1])
        given = {name: value for name, value in known.items() if name not in ("rounds", "learning_rate")}
        tree = DecisionTreeRegressor(**given)
        tree.tree_ = Tree(
            nodes,
            levels,
            trees["values"][rows, None] / known["learning_rate"],
            np.full(len(nodes), np.nan),
            trees["count"][rows],
            trees["cover"][rows],
            model.n_features_in_,
            np.ones(1, np.int64),
        )
        tree._vector_, tree._from_frame_, tree.categories_ = True, model._from_frame_, model.categories_
        tree.n_features_in_ = model.n_features_in_
        out[t // K, t % K] = tree
    return out
