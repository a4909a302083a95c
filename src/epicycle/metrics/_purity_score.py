"""Purity of clusters: the share of rows in the most frequent class of their cluster."""

from __future__ import annotations

from typing import Any

from epicycle.metrics._contingency_matrix import counted_table
from epicycle.metrics._criterion import criterion


@criterion()
def purity_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """The share of rows that belong to the most frequent class of their cluster.

    It never falls when clusters are split: compare clusterings with the same number of clusters.

    Examples
    --------
    >>> from epicycle.metrics import purity_score
    >>> round(purity_score(["a", "a", "b", "b", "b", "c"], [0, 0, 0, 1, 1, 1]), 4)
    0.6667
    """
    table = counted_table(labels_true, labels_pred, sample_weight)
    if not table.nnz:
        return 1.0
    return float(table.max(axis=0).sum() / table.sum())
