"""Learning curves: scores on training and validation rows against the number of rows, or a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._random import stream
from epicycle.select._fit_and_score import Task, raise_if_all_failed, run_tasks
from epicycle.select._inputs import Rows, Split
from epicycle.select._scorers import Scorer
from epicycle.stats._intervals import standard_error


@dataclass(frozen=True)
class Curve:
    """Scores of shape (points, folds) at the values x."""

    x: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    failures: tuple[str, ...] = ()

    def mean(self, part: str) -> np.ndarray:
        return np.asarray(getattr(self, part).mean(axis=1))

    def error(self, part: str) -> np.ndarray:
        return np.asarray(standard_error(getattr(self, part)))


def rows_curve(
    model: Any,
    rows: Rows,
    splits: Sequence[Split],
    scorer: Scorer,
    sizes: Any,
    n_jobs: int | None,
    seed: int,
    *,
    ordered: bool,
    classifier: bool,
) -> Curve:
    """Learning curve: nested parts of the training rows of every fold, validation rows always the same."""
    least = min(len(train) for train, _ in splits)
    counts = _sizes(sizes, least)
    tasks = []
    for size in counts:
        for j, (train, test) in enumerate(splits):
            # One permutation for each fold: smaller parts are contained in larger ones, which makes the curve smooth.
            order = train if ordered else stream(seed, "curve", j).permutation(train)
            if classifier and not ordered:
                order = _classes_first(order, rows.y)
            chosen = order[-size:] if ordered else order[:size]
            tasks.append(Task(f"{size} rows", model, j, (chosen, test)))
    curve = _curve(counts, tasks, len(splits), rows, scorer, n_jobs)
    if len(curve.x) < 2 or curve.x[-1] != counts[-1]:
        failure = f" ({curve.failures[-1][:200]})" if curve.failures else ""
        raise DataError(f"X: the model has no score on all rows of every fold, or on no part of them{failure}")
    return curve


def complexity_curve(
    model: Any,
    rows: Rows,
    splits: Sequence[Split],
    scorer: Scorer,
    name: str,
    values: Sequence[Any],
    n_jobs: int | None,
) -> Curve:
    """Validation curve: one model for every value of a parameter, on all rows of every fold."""
    if values is None or isinstance(values, str) or len(values) < 2:
        raise ParameterError(f"values={values!r:.60}; expected at least two values of {name}")
    if name not in model.get_params(deep=True):
        raise ParameterError(
            f"parameter={name!r}; {type(model).__name__} has {sorted(model.get_params(deep=True))[:12]}"
        )
    models = [clone(model).set_params(**{name: value}) for value in values]
    tasks = [
        Task(f"{name}={value}", changed, j, split)
        for value, changed in zip(values, models, strict=True)
        for j, split in enumerate(splits)
    ]
    return _curve(np.array(list(values)), tasks, len(splits), rows, scorer, n_jobs)


def _curve(x: np.ndarray, tasks: list[Task], k: int, rows: Rows, scorer: Scorer, n_jobs: int | None) -> Curve:
    results = run_tasks(tasks, rows, scorer, n_jobs, train_score=True)
    raise_if_all_failed(results)
    train = np.array([r.train_score for r in results]).reshape(len(x), k)
    validation = np.array([r.score for r in results]).reshape(len(x), k)
    good = np.isfinite(train).all(axis=1) & np.isfinite(validation).all(axis=1)
    failures = tuple(dict.fromkeys(f"{r.name}: {r.failure}" for r in results if r.failure))
    if not good.any():
        raise DataError("scoring: no point of the curve has finite scores on every fold")
    return Curve(x[good], train[good], validation[good], failures)


def _sizes(sizes: Any, least: int) -> np.ndarray:
    given = np.asarray(sizes, dtype=np.float64)
    if given.ndim != 1 or len(given) < 2 or not np.isfinite(given).all() or (given <= 0).any():
        raise ParameterTypeError(f"sizes={sizes!r:.60}; expected at least two shares of the rows, or numbers of them")
    counts = np.round(given * least) if given.max() <= 1 else np.round(given)
    counts = np.unique(np.clip(counts, 2, least).astype(np.int64))
    if len(counts) < 2:
        raise DataError(f"X: {least} training rows in a fold are too few for a learning curve of these sizes")
    return counts


def _classes_first(order: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same rows with one of every class in front, so that the smallest part can be fitted."""
    labels = y[order]
    _, first = np.unique(labels, return_index=True)
    front = np.sort(first)
    return np.concatenate([order[front], np.delete(order, front)])
