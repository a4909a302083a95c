"""Error analysis of a pipeline: outputs of its stages are replaced by the true values, one stage after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._plot_style import Axes, styled
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.report._finding import Finding, draw_changes
from epicycle.select._scorers import DRAWS, Replay, poolable, resampled, score_with, scorer_of


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ErrorAnalysis(Finding):
    """Loss of score by each stage of a pipeline.

    Attributes
    ----------
    score : float
        Of the whole pipeline as it is.
    worst : str
        The stage whose true output gains most.
    gains, gain_errors : dict
        Gain of score by the true output of each stage, given the true outputs of those before it, and its standard
        error.
    metric : str
    """

    score: float
    worst: str
    gains: Mapping[str, float]
    gain_errors: Mapping[str, float]
    metric: str

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the gain by the true output of each stage, with two standard errors."""
        words = f"{self.metric.replace('_', ' ')} gained by the true output"
        return draw_changes(ax, 0.34, self.gains, self.gain_errors, self.worst, words)


class _Regressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Stands for a pipeline that gives numbers."""


class _Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Stands for a pipeline that gives labels."""


@dataclass(frozen=True)
class _Stage:
    name: str
    work: Any
    inputs: tuple[str, ...]


@in_catalogue("diagnose", "J6", certificate="standard errors")
def error_analysis(
    stages: Any,
    X: Any,
    y: Any,
    *,
    truth: Mapping[str, Any],
    scoring: Any = None,
    random_state: Any = 0,
) -> ErrorAnalysis:
    """Find the stage of a pipeline that loses most of the score, by replacing outputs with their true values.

    The outputs of the stages are replaced by their true values one after the other, from the first on, and the rest of
    the pipeline runs unchanged. The largest gap between two rows of the table shows the stage to improve. The true
    output of the last stage is y itself, with which the score is perfect.

    Parameters
    ----------
    stages : fitted Pipeline, or list of (name, stage) or (name, stage, inputs)
        In order. A stage is a fitted transformer or predictor, or a function. It gets the output of the stage before
        it; with `inputs`, a tuple of names of earlier stages or "X", the outputs of these as its arguments.
    X, y : rows and targets
    truth : dict
        The true output of each stage for the rows of X, by name. Stages without an entry are not replaced; for the last
        stage it is y.
    scoring : str or callable, optional
        A scorer of predictions; by default accuracy for labels, R2 for numbers.
    random_state : int, Generator, RandomState or None, default=0
        For standard errors, by resampling rows.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import diagnose
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.normal(size=500)
    >>> X = clean + rng.normal(size=500)          # what a poor sensor saw
    >>> y = clean > 0
    >>> stages = [("sensor", lambda x: x), ("scale", lambda x: 2 * x), ("sign", lambda x: x > 0)]
    >>> found = diagnose.error_analysis(stages, X, y, truth={"sensor": clean, "scale": 2 * clean})
    >>> found.worst
    'sensor'
    >>> found.table["score"].round(2).tolist()
    [0.77, 1.0, 1.0, 1.0]
    """
    steps = _stages(stages)
    names = [s.name for s in steps]
    y = np.asarray(y)
    n = _num_samples(X)
    if len(y) != n:
        raise DataError(f"y: {len(y)} values; X has {n} rows")
    known = _true_outputs(truth, names, y)
    labels = type_of_target(y) in ("binary", "multiclass") and y.dtype.kind != "f"
    stand_in = _Classifier() if labels else _Regressor()
    scorer, metric = scorer_of(scoring, stand_in)
    seed = seed_of(random_state)

    def evaluate(replaced: Sequence[str], *, draw: bool = True) -> tuple[float, np.ndarray]:
        output = np.asarray(_run(steps, X, {name: known[name] for name in replaced}))
        if output.shape[:1] != (n,):
            raise DataError(
                f"stages: the last one gave shape {output.shape}; expected a prediction for each of {n} rows"
            )
        replay = Replay(stand_in, {"predict": output}, np.unique(y) if labels else None)
        wanted = draw and poolable(scorer)
        draws = resampled(scorer, replay, y, None, seed) if wanted else np.full(DRAWS, np.nan)
        return score_with(scorer, replay, np.arange(n)[:, None], y, None), draws

    overall, before_draws = evaluate(())
    before = overall
    table: dict[str, list[Any]] = {
        "component": ["overall system"],
        "score": [overall],
        "gain": [np.nan],
        "gain_error": [np.nan],
        "alone": [np.nan],
        "alone_gain": [np.nan],
    }
    gains, errors, by_draw = {}, {}, {}
    replaced: list[str] = []
    for name in names:
        if name not in known:
            continue
        replaced.append(name)
        score, draws = evaluate(replaced)
        alone, _ = evaluate([name], draw=False)
        # The same draws for both: the difference is paired, and its standard error small.
        by_draw[name] = draws - before_draws
        gains[name], errors[name] = score - before, _spread(by_draw[name])
        for column, value in zip(table, (name, score, gains[name], errors[name], alone, alone - overall), strict=True):
            table[column].append(value)
        before, before_draws = score, draws
    worst = max(gains, key=lambda name: gains[name])
    rivals = [
        name
        for name in gains
        if name != worst and gains[worst] - gains[name] <= 1.96 * _spread(by_draw[worst] - by_draw[name])
    ]
    verdict, advice = _verdict(gains, errors, overall, before - overall, metric, rivals)
    notes = []
    if unknown := [name for name in names if name not in known]:
        notes.append(f"without true outputs, and so part of the next stage: {', '.join(unknown)}")
    if not np.isfinite(errors[worst]):
        notes.append("this score cannot be resampled, so that no standard error is known")
    return ErrorAnalysis(
        verdict=verdict,
        columns=table,
        next_steps=advice,
        notes=tuple(notes),
        score=overall,
        worst=worst,
        gains=gains,
        gain_errors=errors,
        metric=metric,
    )


def _true_outputs(truth: Any, names: list[str], y: np.ndarray) -> dict[str, Any]:
    """The true outputs by stage, with y for the last one."""
    if not isinstance(truth, Mapping):
        raise ParameterTypeError(f"truth={truth!r:.40}; expected a dictionary of the true outputs by stage")
    if unknown := sorted(set(truth) - set(names)):
        raise ParameterError(f"truth: {unknown[0]!r} is no stage; the stages are {names}")
    known = {**truth}
    known.setdefault(names[-1], y)
    for name, value in known.items():
        if _num_samples(value) != len(y):
            raise DataError(f"truth[{name!r}]: {_num_samples(value)} rows; X has {len(y)}")
    return known


def _spread(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(values.std(ddof=1)) if len(values) > 1 else np.nan


def _verdict(
    gains: dict[str, float], errors: dict[str, float], overall: float, total: float, metric: str, rivals: list[str]
) -> tuple[str, tuple[str, ...]]:
    """The verdict and the next steps; `total` is the gain by all true outputs."""
    order = sorted(gains, key=lambda name: -gains[name])
    worst = order[0]
    if total <= 0 or gains[worst] <= 0:
        return (
            f"No stage loses anything: the pipeline scores {overall:.4g} ({metric}), and true outputs gain nothing."
        ), ()
    significant = not np.isfinite(errors[worst]) or gains[worst] > 1.96 * errors[worst]
    verdict = (
        f"{worst} loses most: with its true output the score rises by {gains[worst]:.3g} "
        f"({gains[worst] / total:.0%} of the total loss) from {overall:.4g} for the whole system ({metric})."
    )
    if not significant:
        verdict += " That is within the noise of these rows."
    elif close := [name for name in rivals if gains[name] > 1.96 * errors[name]]:
        verdict += f" That {' or '.join(close[:3])} loses as much cannot be ruled out."
    steps = tuple(f"work on {name}: at most {gains[name]:.3g} to gain" for name in order[:2] if gains[name] > 0)
    if negligible := [name for name in gains if abs(gains[name]) <= 0.02 * total]:
        steps += (f"leave {' and '.join(negligible)} as {'it is' if len(negligible) == 1 else 'they are'}",)
    return verdict, steps


def _stages(stages: Any) -> list[_Stage]:
    given = stages.steps if hasattr(stages, "steps") else stages
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) == 0:
        raise ParameterTypeError(f"stages={stages!r:.60}; expected a pipeline or a list of (name, stage)")
    found: list[_Stage] = []
    for entry in given:
        if not isinstance(entry, tuple | list) or len(entry) not in (2, 3) or not isinstance(entry[0], str):
            raise ParameterTypeError(f"stages: {entry!r:.60}; expected (name, stage) or (name, stage, inputs)")
        name, work = entry[0], entry[1]
        if name == "X" or name in [s.name for s in found]:
            raise ParameterError(f"stages: the name {name!r} is taken; expected names of their own, not 'X'")
        inputs = tuple([entry[2]] if isinstance(entry[2], str) else entry[2]) if len(entry) == 3 else ()
        inputs = inputs or ((found[-1].name if found else "X"),)
        if unknown := [i for i in inputs if i != "X" and i not in [s.name for s in found]]:
            raise ParameterError(f"stages: {name!r} takes {unknown[0]!r}, which is no earlier stage")
        if not (
            work is None
            or work == "passthrough"
            or callable(work)
            or hasattr(work, "transform")
            or hasattr(work, "predict")
        ):
            raise ParameterTypeError(f"stages: {name!r} is {work!r:.40}; expected a fitted estimator or a function")
        found.append(_Stage(name, work, inputs))
    return found


def _run(stages: list[_Stage], X: Any, replaced: Mapping[str, Any]) -> Any:
    outputs: dict[str, Any] = {"X": X}
    for number, stage in enumerate(stages):
        if stage.name in replaced:
            outputs[stage.name] = replaced[stage.name]
            continue
        arguments = [outputs[name] for name in stage.inputs]
        outputs[stage.name] = _apply(stage.work, arguments, last=number == len(stages) - 1)
    return outputs[stages[-1].name]


def _apply(work: Any, arguments: list[Any], *, last: bool) -> Any:
    if work is None or isinstance(work, str):
        return arguments[0]
    methods = ("predict", "transform") if last else ("transform", "predict")
    for method in methods:
        if hasattr(work, method):
            joined = arguments[0] if len(arguments) == 1 else np.column_stack([np.asarray(a) for a in arguments])
            return getattr(work, method)(joined)
    return work(*arguments)
