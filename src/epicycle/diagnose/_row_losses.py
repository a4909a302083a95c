"""The loss of every row under a model that was not fitted to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.select._fit_and_score import out_of_fold
from epicycle.select._inputs import Rows, check_weights_taken, folds_of, seeded
from epicycle.select._scorers import responses_of
from epicycle.stats._class_scores import ROW_LOSSES, row_losses


def losses_of_rows(
    model: Any, rows: Rows, loss: Any, cv: Any, ordered: bool, n_jobs: int | None, seed: int
) -> tuple[str, np.ndarray, np.ndarray]:
    """The name of the loss, predictions and losses of all rows; NaN where a row was not predicted."""
    classifier = bool(is_classifier(model))
    name = loss if loss is not None else "error" if classifier else "absolute_error"
    _check_loss(name, rows.y)
    if isinstance(cv, str) and cv == "prefit":
        classes = getattr(model, "classes_", None)
        responses, seen = responses_of(model, rows.X, classes), np.ones(rows.n, dtype=bool)
    else:
        if rows.weight is not None:
            check_weights_taken("model", model)
        classes = np.unique(rows.y) if classifier else None
        splits = folds_of(rows, cv, classifier=classifier, ordered=ordered, seed=seed)
        responses, seen = out_of_fold(seeded(model, seed), rows, splits, classes, n_jobs)
    predicted = responses["predict"]
    if name == "log_loss" and "predict_proba" not in responses:
        raise ParameterError(f"loss='log_loss': {type(model).__name__} has no predict_proba")
    losses = np.full(rows.n, np.nan)
    if callable(name):
        losses[seen] = _given(name, rows.y[seen], predicted[seen])
        return getattr(name, "__name__", "loss"), predicted, losses
    used = responses["predict_proba"] if name == "log_loss" else predicted
    losses[seen] = row_losses(name, rows.y[seen], used[seen], classes)
    return name, predicted, losses


def _check_loss(name: Any, y: np.ndarray) -> None:
    if not callable(name) and name not in ROW_LOSSES:
        raise ParameterError(
            f"loss={name!r:.40}; expected 'error', 'log_loss', 'absolute_error', 'squared_error' or a callable"
        )
    if y.ndim != 1:
        raise DataError(f"y: shape {y.shape}; expected one target")
    if name in ("absolute_error", "squared_error") and y.dtype.kind not in "biuf":
        raise ParameterError(f"loss={name!r}: y has labels; expected 'error' or 'log_loss'")


def _given(loss: Any, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Losses by a function of the user."""
    values = np.asarray(loss(y, predicted), dtype=np.float64)
    if values.shape != y.shape or not np.isfinite(values).all():
        raise ParameterError(f"loss: gave shape {values.shape}; expected a finite number for each of {len(y)} rows")
    return values
