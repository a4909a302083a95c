"""The decorator of criteria of clusterings, with the docstring entries that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from epicycle.core.estimator._catalogue import in_catalogue

F = TypeVar("F", bound=Callable[..., Any])

_DOCS = {
    "X": "X : array-like of shape (n_samples, n_features)",
    "labels": "labels : array-like of shape (n_samples,)\n    The cluster of every row.",
    "labels_true": "labels_true, labels_pred : array-like of shape (n_samples,)",
    "beta": "beta : float, default={default}\n    Above 1 completeness counts more, below 1 homogeneity.",
    "average_method": 'average_method : {"arithmetic", "geometric", "min", "max"}, default={default}\n'
    "    The mean of the two entropies that the information is divided by.",
}
_DISTANCES = {
    "X": "X : array-like or sparse matrix of shape (n_samples, n_features)\n"
    '    Rows; or their distances, for ``metric="precomputed"``.',
    "metric": "metric : str or callable, default={default}\n    As in :func:`pairwise_distances`.",
    "kwds": "**kwds\n    Parameters of the metric.",
}
_WHOLE = {"sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n    How often each row occurs."}


def criterion(*, whole_weights: bool = False, distances: bool = False, certificate: str = "exact") -> Callable[[F], F]:
    """Decorate a criterion of a clustering.

    Some count rows, and take no weights but whole numbers; some look at distances, of any metric.
    """
    docs = _DOCS | (_WHOLE if whole_weights else {}) | (_DISTANCES if distances else {})
    return in_catalogue("metrics", "E17", certificate=certificate, docs=docs)
