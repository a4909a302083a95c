"""The loss of every row: of a label, a number or a probability against the target."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Names of the losses that :func:`row_losses` knows.
ROW_LOSSES = ("error", "log_loss", "squared_error", "absolute_error")

#: Smallest probability in a log loss: a label that was given probability 0 costs 34.5, not infinity.
MIN_PROBABILITY = 1e-15


def row_losses(name: str, y: np.ndarray, predicted: Any, classes: np.ndarray | None = None) -> np.ndarray:
    """Losses of rows, one of `ROW_LOSSES`.

    `predicted` are labels or numbers; for the log loss probabilities of `classes`, and a label outside `classes` has
    the smallest probability.
    """
    predicted = np.asarray(predicted)
    if name == "error":
        return np.asarray((predicted != y).astype(np.float64))
    if name == "log_loss":
        labels = np.asarray(classes)
        at = np.minimum(np.searchsorted(labels, y), len(labels) - 1)
        of_label = np.where(labels[at] == y, predicted[np.arange(len(y)), at], 0.0)
        return np.asarray(-np.log(np.clip(of_label, MIN_PROBABILITY, 1.0)))
    residual = predicted.astype(np.float64) - y
    return np.asarray(np.square(residual) if name == "squared_error" else np.abs(residual))
