"""What is measured of every row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Choice, check_parameter

__all__ = ["Losses", "losses_of"]

Losses = Callable[[Any, Any], np.ndarray]


def losses_of(model: Any, metric: Any) -> tuple[str, Losses, bool]:
    """(name, losses of rows, whether they are taken of probabilities)."""
    if metric is None:
        metric = "error" if is_classifier(model) or hasattr(model, "classes_") else "squared_error"
    if callable(metric):
        name = getattr(metric, "__name__", "metric")

        def checked(y: Any, predicted: Any) -> np.ndarray:
            values = np.asarray(metric(y, predicted), dtype=np.float64)
            if values.shape != (len(y),):
                raise ParameterError(
                    f"evaluate: metric={name} gave shape {values.shape} for {len(y)} rows, expected one each"
                )
            return values

        return name, checked, False
    check_parameter("evaluate", "metric", metric, Choice("error", "log_loss", "squared_error", "absolute_error"))
    if metric == "log_loss":
        if not hasattr(model, "predict_proba"):
            raise ParameterError(f"evaluate: metric='log_loss' needs predict_proba, which {type(model).__name__} lacks")
        return metric, lambda y, p: _log_losses(y, p, model.classes_), True
    rules: dict[str, Losses] = {
        "error": lambda y, p: (np.asarray(p) != y).astype(np.float64),
        "squared_error": lambda y, p: np.square(np.asarray(p, dtype=np.float64) - y),
        "absolute_error": lambda y, p: np.abs(np.asarray(p, dtype=np.float64) - y),
    }
    return metric, rules[metric], False


def _log_losses(y: np.ndarray, p: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """-log of the probability of each label, which is at least 1e-15, as for a label that the model does not know."""
    at = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    of_label = np.where(classes[at] == y, np.asarray(p)[np.arange(len(y)), at], 0.0)
    return np.asarray(-np.log(np.maximum(of_label, 1e-15)))
