"""Scores of rows: linear predictors, the class and the probabilities that scores stand for, the losses of rows.

Scores of classes have one column for two classes (positive favours the second), K columns for K classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax

from epicycle import engine
from epicycle.data import Batch, Data


def choose_class(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of every row: by the sign of a single column, else the first of the largest score."""
    if len(classes) == 1:
        return np.repeat(classes, len(scores))
    return np.asarray(classes[(scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)])


def one_or_all(values: np.ndarray) -> Any:
    """A plain number for one model, an array for several."""
    return values[0].item() if len(values) == 1 else values


def log_probabilities(scores: np.ndarray) -> np.ndarray:
    """log P of every class: exact also where P underflows."""
    if scores.shape[1] == 1:
        z = scores[:, 0]
        return np.column_stack([-np.logaddexp(0, z), -np.logaddexp(0, -z)])
    scores = scores - scores.max(axis=1, keepdims=True)  # the largest exponent is 0: no overflow
    return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))


def probabilities(scores: np.ndarray) -> np.ndarray:
    """P of every class: the logistic function of a single column, the softmax of several."""
    if scores.shape[1] == 1:
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
    return np.asarray(softmax(scores, axis=1))


def predictor_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    return np.asarray(np.asarray(batch.X @ coef.T) + intercept)


def linear_predictor(data: Data, coef: np.ndarray, intercept: np.ndarray, n_jobs: int | None) -> Any:
    """Shape (n, k) for coef of shape (k, p) and intercept of shape (k,); a lazy Dask array for Dask data."""
    return engine.map(predictor_batch, data, coef, intercept, n_jobs=n_jobs)


def linear_prediction(data: Data, coef: np.ndarray, intercept: Any, n_jobs: int | None) -> Any:
    """Shape (n,) for coef of shape (p,), and (n, k) for (k, p); the intercept is a number or one for each target."""
    table = np.atleast_2d(coef)
    values = linear_predictor(data, table, np.full(len(table), intercept, dtype=coef.dtype), n_jobs)
    return values[:, 0] if coef.ndim == 1 else values


def class_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class that the linear predictor of every row chooses."""
    return choose_class(predictor_batch(batch, coef, intercept), classes)


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
