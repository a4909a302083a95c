"""The loss of every row under a model that was not fitted to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.select._fit_and_score import FoldResult, Task, fit_and_score, run_all
from epicycle.select._inputs import Rows, check_weights_taken, folds_of, seeded
from epicycle.select._scorers import responses_of

__all__ = ["losses_of_rows"]


def losses_of_rows(  # noqa: C901 - one branch for each scorer
    model: Any, rows: Rows, loss: Any, cv: Any, ordered: bool, n_jobs: int | None, seed: int
) -> tuple[str, np.ndarray, np.ndarray]:
    """The name of the loss, predictions and losses of all rows; NaN where a row was not predicted."""
    classifier = bool(is_classifier(model))
    name = loss if loss is not None else "error" if classifier else "absolute_error"
    if not callable(name) and name not in ("error", "log_loss", "absolute_error", "squared_error"):
        raise ParameterError(
            f"loss={loss!r:.40}; expected 'error', 'log_loss', 'absolute_error', 'squared_error' or a callable"
        )
    if rows.y.ndim != 1:
        raise DataError(f"y: shape {rows.y.shape}; expected one target")
    if name in ("absolute_error", "squared_error") and rows.y.dtype.kind not in "biuf":
        raise ParameterError(f"loss={name!r}: y has labels; expected 'error' or 'log_loss'")
    classes = np.unique(rows.y) if classifier else None
    responses: dict[str, np.ndarray] = {}
    seen = np.ones(rows.n, dtype=bool)
    if isinstance(cv, str) and cv == "prefit":
        responses = responses_of(model, rows.X, getattr(model, "classes_", None))
        classes = getattr(model, "classes_", classes)
    else:
        if rows.weight is not None:
            check_weights_taken("model", model)
        fixed = seeded(model, seed)
        splits = folds_of(rows, cv, classifier=classifier, ordered=ordered, seed=seed)

        def work(task: Task) -> FoldResult:
            return fit_and_score(task, rows, None, responses=True, classes=classes, forgive=False)

        results = run_all(work, [Task("", fixed, j, split) for j, split in enumerate(splits)], n_jobs)
        seen[:] = False
        for key in results[0].responses:
            if key in ("predict", "predict_proba"):
                first = results[0].responses[key]
                responses[key] = np.zeros((rows.n, *first.shape[1:]), dtype=first.dtype)
        for (_, test), result in zip(splits, results, strict=True):
            seen[test] = True
            for key, values in responses.items():
                if values.dtype != result.responses[key].dtype:
                    values = responses[key] = values.astype(np.result_type(values, result.responses[key]))
                values[test] = result.responses[key]
    predicted = responses["predict"]
    losses = np.full(rows.n, np.nan)
    if callable(name):
        given = np.asarray(name(rows.y[seen], predicted[seen]), dtype=np.float64)
        if given.shape != (int(seen.sum()),) or not np.isfinite(given).all():
            raise ParameterError(
                f"loss: gave shape {given.shape}; expected a finite number for each of {seen.sum()} rows"
            )
        losses[seen] = given
        return getattr(name, "__name__", "loss"), predicted, losses
    if name == "log_loss":
        if "predict_proba" not in responses:
            raise ParameterError(f"loss='log_loss': {type(model).__name__} has no predict_proba")
        at = np.searchsorted(np.asarray(classes), rows.y)
        p = responses["predict_proba"][np.arange(rows.n), at]
        losses[seen] = -np.log(np.clip(p, 1e-15, 1.0))[seen]
    elif name == "error":
        losses[seen] = (predicted != rows.y)[seen]
    else:
        r = np.abs(rows.y - predicted.astype(np.float64))
        losses[seen] = (r if name == "absolute_error" else r**2)[seen]
    return name, predicted, losses
