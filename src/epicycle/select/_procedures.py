"""Model selection by hold-out, k-fold, leave-one-out and nested cross-validation.

All of them fit every model to some rows and score it on others; the best model is then fitted to all rows.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterTypeError
from epicycle.core._parameters import SHARED_PARAMETERS, check_parameter
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.select._compare import Candidate, OnScore, Scored, argbest, collected, conclude, prepared
from epicycle.select._fit_and_score import (
    FoldResult,
    Task,
    closed_form,
    one_out_predictions,
    one_out_splits,
    raise_if_all_failed,
    run_tasks,
)
from epicycle.select._inputs import CROSS_VALIDATION_DOCS, held_out_part
from epicycle.select._scorers import DRAWS, Replay, poolable, resampled, score_with
from epicycle.select._selection import Selection
from epicycle.stats._intervals import standard_error

DOCS = {
    **CROSS_VALIDATION_DOCS,
    "models": """models : dict, list, estimator or (estimator, grid)
    Estimators of one kind by name, each alone or as a pair with a grid of parameters
    (:class:`~sklearn.model_selection.ParameterGrid`), of which every point is a candidate. They are cloned; where their
    `random_state` is None, it is derived from `random_state`.""",
    "test": """test : tuple of X and y, optional
    A separate test set; the chosen model is scored on it once, with an interval.""",
    "refit": """refit : bool, default={default}
    Whether the chosen model is fitted to all rows.""",
    "level": """level : float, default={default}
    Confidence level of the interval of the test score.""",
}


@in_catalogue("select", "J1", certificate="standard errors", docs=DOCS)
def k_fold(
    models: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 10,
    scoring: Any = None,
    groups: Any = None,
    ordered: bool = False,
    sample_weight: Any = None,
    test: tuple[Any, Any] | None = None,
    one_standard_error: bool = False,
    refit: bool = True,
    level: float = 0.95,
    n_jobs: int | None = None,
    random_state: Any = 0,
    on_score: OnScore = None,
) -> Selection:
    r"""Choose a model by k-fold cross-validation and fit it to all rows.

    The rows are split into k folds; every model is fitted k times, each time to all folds but one, and scored on that
    one. The best mean score is chosen,

    .. math:: \hat\imath = \arg\max_i \frac1k \sum_{j=1}^k s_j(h_{ij}) .

    Parameters
    ----------
    cv : int, splitter or splits, default=10
        Number of folds, in random order, stratified for classifiers, with the rows of a group in one fold; or a
        splitter of scikit-learn.
    one_standard_error : bool, default=False
        Take the first given model whose score is within one standard error of the best, for models in the order of
        their complexity.
    on_score : callable, optional
        ``on_score(name, fold, score)`` after every fit, in a fixed order.

    See Also
    --------
    nested : the score of choosing and fitting together.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import DecisionTreeRegressor, Ridge, select
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = select.k_fold({"ridge": (Ridge(), {"alpha": [0.1, 10]}), "tree": DecisionTreeRegressor()}, X, y)
    >>> found.best
    'ridge (alpha=0.1)'
    >>> round(found.score, 2)
    0.47
    """
    options = {"refit": refit, "n_jobs": n_jobs, "groups": groups, "test": test, "level": level, "on_score": on_score}
    comparison = prepared(models, X, y, scoring, sample_weight, random_state, **options)
    splits = comparison.folds(cv, ordered)
    how = f"{len(splits)}-fold cross-validation"
    return conclude(comparison, comparison.over_folds(splits), how, one_standard_error=one_standard_error)


@in_catalogue("select", "J1", certificate="standard errors", docs=DOCS)
def hold_out(
    models: Any,
    X: Any,
    y: Any,
    *,
    test_size: float = 0.3,
    scoring: Any = None,
    groups: Any = None,
    ordered: bool = False,
    sample_weight: Any = None,
    test: tuple[Any, Any] | None = None,
    refit: bool = True,
    level: float = 0.95,
    n_jobs: int | None = None,
    random_state: Any = 0,
    on_score: OnScore = None,
) -> Selection:
    """Choose a model on a validation set, and fit it to all rows.

    Every model is fitted once, to the training rows, and scored on the others. Standard errors come from resampling
    these rows, or whole groups of them.

    Parameters
    ----------
    test_size : float, default=0.3
        Share of the rows for the validation set.
    ordered : bool, default=False
        The validation set is the last rows.
    on_score : callable, optional
        ``on_score(name, 0, score)`` after every fit.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import LinearRegression, PolynomialRegression, select
    >>> X, y = load_diabetes(return_X_y=True)
    >>> select.hold_out([LinearRegression(), PolynomialRegression(degree=3)], X, y).best
    'LinearRegression'
    """
    options = {"refit": refit, "n_jobs": n_jobs, "groups": groups, "test": test, "level": level, "on_score": on_score}
    comparison = prepared(models, X, y, scoring, sample_weight, random_state, **options)
    rows, seed, chosen, scorer = comparison.rows, comparison.seed, comparison.candidates, comparison.scorer
    split = held_out_part(rows, test_size, classifier=comparison.classifier, ordered=ordered, seed=seed)
    classes, pooled = comparison.classes, poolable(scorer)
    tasks = [Task(c.name, c.estimator, 0, split) for c in chosen]
    results = comparison.run(tasks, responses=pooled, classes=classes)
    scored = collected(chosen, results, 1)
    scored.by = "rows"
    held = rows.part(split[1])
    scored.spread = np.full((len(chosen), 1), np.nan)
    if pooled:

        def draws(candidate: Candidate, result: FoldResult) -> np.ndarray:
            if result.failure:
                return np.full(DRAWS, np.nan)
            replay = Replay(candidate.estimator, result.responses, classes)
            return resampled(scorer, replay, held.y, held.weight, seed, groups=held.groups)

        scored.spread = np.stack([draws(c, result) for c, result in zip(chosen, results, strict=True)])
    return conclude(comparison, scored, f"{len(split[1])} held out rows of {rows.n}")


@in_catalogue("select", "J1", certificate="standard errors", docs=DOCS)
def leave_one_out(
    models: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    sample_weight: Any = None,
    test: tuple[Any, Any] | None = None,
    refit: bool = True,
    level: float = 0.95,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Selection:
    r"""Choose a model by leave-one-out cross-validation and fit it to all rows.

    Every row is predicted by the model fitted to all others, and all these predictions are scored together. For
    :class:`~epicycle.LinearRegression` and :class:`~epicycle.Ridge` one fit gives all of them,
    :math:`y_i - \hat y_{(-i)} = (y_i - \hat y_i) / (1 - h_i)` with the leverages :math:`h_i`; the same to rounding as
    a fit for every row.

    Parameters
    ----------
    scoring : str or callable, optional
        A scorer of scikit-learn, larger is better; by default accuracy or R2. Another callable scores row by row, and
        the mean counts.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Ridge, select
    >>> X, y = load_diabetes(return_X_y=True)
    >>> select.leave_one_out({"ridge": (Ridge(), {"alpha": [0.01, 0.1, 1]})}, X, y).best_params
    {'alpha': 0.01}
    """
    check_parameter("leave_one_out", "n_jobs", n_jobs, SHARED_PARAMETERS["n_jobs"])  # the shortcuts use no threads
    options: dict[str, Any] = {"refit": refit, "n_jobs": n_jobs, "test": test, "level": level}
    comparison = prepared(models, X, y, scoring, sample_weight, random_state, **options)
    rows, seed, chosen, scorer = comparison.rows, comparison.seed, comparison.candidates, comparison.scorer
    if not poolable(scorer):
        return conclude(comparison, comparison.over_folds(one_out_splits(rows.n)), "leave-one-out")
    classes = comparison.classes
    score, seconds = np.full(len(chosen), np.nan), np.zeros(len(chosen))
    spread, failures = np.full((len(chosen), DRAWS), np.nan), {}
    closed = 0
    for i, c in enumerate(chosen):
        began = time.perf_counter()
        if closed_form(c.estimator, rows):
            closed += 1
            responses = {"predict": one_out_predictions(c.estimator, rows, n_jobs)}
        else:
            tasks = [Task(c.name, c.estimator, j, split) for j, split in enumerate(one_out_splits(rows.n))]
            results = run_tasks(tasks, rows, None, n_jobs, responses=True, classes=classes)
            if failed := next((r.failure for r in results if r.failure), ""):
                failures[c.name] = failed
                continue
            common = set.intersection(*(set(r.responses) for r in results))
            responses = {name: np.concatenate([r.responses[name] for r in results]) for name in common}
        replay = Replay(c.estimator, responses, classes)
        score[i] = score_with(scorer, replay, np.arange(rows.n)[:, None], rows.y, rows.weight)
        spread[i] = resampled(scorer, replay, rows.y, rows.weight, seed)
        seconds[i] = time.perf_counter() - began
    if len(failures) == len(chosen):
        raise_if_all_failed([FoldResult(name, 0, failure=failure) for name, failure in failures.items()])
    scored = Scored(score, spread, seconds, "rows", failures=failures)
    how = f"leave-one-out cross-validation of {rows.n} rows"
    notes = (f"leave-one-out predictions of {closed} models are exact, from one fit each",) if closed else ()
    return conclude(comparison, scored, how, notes=notes)


@in_catalogue("select", "J1", certificate="standard errors", docs=DOCS)
def nested(
    models: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    inner_cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    ordered: bool = False,
    sample_weight: Any = None,
    refit: bool = True,
    n_jobs: int | None = None,
    random_state: Any = 0,
    on_score: OnScore = None,
) -> Selection:
    """Choose a model, and score the procedure of choosing on rows that it has not seen.

    In every outer fold a model is chosen by an inner cross-validation of the other rows, fitted to these, and scored on
    the fold. The mean of these scores is `procedure_score`; unlike the best model's own score it is not the best of
    many. The model to use is then chosen by a cross-validation of all rows.

    Parameters
    ----------
    cv : int, splitter or splits, default=5
        Outer folds; also those of the final choice.
    inner_cv : int or splitter, default=5
        Folds inside the training part of each outer fold.
    on_score : callable, optional
        ``on_score(name, outer fold, score)`` for the model chosen in each outer fold.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Ridge, select
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = select.nested({"ridge": (Ridge(), {"alpha": [0.01, 0.1, 1, 10]})}, X, y)
    >>> len(found.chosen), round(found.procedure_score, 2)
    (5, 0.48)
    """
    options = {"refit": refit, "n_jobs": n_jobs, "groups": groups}
    comparison = prepared(models, X, y, scoring, sample_weight, random_state, **options)
    chosen, outer = comparison.candidates, comparison.folds(cv, ordered)
    if on_score is not None and not callable(on_score):
        raise ParameterTypeError(f"on_score={on_score!r:.60}; expected a callable")
    if hasattr(inner_cv, "__iter__") and not hasattr(inner_cv, "split"):
        raise ParameterTypeError("inner_cv: splits of all rows do not fit a part; expected a number or a splitter")
    winners, scores = [], []
    for number, (train, test_rows) in enumerate(outer):
        part = replace(comparison, rows=comparison.rows.part(train), seed=comparison.seed + 1 + number)
        winner = chosen[argbest(part.over_folds(part.folds(inner_cv, ordered)).score)]
        (result,) = comparison.run([Task(winner.name, winner.estimator, number, (train, test_rows))])
        winners.append(winner.name)
        scores.append(result.score)
        if on_score is not None:
            on_score(winner.name, number, result.score)
    procedure = float(np.mean(scores)), float(standard_error(np.array(scores))), tuple(winners)
    how = f"{len(outer)}-fold cross-validation"
    return conclude(comparison, comparison.over_folds(outer), how, procedure=procedure)
