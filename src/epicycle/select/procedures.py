"""Choosing among models: hold-out, k-fold, leave-one-out and nested cross-validation.

All of them fit every model on some rows, score it on others, and pick the best; then the winner is fitted to all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import stdtrit

from epicycle.exceptions import ParameterError, ParameterTypeError
from epicycle.randomness import seed_of
from epicycle.select.candidates import Candidate, candidates_of
from epicycle.select.fitting_runs import FoldResult, Task, fit_and_score, fitted, raise_if_all_failed, run_all
from epicycle.select.inputs import Rows, Split, classifies, folds_of, held_out_part, rows_of, seeded
from epicycle.select.leaving_one_out import closed_form, one_out_predictions, one_out_splits
from epicycle.select.outcome import Selection
from epicycle.select.scorers import (
    Replay,
    Scorer,
    TestScore,
    on_test_part,
    poolable,
    resampled,
    score_with,
    scorer_of,
)
from epicycle.theory.checks import open_unit

__all__ = ["hold_out", "k_fold", "leave_one_out", "nested"]

OnScore = Callable[[str, int, float], None] | None


@dataclass
class Scored:
    """Scores of all candidates; `spread` has a row each, of folds or of resampled rows."""

    score: np.ndarray
    spread: np.ndarray
    seconds: np.ndarray
    by: str
    test_to_train: float = 0.0
    failures: dict[str, str] = field(default_factory=dict)
    unconverged: dict[str, int] = field(default_factory=dict)

    def std_error(self) -> np.ndarray:
        if self.by == "folds":
            k = self.spread.shape[1]
            return np.std(self.spread, axis=1, ddof=1) / np.sqrt(k) if k > 1 else np.full(len(self.score), np.nan)
        return _nanstd(self.spread)

    def behind(self, best: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Differences from the best, their standard errors, and how many of these are within the noise."""
        difference = self.score[best] - self.score
        apart = self.spread[best] - self.spread
        if self.by == "folds":
            k = self.spread.shape[1]
            if k < 2:
                return difference, np.full(len(difference), np.nan), np.nan
            # Folds share training rows; Nadeau and Bengio's correction keeps the test from being too sure.
            error = np.std(apart, axis=1, ddof=1) * np.sqrt(1 / k + self.test_to_train)
            return difference, error, float(stdtrit(k - 1, 0.975))
        return difference, _nanstd(apart), 1.96


def _nanstd(spread: np.ndarray) -> np.ndarray:
    known = np.isfinite(spread)
    out = np.full(len(spread), np.nan)
    for i in range(len(spread)):
        if known[i].sum() > 1:
            out[i] = np.std(spread[i][known[i]], ddof=1)
    return out


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

    The rows are cut into k parts; every model is fitted k times, each time to all parts but one, and scored on that
    one. The best mean wins,

    .. math:: \hat\imath = \arg\max_i \frac1k \sum_{j=1}^k s_j(h_{ij}) .

    Parameters
    ----------
    models : dict, list, estimator or (estimator, grid)
        Estimators of one kind by name, each alone or as a pair with a grid of parameters
        (:class:`~sklearn.model_selection.ParameterGrid`), of which every point takes part. They stay as they are;
        where their `random_state` is None, `random_state` fixes it.
    X, y : rows and targets, in memory
    cv : int, splitter or splits, default=10
        A number of folds: in random order, with equal shares of classes for classifiers, whole groups together.
    scoring : str or callable, optional
        A scorer of scikit-learn, larger is better; by default accuracy or R2.
    groups : array-like of shape (n,), optional
        Rows of one group are never on both sides of a split.
    ordered : bool, default=False
        Rows are in order of time: every fold is predicted from those before it.
    sample_weight : array-like of shape (n,), optional
        For fits and scores.
    test : tuple of X and y, optional
        Rows that nothing is learnt from; the winner is scored on them once, with a bound.
    one_standard_error : bool, default=False
        Take the first given model whose score is within one standard error of the best, for models in the order of
        their complexity.
    refit : bool, default=True
        Whether the winner is fitted to all rows.
    level : float, default=0.95
        Of the interval of the test score.
    n_jobs : int, optional
        Threads; None uses all there are. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=0
    on_score : callable, optional
        ``on_score(name, fold, score)`` after every fit, in a fixed order.

    Returns
    -------
    Selection

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
    rows, seed, chosen = _inputs(models, X, y, sample_weight, groups, random_state)
    scorer, metric = scorer_of(scoring, chosen[0].estimator)
    splits = folds_of(rows, cv, classifier=classifies(chosen[0].estimator), ordered=ordered, seed=seed)
    scored = _over_folds(chosen, rows, splits, scorer, n_jobs, on_score)
    how = f"{len(splits)}-fold cross-validation"
    return _conclude(
        chosen, scored, rows, scorer, metric, how, refit, test, level, seed, one_standard_error=one_standard_error
    )


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
    """Choose a model on rows that were held out, and fit it to all rows.

    Every model is fitted once, to most rows, and scored on the others. Standard errors come from resampling the held
    out rows.

    Parameters
    ----------
    models : dict, list, estimator or (estimator, grid)
        As for :func:`k_fold`.
    X, y : rows and targets, in memory
    test_size : float, default=0.3
        Share of the rows to hold out.
    scoring : str or callable, optional
    groups : array-like of shape (n,), optional
    ordered : bool, default=False
        Hold the last rows out.
    sample_weight : array-like of shape (n,), optional
    test : tuple of X and y, optional
        Rows of a third part, on which the winner is scored once, with a bound.
    refit : bool, default=True
    level : float, default=0.95
    n_jobs : int, optional
    random_state : int, Generator, RandomState or None, default=0
    on_score : callable, optional
        ``on_score(name, 0, score)`` after every fit.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import LinearRegression, PolynomialRegression, select
    >>> X, y = load_diabetes(return_X_y=True)
    >>> select.hold_out([LinearRegression(), PolynomialRegression(degree=3)], X, y).best
    'LinearRegression'
    """
    rows, seed, chosen = _inputs(models, X, y, sample_weight, groups, random_state)
    scorer, metric = scorer_of(scoring, chosen[0].estimator)
    split = held_out_part(rows, test_size, classifier=classifies(chosen[0].estimator), ordered=ordered, seed=seed)
    classes = np.unique(rows.y) if classifies(chosen[0].estimator) else None
    tasks = [Task(c.name, c.estimator, 0, split) for c in chosen]
    pooled = poolable(scorer)

    def work(task: Task) -> FoldResult:
        return fit_and_score(task, rows, scorer, responses=pooled, classes=classes)

    results = run_all(work, tasks, n_jobs, _teller(on_score))
    raise_if_all_failed(results)
    scored = _collected(chosen, results, 1)
    scored.by = "rows"
    held = rows.part(split[1])
    scored.spread = np.full((len(chosen), 1), np.nan)
    if pooled:
        scored.spread = np.stack(
            [
                np.full(200, np.nan)
                if result.failure
                else resampled(scorer, Replay(c.estimator, result.responses, classes), held.y, held.weight, seed)
                for c, result in zip(chosen, results, strict=True)
            ]
        )
    how = f"{len(split[1])} held out rows of {rows.n}"
    return _conclude(chosen, scored, rows, scorer, metric, how, refit, test, level, seed)


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
    models : dict, list, estimator or (estimator, grid)
        As for :func:`k_fold`.
    X, y : rows and targets, in memory
    scoring : str or callable, optional
        A callable that is no scorer of scikit-learn scores row by row, and the mean counts.
    sample_weight : array-like of shape (n,), optional
    test : tuple of X and y, optional
    refit : bool, default=True
    level : float, default=0.95
    n_jobs : int, optional
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    Selection

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Ridge, select
    >>> X, y = load_diabetes(return_X_y=True)
    >>> select.leave_one_out({"ridge": (Ridge(), {"alpha": [0.01, 0.1, 1]})}, X, y).best_params
    {'alpha': 0.01}
    """
    rows, seed, chosen = _inputs(models, X, y, sample_weight, None, random_state)
    scorer, metric = scorer_of(scoring, chosen[0].estimator)
    if not poolable(scorer):
        scored = _over_folds(chosen, rows, one_out_splits(rows.n), scorer, n_jobs, None)
        return _conclude(chosen, scored, rows, scorer, metric, "leave-one-out", refit, test, level, seed)
    classes = np.unique(rows.y) if classifies(chosen[0].estimator) else None
    score, seconds = np.full(len(chosen), np.nan), np.zeros(len(chosen))
    spread, failures = np.full((len(chosen), 200), np.nan), {}
    closed = 0
    for i, c in enumerate(chosen):
        began = time.perf_counter()
        if closed_form(c.estimator, rows):
            closed += 1
            responses = {"predict": one_out_predictions(c.estimator, rows, n_jobs)}
        else:
            tasks = [Task(c.name, c.estimator, j, split) for j, split in enumerate(one_out_splits(rows.n))]

            def work(task: Task) -> FoldResult:
                return fit_and_score(task, rows, None, responses=True, classes=classes)

            results = run_all(work, tasks, n_jobs)
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
        raise_if_all_failed([FoldResult(name, 0, failure=said) for name, said in failures.items()])
    scored = Scored(score, spread, seconds, "rows", failures=failures)
    how = f"leave-one-out cross-validation of {rows.n} rows"
    notes = (f"leave-one-out predictions of {closed} models are exact, from one fit each",) if closed else ()
    return _conclude(chosen, scored, rows, scorer, metric, how, refit, test, level, seed, notes=notes)


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
    """Choose a model, and score the choosing itself on rows that it has not seen.

    In every outer fold a model is chosen by an inner cross-validation of the other rows, fitted to these, and scored on
    the fold. The mean of these scores is `procedure_score`; unlike the best model's own score it is not the best of
    many. The model to use is then chosen by a cross-validation of all rows.

    Parameters
    ----------
    models : dict, list, estimator or (estimator, grid)
        As for :func:`k_fold`.
    X, y : rows and targets, in memory
    cv : int, splitter or splits, default=5
        Outer folds; also those of the final choice.
    inner_cv : int or splitter, default=5
        Folds inside the training part of each outer fold.
    scoring : str or callable, optional
    groups : array-like of shape (n,), optional
    ordered : bool, default=False
    sample_weight : array-like of shape (n,), optional
    refit : bool, default=True
    n_jobs : int, optional
    random_state : int, Generator, RandomState or None, default=0
    on_score : callable, optional
        ``on_score(name, outer fold, score)`` for the model chosen in each outer fold.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Ridge, select
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = select.nested({"ridge": (Ridge(), {"alpha": [0.01, 0.1, 1, 10]})}, X, y)
    >>> len(found.chosen), round(found.procedure_score, 2)
    (5, 0.48)
    """
    rows, seed, chosen = _inputs(models, X, y, sample_weight, groups, random_state)
    scorer, metric = scorer_of(scoring, chosen[0].estimator)
    classifier = classifies(chosen[0].estimator)
    outer = folds_of(rows, cv, classifier=classifier, ordered=ordered, seed=seed)
    if hasattr(inner_cv, "__iter__") and not hasattr(inner_cv, "split"):
        raise ParameterTypeError("inner_cv: splits of all rows do not fit a part; expected a number or a splitter")
    winners, scores = [], []
    for number, (train, test_rows) in enumerate(outer):
        part = rows.part(train)
        inner = folds_of(part, inner_cv, classifier=classifier, ordered=ordered, seed=seed + 1 + number)
        scored = _over_folds(chosen, part, inner, scorer, n_jobs, None)
        winner = chosen[_argbest(scored.score)]
        result = fit_and_score(Task(winner.name, winner.estimator, number, (train, test_rows)), rows, scorer)
        raise_if_all_failed([result])
        winners.append(winner.name)
        scores.append(result.score)
        if on_score is not None:
            on_score(winner.name, number, result.score)
    scored = _over_folds(chosen, rows, outer, scorer, n_jobs, None)
    error = float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else np.nan
    how = f"{len(outer)}-fold cross-validation"
    return _conclude(
        chosen, scored, rows, scorer, metric, how, refit, None, 0.95, seed,
        procedure=(float(np.mean(scores)), error, tuple(winners)),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ shared parts


def _inputs(
    models: Any, X: Any, y: Any, sample_weight: Any, groups: Any, random_state: Any
) -> tuple[Rows, int, list[Candidate]]:
    rows, seed = rows_of(X, y, sample_weight, groups), seed_of(random_state)
    return rows, seed, candidates_of(models, seed, weighted=rows.weight is not None)


def _teller(on_score: OnScore) -> Callable[[FoldResult], None] | None:
    if on_score is None:
        return None
    if not callable(on_score):
        raise ParameterTypeError(f"on_score={on_score!r:.60}; expected a callable")
    return lambda result: on_score(result.name, result.fold, result.score)


def _over_folds(
    chosen: Sequence[Candidate],
    rows: Rows,
    splits: Sequence[Split],
    scorer: Scorer,
    n_jobs: int | None,
    on_score: OnScore,
) -> Scored:
    tasks = [Task(c.name, c.estimator, j, split) for c in chosen for j, split in enumerate(splits)]
    results = run_all(lambda task: fit_and_score(task, rows, scorer), tasks, n_jobs, _teller(on_score))
    raise_if_all_failed(results)
    scored = _collected(chosen, results, len(splits))
    scored.test_to_train = float(np.mean([len(test) / len(train) for train, test in splits]))
    return scored


def _collected(chosen: Sequence[Candidate], results: Sequence[FoldResult], k: int) -> Scored:
    spread = np.array([r.score for r in results]).reshape(len(chosen), k)
    seconds = np.array([r.seconds for r in results]).reshape(len(chosen), k).sum(axis=1)
    failures: dict[str, str] = {}
    unconverged: dict[str, int] = {}
    for r in results:
        if r.failure:
            failures.setdefault(r.name, r.failure)
        elif not r.converged:
            unconverged[r.name] = unconverged.get(r.name, 0) + 1
    return Scored(spread.mean(axis=1), spread, seconds, "folds", failures=failures, unconverged=unconverged)


def _argbest(score: np.ndarray) -> int:
    if not np.isfinite(score).any():
        raise ParameterError("scoring: no model has a finite score on every fold; choose another metric or splits")
    return int(np.nanargmax(np.where(np.isfinite(score), score, -np.inf)))


def _conclude(
    chosen: Sequence[Candidate],
    scored: Scored,
    rows: Rows,
    scorer: Scorer,
    metric: str,
    how: str,
    refit: bool,
    test: tuple[Any, Any] | None,
    level: float,
    seed: int,
    *,
    one_standard_error: bool = False,
    procedure: tuple[float, float, tuple[str, ...]] | None = None,
    notes: tuple[str, ...] = (),
) -> Selection:
    open_unit("level", level)
    errors = scored.std_error()
    top = best = _argbest(scored.score)
    if one_standard_error and np.isfinite(errors[top]):
        best = int(np.flatnonzero(scored.score >= scored.score[top] - errors[top])[0])
    order = np.argsort(-np.where(np.isfinite(scored.score), scored.score, -np.inf), kind="stable")
    behind, behind_error, reach = scored.behind(best)
    with np.errstate(invalid="ignore"):
        close = np.abs(behind) <= reach * behind_error
    close[best] = True
    winner = chosen[best]
    held = _test_rows(test)
    model, on_test = None, None
    if refit or held is not None:
        model = fitted(seeded(winner.estimator, seed), rows)
        if held is not None:
            on_test = on_test_part(scorer, metric, model, held.X, held.y, None, level=level, seed=seed)
    columns: dict[str, Any] = {
        "model": [chosen[i].name for i in order],
        "score": scored.score[order],
        "std_error": errors[order],
        "behind": behind[order],
        "behind_error": behind_error[order],
        "within_noise": [bool(close[i]) for i in order],
        "seconds": scored.seconds[order],
    }
    for name, count in scored.unconverged.items():
        notes += (f"{count} fits of {name} did not reach their tolerance",)
    for name, said in scored.failures.items():
        notes += (f"{name} could not be fitted: {said[:200]}",)
    names = [c.name for c in chosen]
    return Selection(
        verdict=_verdict(names, scored.score, errors, close, best, top, metric, how, on_test, procedure),
        columns=columns,
        notes=notes,
        best=winner.name,
        model_=model if refit else None,
        score=float(scored.score[best]),
        std_error=float(errors[best]),
        metric=metric,
        best_params=dict(winner.parameters),
        scores=dict(zip(names, scored.spread if scored.by == "folds" else scored.score[:, None], strict=True)),
        test=on_test,
        procedure_score=np.nan if procedure is None else procedure[0],
        procedure_std_error=np.nan if procedure is None else procedure[1],
        chosen=() if procedure is None else procedure[2],
        failures=scored.failures,
    )


def _test_rows(test: tuple[Any, Any] | None) -> Rows | None:
    if test is None:
        return None
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise ParameterTypeError("test: expected a pair, the rows and the targets of the test part")
    try:
        return rows_of(test[0], test[1])
    except ValueError as error:
        raise type(error)(f"test: {error}") from None


def _verdict(
    names: Sequence[str],
    score: np.ndarray,
    errors: np.ndarray,
    close: np.ndarray,
    best: int,
    top: int,
    metric: str,
    how: str,
    on_test: TestScore | None,
    procedure: tuple[float, float, tuple[str, ...]] | None,
) -> str:
    error = f" (standard error {errors[best]:.2g})" if np.isfinite(errors[best]) else ""
    text = f"{names[best]} is best, with {metric} {score[best]:.4g}{error} by {how}."
    if best != top:
        text = (
            f"{names[best]} is taken, with {metric} {score[best]:.4g}{error} by {how}: the first within one standard "
            f"error of the best, {names[top]} with {score[top]:.4g}."
        )
    rivals = [names[i] for i in np.flatnonzero(close).tolist() if i != best]
    if len(rivals) > 4:
        text += f" {len(rivals)} others cannot be told apart from it."
    elif rivals:
        text += f" {' and '.join(rivals)} cannot be told apart from it."
    elif len(names) > 1:
        text += " No other comes near it."
    if procedure is not None:
        text += (
            f" Choosing and fitting together score {procedure[0]:.4g} (standard error {procedure[1]:.2g}) on rows that "
            "neither saw."
        )
    if on_test is not None:
        text += f" Once on the test part: {on_test}."
    return text
