"""Shapley values of features: how much each of them moved a prediction away from the average one.

For a set S of known features the prediction is taken as the average over the training rows that reach each leaf, where
the conditions on features outside of S are passed in the shares in which those rows passed them. The Shapley values
divide the difference of the prediction and the average among the features; they add up to it exactly.
"""

from __future__ import annotations

import numpy as np

from epicycle import _native
from epicycle.data import Batch
from epicycle.tree._ensemble import Ensemble

__all__ = ["average_score", "shap_of_batch"]


def shap_of_batch(batch: Batch, ensemble: Ensemble, n_outputs: int) -> np.ndarray:
    """Shapley values (n, p, K) for rows of numbers; sparse rows pass in small dense pieces."""
    X = batch.X
    out = np.zeros((*X.shape, n_outputs))
    nodes, values, roots, levels = (ensemble[name] for name in ("nodes", "values", "roots", "levels"))
    count = ensemble["count"].astype(np.float64)
    if not hasattr(X, "toarray"):
        _native.tree.shap_values(X, nodes, values, roots, levels, count, out, 1)
        return out
    step = max(1, (1 << 18) // max(X.shape[1], 1))
    for i in range(0, X.shape[0], step):
        _native.tree.shap_values(X[i : i + step].toarray(), nodes, values, roots, levels, count, out[i : i + step], 1)
    return out


def average_score(ensemble: Ensemble, start: np.ndarray) -> np.ndarray:
    """For each output the average over the training rows of each tree, added up: what a row without features gets."""
    roots, K = ensemble["roots"][:-1], len(start)
    total = np.array(start, np.float64)
    if len(roots):
        means = np.add.reduceat(ensemble["values"] * ensemble["count"], roots) / ensemble["count"][roots]
        np.add.at(total, np.arange(len(roots)) % K, means)
    return total
