"""Many fits at once: on threads, in an order that does not depend on their number, with what went wrong noted."""

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
from epicycle.select._inputs import Rows, Split, take, weights_for
from epicycle.select._scorers import Scorer, responses_of, score_with

__all__ = ["FoldResult", "Task", "fit_and_score", "fitted", "run_all"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Task:
    """One model, one split: fit on the one part, score on the other."""

    name: str
    estimator: Any
    fold: int
    split: Split
    columns: np.ndarray | None = None


@dataclass(frozen=True)
class FoldResult:
    """What a fit gave; `failure` says what was raised where there is no score."""

    name: str
    fold: int
    score: float = np.nan
    train_score: float = np.nan
    seconds: float = 0.0
    failure: str = ""
    converged: bool = True
    responses: dict[str, np.ndarray] = field(default_factory=dict)


def fitted(estimator: Any, rows: Rows, X: Any = None) -> Any:
    """A clone fitted to rows, with their weights."""
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

    With `forgive` an error of the model becomes a failure of this result, so that other models go on.
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
        said = responses_of(model, test.X, classes) if responses else {}
    except Exception as error:
        if not forgive:
            raise
        seconds = time.perf_counter() - began
        return FoldResult(task.name, task.fold, seconds=seconds, failure=f"{type(error).__name__}: {error}")
    certificate = getattr(model, "certificate_", None)
    converged = certificate is None or certificate.kind == "none" or bool(certificate.holds)
    return FoldResult(
        task.name, task.fold, score, on_train, time.perf_counter() - began, converged=converged, responses=said
    )


def run_all(
    work: Callable[[T], R], pieces: Sequence[T], n_jobs: int | None, consume: Callable[[R], None] | None = None
) -> list[R]:
    """``[work(piece) for piece in pieces]`` on threads; `consume` sees the results one by one and in order.

    Warnings of convergence are left to the results, those of this package to the fits that are kept; others are given
    once each, after the work.
    """
    results: list[R] = []

    def keep(result: R) -> None:
        results.append(result)
        if consume is not None:
            consume(result)

    # Around the threads, not inside them: what catch_warnings changes belongs to the whole process.
    with warnings.catch_warnings(record=True) as caught, single_threaded_blas():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", EpicycleWarning)  # of coefficients that nobody will read
        in_order(iter(pieces), work, keep, min(n_threads(float("inf"), n_jobs), max(len(pieces), 1)))
    for message in {(w.category, str(w.message)): w for w in caught}.values():
        warnings.warn_explicit(message.message, message.category, message.filename, message.lineno)
    return results


def raise_if_all_failed(results: Sequence[FoldResult]) -> None:
    """Nothing to compare: say what the first model said."""
    if results and all(r.failure for r in results):
        first = results[0]
        raise DataError(f"every fit failed; the first, of {first.name!r}, with {first.failure}")
