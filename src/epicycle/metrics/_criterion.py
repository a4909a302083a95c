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
_WHOLE = {"sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n    How often each row occurs."}


def criterion(*, whole_weights: bool = False) -> Callable[[F], F]:
    """Decorate an exact criterion of a clustering; some count rows, and take no weights but whole numbers."""
    return in_catalogue("metrics", "E17", certificate="exact", docs=_DOCS | (_WHOLE if whole_weights else {}))
