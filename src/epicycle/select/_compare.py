"""Comparison of candidates: their scores, standard errors and differences, and the refit of the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid

from epicycle.core._checks import open_unit
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._random import seed_of
from epicycle.select._fit_and_score import FoldResult, Task, fitted, raise_if_all_failed, run_tasks
from epicycle.select._inputs import Rows, Split, check_weights_taken, checked_rows, folds_of, rows_ratio, seeded
from epicycle.select._scorers import Scorer, TestScore, on_test_part, scorer_of
from epicycle.select._selection import Selection
from epicycle.stats._intervals import corrected_error, standard_error, t_quantile


@dataclass(frozen=True)
class Candidate:
    """A candidate: its name, the name of the given model, the estimator and the point of the grid."""

    name: str
    model: str
    estimator: Any
    parameters: Mapping[str, Any]


def candidates_of(models: Any, seed: int, *, weighted: bool = False) -> list[Candidate]:
    """All models, and all points of the grids of those that have one."""
    named = _named(models)
    found: list[Candidate] = []
    for name, given in named.items():
        estimator, grid = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params") or isinstance(estimator, type):
            raise ParameterTypeError(
                f"models: {name!r} is {estimator!r:.60}; expected an estimator, or an estimator and its grid"
            )
        if weighted:
            check_weights_taken(name, estimator)
        try:
            points = [{}] if grid is None else list(ParameterGrid(grid))
            for point in points:
                changed = seeded(estimator, seed).set_params(**point)
                found.append(Candidate(_called(name, point), name, changed, point))
        except (TypeError, ValueError) as error:
            raise ParameterError(f"models: the grid of {name!r}: {error}") from None
    if not found:
        raise ParameterError("models: none given; expected at least one estimator")
    kinds = {bool(is_classifier(c.estimator)) for c in found}
    if len(kinds) > 1:
        raise ParameterError("models: classifiers and regressors; expected models of one kind, with one score")
    return found


def _named(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        if not all(isinstance(name, str) for name in models):
            raise ParameterTypeError("models: names of models have to be strings")
        return dict(models)
    if hasattr(models, "fit") or isinstance(models, tuple):
        models = [models]
    if not isinstance(models, Sequence) or isinstance(models, str | bytes):
        raise ParameterTypeError(
            f"models={models!r:.60}; expected a dictionary or a list of estimators, each alone or with a grid"
        )
    named: dict[str, Any] = {}
    for given in models:
        estimator = given[0] if isinstance(given, tuple) else given
        base = type(estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator).__name__
        name, number = base, 2
        while name in named:
            name, number = f"{base} {number}", number + 1
        named[name] = given
    return named


def _called(name: str, point: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{key.rpartition('__')[2]}={_value(value)}" for key, value in point.items())
    return f"{name} ({shown})" if shown else name


def _value(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return type(value).__name__ if hasattr(value, "get_params") else f"{value}"[:40]


OnScore = Callable[[str, int, float], None] | None


@dataclass
class Scored:
    """Scores of all candidates; `spread` has their scores on folds, or on resampled rows."""

    score: np.ndarray
    spread: np.ndarray
    seconds: np.ndarray
    by: str
    test_to_train: float = 0.0
    failures: dict[str, str] = field(default_factory=dict)
    unconverged: dict[str, int] = field(default_factory=dict)

    def std_error(self) -> np.ndarray:
        return np.asarray(standard_error(self.spread)) if self.by == "folds" else _nanstd(self.spread)

    def behind(self, best: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Differences from the best, their standard errors, and the multiple of these that is significant."""
        difference = self.score[best] - self.score
        differences = self.spread[best] - self.spread
        if self.by == "folds":
            error = np.asarray(corrected_error(differences, self.test_to_train))
            return difference, error, t_quantile(self.spread.shape[1])
        # Resampled rows are many: the normal quantile is enough.
        return difference, _nanstd(differences), 1.96


def _nanstd(spread: np.ndarray) -> np.ndarray:
    known = np.isfinite(spread)
    out = np.full(len(spread), np.nan)
    for i in range(len(spread)):
        if known[i].sum() > 1:
            out[i] = np.std(spread[i][known[i]], ddof=1)
    return out


@dataclass(frozen=True)
class Comparison:
    """The inputs of a comparison, checked before any fit."""

    rows: Rows
    candidates: list[Candidate]
    scorer: Scorer
    metric: str
    seed: int
    refit: bool
    n_jobs: int | None
    test: Rows | None
    level: float
    on_score: OnScore

    @property
    def classifier(self) -> bool:
        return bool(is_classifier(self.candidates[0].estimator))

    @property
    def classes(self) -> np.ndarray | None:
        return np.unique(self.rows.y) if self.classifier else None

    def folds(self, cv: Any, ordered: bool) -> list[Split]:
        return folds_of(self.rows, cv, classifier=self.classifier, ordered=ordered, seed=self.seed)

    def run(self, tasks: Sequence[Task], **options: Any) -> list[FoldResult]:
        """Fit and score, and show each score to the caller."""
        show = self.on_score
        tell = None if show is None else lambda result: show(result.name, result.fold, result.score)
        results = run_tasks(tasks, self.rows, self.scorer, self.n_jobs, tell, **options)
        raise_if_all_failed(results)
        return results

    def over_folds(self, splits: Sequence[Split]) -> Scored:
        """Scores of all candidates on every fold."""
        tasks = [Task(c.name, c.estimator, j, split) for c in self.candidates for j, split in enumerate(splits)]
        scored = collected(self.candidates, self.run(tasks), len(splits))
        scored.test_to_train = rows_ratio(splits)
        return scored


def prepared(
    models: Any,
    X: Any,
    y: Any,
    scoring: Any,
    sample_weight: Any,
    random_state: Any,
    *,
    groups: Any = None,
    test: Any = None,
    level: float = 0.95,
    on_score: Any = None,
    **options: Any,
) -> Comparison:
    """The comparison of models on rows; `options` are its further fields."""
    rows, seed = checked_rows(X, y, sample_weight, groups), seed_of(random_state)
    open_unit("level", level)
    held = _test_rows(test)
    if held is not None and held.X.shape[1:] != rows.X.shape[1:]:
        raise DataError(f"test: rows of {held.X.shape[1:]} features; X has {rows.X.shape[1:]}")
    if on_score is not None and not callable(on_score):
        raise ParameterTypeError(f"on_score={on_score!r:.60}; expected a callable")
    candidates = candidates_of(models, seed, weighted=rows.weight is not None)
    scorer, metric = scorer_of(scoring, candidates[0].estimator)
    return Comparison(rows, candidates, scorer, metric, seed, test=held, level=level, on_score=on_score, **options)


def collected(chosen: Sequence[Candidate], results: Sequence[FoldResult], k: int) -> Scored:
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


def argbest(score: np.ndarray) -> int:
    if not np.isfinite(score).any():
        raise ParameterError("scoring: no model has a finite score on every fold; choose another metric or splits")
    return int(np.nanargmax(np.where(np.isfinite(score), score, -np.inf)))


def conclude(
    comparison: Comparison,
    scored: Scored,
    how: str,
    *,
    one_standard_error: bool = False,
    procedure: tuple[float, float, tuple[str, ...]] | None = None,
    notes: tuple[str, ...] = (),
) -> Selection:
    chosen, metric, held, seed = comparison.candidates, comparison.metric, comparison.test, comparison.seed
    errors = scored.std_error()
    top = best = argbest(scored.score)
    if one_standard_error and np.isfinite(errors[top]):
        # Candidates come in the order of their complexity: the first within one standard error is the simplest.
        best = int(np.flatnonzero(scored.score >= scored.score[top] - errors[top])[0])
    order = np.argsort(-np.where(np.isfinite(scored.score), scored.score, -np.inf), kind="stable")
    behind, behind_error, factor = scored.behind(best)
    known = np.isfinite(behind_error) & np.isfinite(behind)
    close = np.zeros(len(behind), dtype=bool)
    # Not significantly different from the best.
    close[known] = np.abs(behind[known]) <= factor * behind_error[known]
    close[best] = known[best] = True
    winner = chosen[best]
    model, on_test = None, None
    if comparison.refit or held is not None:
        model = fitted(seeded(winner.estimator, seed), comparison.rows)
    if held is not None:
        on_test = on_test_part(comparison.scorer, metric, model, held.X, held.y, level=comparison.level, seed=seed)
    columns: dict[str, Any] = {
        "model": [chosen[i].name for i in order],
        "score": scored.score[order],
        "std_error": errors[order],
        "behind": behind[order],
        "behind_error": behind_error[order],
        "within_noise": [bool(close[i]) if known[i] else None for i in order],
        "seconds": scored.seconds[order],
    }
    for name, count in scored.unconverged.items():
        notes += (f"{count} fits of {name} did not reach their tolerance",)
    for name, failure in scored.failures.items():
        notes += (f"{name} could not be fitted: {failure[:200]}",)
    names = [c.name for c in chosen]
    return Selection(
        verdict=_verdict(names, scored.score, errors, close, known, best, top, metric, how, on_test, procedure),
        columns=columns,
        notes=notes,
        best=winner.name,
        model_=model if comparison.refit else None,
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
        raise ParameterTypeError("test: expected a pair, the rows and the targets of the test set")
    try:
        return checked_rows(test[0], test[1])
    except ValueError as error:
        raise type(error)(f"test: {error}") from None


def _verdict(
    names: Sequence[str],
    score: np.ndarray,
    errors: np.ndarray,
    close: np.ndarray,
    known: np.ndarray,
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
        text += f" {len(rivals)} others cannot be distinguished from it."
    elif rivals:
        text += f" {' and '.join(rivals)} cannot be distinguished from it."
    elif (np.isfinite(score) & ~known).any():
        text += " Whether the difference is significant is not known: there is one score only."
    elif known.sum() > 1:
        text += " All others are significantly worse."
    if procedure is not None:
        text += (
            f" The procedure of choosing and fitting scores {procedure[0]:.4g} (standard error {procedure[1]:.2g}) on "
            "rows that it has not seen."
        )
    if on_test is not None:
        text += f" On the test set: {on_test}."
    return text
