"""A nearly perfect score is an alarm: some columns may hold the target. The smallest set that explains it is named.

A column that holds the target alone is found before the search (`leaking_columns`). Several may hold it together, as
the parts of a sum do; then the score of the chosen model shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from epicycle.automl._budget import Budget
from epicycle.automl._candidates import Candidate
from epicycle.automl._entry import Entry
from epicycle.automl._evaluation import Evaluation, with_columns_of
from epicycle.automl.checks._data_checks import DataIssue
from epicycle.automl.tables._level_means import LevelMeans
from epicycle.automl.tables._table_model import innermost
from epicycle.core._random import stream
from epicycle.theory import test_bound

#: Share of the variance, or of the errors of a constant, that is explained in a nearly perfect prediction.
_NEARLY = {"regression": 0.995, "classification": 0.99}
#: Of classes the share has to be this with 95% confidence too: 30 right predictions of 30 are no alarm.
_AT_LEAST = 0.97
#: What a set of columns may lack where the rows are too few for a nearly perfect score.
_SLACK = 1e-3
#: Rows of the fits and of their scores, and columns of a set at most.
_ROWS, _MAX_COLUMNS = 3_000, 6


def explained(y: np.ndarray, predicted: np.ndarray, task: str) -> float:
    """R2, or the share of the errors of the most frequent class that the predictions avoid."""
    if task == "regression":
        total = float(((y - y.mean()) ** 2).sum())
        return 1 - float(((y - predicted) ** 2).sum()) / total if total > 0 else 0.0
    others = 1 - np.unique(y, return_counts=True)[1].max() / len(y)
    return 1 - float(np.mean(y != predicted)) / others if others > 0 else 0.0


def is_nearly_perfect(y: np.ndarray, predicted: np.ndarray, task: str) -> bool:
    """Whether predictions of rows that the fit has not seen are too good to be believed."""
    share = explained(y, predicted, task)
    if share < _NEARLY[task] or task == "regression":
        return share >= _NEARLY[task]
    others = 1 - np.unique(y, return_counts=True)[1].max() / len(y)
    most = test_bound(errors=int(np.sum(y != predicted)), n=len(y), level=0.95).upper
    return bool(1 - most / others >= _AT_LEAST)


def unseen_predictions(
    evaluation: Evaluation, entry: Entry, y_test: np.ndarray, predicted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Targets and predictions of the test rows and, of classes, of the folds too: more rows for the judgement."""
    classes, rows = evaluation.metric.classes, entry.most_rows()
    targets, found = [y_test], [predicted]
    seen = np.zeros(len(evaluation.y), bool)
    for (n, fold), result in entry.results.items():
        if classes is not None and n == rows and "predict_proba" in result.responses:
            test = evaluation.part(fold, rows)[1]
            new = ~seen[test]
            targets.append(evaluation.y[test[new]])
            found.append(np.asarray(classes)[result.responses["predict_proba"][new].argmax(axis=1)])
            seen[test] = True
    return np.concatenate(targets), np.concatenate(found)


def explaining_columns(
    evaluation: Evaluation, candidate: Candidate, budget: Budget, keep: float = 0.0
) -> tuple[list[str], bool]:
    """The smallest set of columns found with which the candidate is as good, and whether it is as good at all.

    Columns are added in the order of their permutation importances until the score is reached; those without which it
    is reached as well are taken out again. Where the time is up, or more than a few are needed, the most important.
    """
    task = evaluation.facts.task
    train, test = evaluation.part(0, _ROWS)
    train, test = train[-_ROWS:], test[:_ROWS]
    form = candidate.family.form
    X, X_test = (evaluation.features(form, rows) for rows in (train, test))
    sources = np.array(evaluation.encoders[form].sources_)

    def share_of(names: Sequence[str]) -> float:
        chosen = np.flatnonzero(np.isin(sources, names))
        model = _fitted(evaluation, candidate, X, evaluation.y[train], chosen)
        return explained(evaluation.y[test], model.predict(X_test[:, chosen]), task)

    ranked = _by_importance(evaluation, candidate, X, train, X_test, test, sources, lambda: budget.left(keep) > 0)
    enough = min(share_of(ranked) - _SLACK, _NEARLY[task])
    found: list[str] = []
    for name in ranked[:_MAX_COLUMNS]:
        if budget.left(keep) <= 0:
            return ranked[:3], False
        found.append(name)
        if share_of(found) >= enough:
            break
    else:
        return ranked[:3], False
    for name in [*found]:
        rest = [other for other in found if other != name]
        if rest and budget.left(keep) > 0 and share_of(rest) >= enough:
            found = rest
    return found, True


def _fitted(evaluation: Evaluation, candidate: Candidate, X: Any, y: np.ndarray, chosen: np.ndarray) -> Any:
    """The candidate fitted to some of the features."""
    model = candidate.build(evaluation.seed, n_jobs=evaluation.n_jobs, **evaluation.settings(candidate, len(y)))
    inner = innermost(model)
    if candidate.family.form == "trees" and "categorical_features" in inner.get_params(deep=False):
        levels = np.flatnonzero(np.isin(chosen, evaluation.encoders["trees"].categorical_))
        inner.set_params(categorical_features=levels.tolist() or None)
        wide = np.flatnonzero(np.isin(chosen, evaluation.encoders["trees"].wide_))
        model = LevelMeans(model, wide.tolist()) if len(wide) else model
    if "places" in inner.get_params(deep=False):  # a network of images: the columns are some of the pixels
        places = np.arange(X.shape[1]) if inner.places is None else np.asarray(inner.places)
        inner.set_params(places=places[chosen].tolist())
    return model.fit(X[:, chosen], y)


def _by_importance(
    evaluation: Evaluation,
    candidate: Candidate,
    X: Any,
    train: np.ndarray,
    X_test: Any,
    test: np.ndarray,
    sources: np.ndarray,
    in_time: Callable[[], bool],
) -> list[str]:
    """Columns by the share that is lost when their values change places between the rows; last those without time."""
    task, y = evaluation.facts.task, evaluation.y[test]
    model = _fitted(evaluation, candidate, X, evaluation.y[train], np.arange(len(sources)))
    order = stream(evaluation.seed, "suspects").permutation(len(test))
    lost = {}
    for name in dict.fromkeys(sources.tolist()):
        if not in_time():
            lost[name] = -np.inf
            continue
        columns = np.flatnonzero(sources == name)
        predicted = model.predict(with_columns_of(X_test, order, columns))
        lost[name] = -explained(y, predicted, task)
    return sorted(lost, key=lambda name: -lost[name])


def alarm(score: str, names: Sequence[str], *, enough: bool) -> DataIssue:
    """The issue of a nearly perfect score, with the suspects."""
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    drop = " ".join(f"--drop {name!r}" for name in names)
    if enough and len(names) > 1:
        why = f"{listed} together explain it: suspected leakage. Are they known when the prediction is made?"
    elif enough:
        why = f"{listed} alone explains it: suspected leakage. Is it known when the prediction is made?"
    else:
        why = f"suspected leakage, by {listed} or others. Are they known when the prediction is made?"
    text = f"{score} is nearly perfect, and {why} If not, leave {'them' if len(names) > 1 else 'it'} out ({drop})"
    return DataIssue("leakage", "high", text, tuple(names))
