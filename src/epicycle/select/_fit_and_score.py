"""Fits and scores of many models on threads, in an order that does not depend on their number; leave-one-out.

For a linear smoother, y_hat = H y, that fits n - 1 rows as it would fit all of them with the left-out target replaced
by its own prediction, y_i - y_hat(-i) = (y_i - y_hat_i) / (1 - h_i) with the leverage h_i = H_ii: one fit gives all
leave-one-out predictions.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from epicycle.core._exceptions import DataError, EpicycleWarning
from epicycle.core._threads import n_threads, single_threaded_blas
from epicycle.engine._ordered import in_order
from epicycle.linear import LinearRegression, Ridge
from epicycle.select._inputs import Rows, Split, take, weights_for
from epicycle.select._scorers import Scorer, responses_of, score_with

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Task:
    """A model and a split: fit to its training rows, score on its test rows."""

    name: str
    estimator: Any
    fold: int
    split: Split
    columns: np.ndarray | None = None


@dataclass(frozen=True)
class FoldResult:
    """Result of a fit; `failure` is the error where there is no score."""

    name: str
    fold: int
    score: float = np.nan
    train_score: float = np.nan
    seconds: float = 0.0
    failure: str = ""
    converged: bool = True
    responses: dict[str, np.ndarray] = field(default_factory=dict)


def fitted(estimator: Any, rows: Rows, X: Any = None) -> Any:
    """A clone of the estimator, fitted to rows with their weights."""
    model = clone(estimator)
    return model.fit(rows.X if X is None else X, rows.y, **weights_for(model, rows.weight))


def fit_and_score(
    task: Task,
    rows: Rows,
    scorer: Scorer | None,
    *,
    train_score: bool = False,
    responses: bool = False,
    classes: np.ndarray | None = None,
    forgive: bool = True,
) -> FoldResult:
    """Fit on the training part of a split and score on its test part.

    With `forgive` an error of the model is recorded in the result, so that other models go on.
    """
    began = time.perf_counter()
    source = rows if task.columns is None else Rows(take(rows.X, task.columns), rows.y, rows.weight, rows.groups)
    train, test = source.part(task.split[0]), source.part(task.split[1])
    try:
        model = fitted(task.estimator, train)
        score = np.nan if scorer is None else score_with(scorer, model, test.X, test.y, test.weight)
        on_train = np.nan
        if train_score and scorer is not None:
            on_train = score_with(scorer, model, train.X, train.y, train.weight)
        predicted = responses_of(model, test.X, classes) if responses else {}
    except Exception as error:
        if not forgive:
            raise
        seconds = time.perf_counter() - began
        return FoldResult(task.name, task.fold, seconds=seconds, failure=f"{type(error).__name__}: {error}")
    certificate = getattr(model, "certificate_", None)
    converged = certificate is None or certificate.kind == "none" or bool(certificate.holds)
    return FoldResult(
        task.name, task.fold, score, on_train, time.perf_counter() - began, converged=converged, responses=predicted
    )


def run_all(
    work: Callable[[T], R], pieces: Sequence[T], n_jobs: int | None, consume: Callable[[R], None] | None = None
) -> list[R]:
    """``[work(piece) for piece in pieces]`` on threads; `consume` sees the results one by one and in order.

    Convergence is part of the results, and warnings of this package are given by the final fit; other warnings are
    given once each, after the work.
    """
    results: list[R] = []

    def keep(result: R) -> None:
        results.append(result)
        if consume is not None:
            consume(result)

    # Around the threads, not inside them: catch_warnings changes the state of the whole process.
    with warnings.catch_warnings(record=True) as caught, single_threaded_blas():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", EpicycleWarning)  # about coefficients of models that are dropped
        in_order(pieces, work, keep, min(n_threads(float("inf"), n_jobs), max(len(pieces), 1)))
    for message in {(w.category, str(w.message)): w for w in caught}.values():
        warnings.warn_explicit(message.message, message.category, message.filename, message.lineno)
    return results


def run_tasks(
    tasks: Sequence[Task],
    rows: Rows,
    scorer: Scorer | None,
    n_jobs: int | None,
    consume: Callable[[FoldResult], None] | None = None,
    **options: Any,
) -> list[FoldResult]:
    """:func:`fit_and_score` of every task, in their order."""
    return run_all(lambda task: fit_and_score(task, rows, scorer, **options), tasks, n_jobs, consume)


def out_of_fold(
    model: Any, rows: Rows, splits: Sequence[Split], classes: np.ndarray | None, n_jobs: int | None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Predictions and probabilities of every row by the model of its fold, and a mask of the rows that have any."""
    tasks = [Task("", model, j, split) for j, split in enumerate(splits)]
    results = run_tasks(tasks, rows, None, n_jobs, responses=True, classes=classes, forgive=False)
    predicted = np.zeros(rows.n, dtype=bool)
    responses: dict[str, np.ndarray] = {}
    for name in ("predict", "predict_proba"):
        if name in results[0].responses:
            parts = [result.responses[name] for result in results]
            # Text labels of one fold may be shorter than those of another: the type has room for all.
            responses[name] = np.zeros((rows.n, *parts[0].shape[1:]), dtype=np.result_type(*parts))
    for (_, test), result in zip(splits, results, strict=True):
        predicted[test] = True
        for name, values in responses.items():
            values[test] = result.responses[name]
    return responses, predicted


def raise_if_all_failed(results: Sequence[FoldResult]) -> None:
    """Raise the first error where no fit succeeded."""
    if results and all(r.failure for r in results):
        first = results[0]
        raise DataError(f"every fit failed; the first, of {first.name!r}, with {first.failure}")


#: Above this leverage a row determines its own prediction, and the division by 1 - h loses all digits.
_MAX_LEVERAGE = 1 - 1e-8


def one_out_splits(n: int) -> list[Split]:
    """A split for every row, with that row as the test set."""
    every = np.arange(n)
    return [(np.delete(every, i), np.array([i])) for i in range(n)]


def closed_form(estimator: Any, rows: Rows) -> bool:
    """Whether one fit is enough: our least squares or ridge, on one numeric target."""
    # Exactly these classes: a subclass may fit in another way.
    return type(estimator) in (LinearRegression, Ridge) and rows.y.ndim == 1 and rows.y.dtype.kind in "biuf"


def one_out_predictions(estimator: Any, rows: Rows, n_jobs: int | None) -> np.ndarray:
    """Prediction of every row by the model fitted to all others."""
    model = fitted(estimator, rows)
    h = np.asarray(model.leverage(rows.X, rows.weight), dtype=np.float64)
    residual = rows.y - np.asarray(model.predict(rows.X), dtype=np.float64)
    free = h <= _MAX_LEVERAGE
    predictions = np.empty(rows.n)
    predictions[free] = rows.y[free] - residual[free] / (1 - h[free])
    decided = np.flatnonzero(~free)
    if len(decided):
        every = np.arange(rows.n)
        tasks = [Task("", estimator, int(i), (np.delete(every, i), np.array([i]))) for i in decided]
        found = run_tasks(tasks, rows, None, n_jobs, responses=True, forgive=False)
        predictions[decided] = [result.responses["predict"][0] for result in found]
    return predictions
