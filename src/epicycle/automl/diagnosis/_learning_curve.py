"""The learning curve of the chosen model: fits to parts of the rows, and at all rows what the search has measured."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from epicycle.automl._candidates import Candidate
from epicycle.automl._entry import Entry
from epicycle.automl._evaluation import Evaluation
from epicycle.automl.tables._table_model import TableModel, with_categories
from epicycle.diagnose._bias_variance import BiasVariance, Level, assessed
from epicycle.diagnose._learning_curves import Curve
from epicycle.select._inputs import rows_ratio
from epicycle.select._scorers import responses_of

#: Shares of the rows that are fitted, from the slowest plan to the fastest.
_PLANS = ((0.1, 0.3, 0.6), (0.1, 0.3), (0.05, 0.2), (0.02, 0.1), (0.05,))
#: Folds of the smaller fits at most.
_FOLDS = 5
#: Rows that the training score is computed on at most.
_MAX_SCORED = 5_000
_LEAST_ROWS = 20
#: Seconds of a fit to hardly any rows.
_OVERHEAD = 0.02


def affordable_plan(n_folds: int, rows: int, seconds_per_fit: float, seconds: float) -> tuple[list[int], int]:
    """Numbers of rows to fit to, and how many folds; no numbers where not even the fastest plan fits into the time."""
    for shares in _PLANS:
        sizes = sorted({max(round(share * rows), _LEAST_ROWS) for share in shares})
        sizes = [size for size in sizes if size < rows]
        if not sizes:
            return [], 0
        each = sum(seconds_per_fit * size / rows + _OVERHEAD for size in sizes)
        folds = min(n_folds, _FOLDS, int(seconds / each))
        if folds >= min(n_folds, 3):
            return sizes, folds
    return [], 0


def learning_curve(
    evaluation: Evaluation,
    candidate: Candidate,
    model: TableModel,
    entry: Entry,
    sizes: list[int],
    n_folds: int,
    seconds: float = math.inf,
) -> Curve:
    """Scores on training and validation rows; the last point is that of the search.

    model : the candidate, fitted to all training rows, which gives the last training score.
    seconds : sizes whose fits would take longer, by those before, are left out.
    """
    began = time.perf_counter()
    metric, form, rows = evaluation.metric, candidate.family.form, entry.most_rows()
    folds = entry.folds(rows)[:n_folds]

    def score(fitted: Any, at: np.ndarray) -> float:
        at = at[:: -(-len(at) // _MAX_SCORED)]
        weight = None if evaluation.weight is None else evaluation.weight[at]
        return metric.score(
            responses_of(fitted, evaluation.features(form, at), metric.classes), evaluation.y[at], weight
        )

    # What is left out stays NaN.
    train, validation = (np.full((len(sizes) + 1, len(folds)), np.nan) for _ in range(2))
    for i, size in enumerate(sizes):
        spent = time.perf_counter() - began
        if i and spent * (1 + size / sum(sizes[:i])) > seconds:
            break
        for j, fold in enumerate(folds):
            part, test = evaluation.part(fold, size)
            estimator = candidate.build(evaluation.seed, n_jobs=evaluation.n_jobs)
            estimator = with_categories(estimator, evaluation.encoders[form])
            weighted = evaluation.weight is not None and candidate.family.takes_weight
            weights = {"sample_weight": evaluation.weight[part]} if weighted and evaluation.weight is not None else {}
            estimator.fit(evaluation.features(form, part), evaluation.y[part], **weights)
            train[i, j], validation[i, j] = score(estimator, part), score(estimator, test)
    train[-1] = score(model.model_, np.arange(len(evaluation.y)))
    validation[-1] = entry.scores(rows, folds)
    good = np.isfinite(train).all(axis=1) & np.isfinite(validation).all(axis=1)
    return Curve(np.array([*sizes, rows])[good], train[good], validation[good])


def judged_curve(evaluation: Evaluation, candidate: Candidate, model: TableModel, curve: Curve) -> BiasVariance:
    """The diagnosis of bias and variance by the curve, against what the search has reached."""
    metric, at_all = evaluation.metric, curve.validation[-1]
    sign = 1 if metric.greater_is_better else -1
    return assessed(
        candidate.build(evaluation.seed),
        curve,
        metric.label,
        Level(float(at_all.mean()), at_all, "the best of the search"),
        sign * evaluation.baseline()[0],
        ratio=rows_ratio(evaluation.splits),
        sign=sign,
        certificate=model.certificate_,
        n_features=evaluation.matrix.shape[1],
    )
