"""Ablation: components are removed one at a time and one after the other, to measure the contribution of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor

from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core._plot_style import Axes, ink, styled
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.data._frames import frame_columns, is_frame
from epicycle.report._finding import Finding, draw_changes
from epicycle.select._fit_and_score import Task, run_tasks
from epicycle.select._inputs import CROSS_VALIDATION_DOCS, check_model, checked_rows, folds_of, rows_ratio, seeded
from epicycle.select._scorers import scorer_of
from epicycle.stats._intervals import corrected_error, standard_error, t_quantile

_NOTES = ("components that replace each other cost nothing alone; the cumulative column shows them together",)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Ablation(Finding):
    """Contribution of each component to a score.

    Attributes
    ----------
    score, std_error : float
        Of the whole, over the folds.
    best : str
        The component whose removal alone costs most.
    drops, drop_errors : dict
        Loss of score without each component alone, and its standard error.
    cumulative : dict
        The score without each component and those before it.
    metric : str
    """

    score: float
    std_error: float
    best: str
    drops: Mapping[str, float]
    drop_errors: Mapping[str, float]
    cumulative: Mapping[str, float]
    metric: str

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the loss without each component, with two standard errors."""
        shown = dict(sorted(self.drops.items(), key=lambda item: -item[1])[:30])
        words = f"{self.metric.replace('_', ' ')} lost without it"
        ax = draw_changes(ax, 0.3, shown, self.drop_errors, self.best, words)
        ax.axvline(0, color=ink(ax), lw=0.8)
        return ax


@in_catalogue("diagnose", "J6", certificate="standard errors", docs=CROSS_VALIDATION_DOCS)
def ablation(
    model: Any,
    X: Any,
    y: Any,
    components: Mapping[str, Any] | None = None,
    *,
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    ordered: bool = False,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Ablation:
    """Measure how much each component of a system helps, by removing it.

    Every component is removed alone, with all others in place, and again one after the other in the order given, until
    only the baseline is left. All models are fitted again and scored on the same folds, and differences are paired.

    Parameters
    ----------
    model : estimator
    components : dict, optional
        By name: columns of X (a name, a number or a list of these), which are left out; or a dictionary of parameters
        of the model that switch a part off, such as ``{"scaler": "passthrough"}``. By default every column is one.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import Ridge, diagnose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = 3 * X[:, 0] + X[:, 1] + rng.normal(size=300)
    >>> found = diagnose.ablation(Ridge(), X, y, {"first": 0, "second": 1, "noise": [2, 3]})
    >>> found.best
    'first'
    >>> found.table["component"].tolist()
    ['overall system', 'first', 'second', 'noise']
    """
    rows, seed = checked_rows(X, y, sample_weight, groups), seed_of(random_state)
    check_model(model, rows)
    if len(rows.X.shape) != 2:
        raise ParameterError("X: expected a table with columns")
    p = int(rows.X.shape[1])
    columns_of_frame = frame_columns(rows.X) if is_frame(rows.X) else None
    names = [f"x{j}" for j in range(p)] if columns_of_frame is None else list(columns_of_frame)
    parts = _components(components, names, model)
    classifier = bool(is_classifier(model))
    scorer, metric = scorer_of(scoring, model)
    splits = folds_of(rows, cv, classifier=classifier, ordered=ordered, seed=seed)
    base = seeded(model, seed)
    # Everything, without each alone, without the first i; the first alone is also the first cumulative step.
    variants = [()] + [(name,) for name in parts] + [tuple(list(parts)[: i + 1]) for i in range(1, len(parts))]
    tasks = []
    for number, gone in enumerate(variants):
        estimator, columns = _without(base, [parts[name] for name in gone], p, classifier)
        tasks += [Task(str(number), estimator, j, split, columns) for j, split in enumerate(splits)]
    results = run_tasks(tasks, rows, scorer, n_jobs, forgive=False)
    scores = np.array([r.score for r in results]).reshape(len(variants), len(splits))
    ratio = rows_ratio(splits)
    whole = scores[0]
    alone = {name: scores[1 + i] for i, name in enumerate(parts)}
    first = next(iter(parts))
    cumulative = {first: alone[first]}
    for i, name in enumerate(list(parts)[1:]):
        cumulative[name] = scores[1 + len(parts) + i]
    drops = {name: float((whole - s).mean()) for name, s in alone.items()}
    drop_errors = {name: float(corrected_error(whole - s, ratio)) for name, s in alone.items()}
    steps_down = np.diff(np.stack([whole, *cumulative.values()]), axis=0)
    table: dict[str, Any] = {
        "component": ["overall system", *parts],
        "score_without": [float(whole.mean()), *(float(s.mean()) for s in alone.values())],
        "drop": [np.nan, *drops.values()],
        "drop_error": [np.nan, *drop_errors.values()],
        "cumulative": [float(whole.mean()), *(float(s.mean()) for s in cumulative.values())],
        "cumulative_drop": [np.nan, *(-steps_down.mean(axis=1))],
        "cumulative_drop_error": [np.nan, *corrected_error(steps_down, ratio)],
    }
    t = t_quantile(len(splits))
    top = max(drops, key=lambda name: drops[name])
    rivals = [
        name
        for name, s in alone.items()
        if name != top and drops[top] - drops[name] <= t * float(corrected_error(s - alone[top], ratio))
    ]
    score, std_error = float(whole.mean()), float(standard_error(whole))
    means = {name: float(s.mean()) for name, s in cumulative.items()}
    verdict = _verdict(f"{score:.4g} ({metric})", drops, drop_errors, list(means.values())[-1], t, rivals)
    return Ablation(
        verdict=verdict,
        columns=table,
        next_steps=_next_steps(drops, drop_errors, t),
        notes=_NOTES if np.isfinite(std_error) else (*_NOTES, "there is one split, so that no standard error is known"),
        score=score,
        std_error=std_error,
        best=top,
        drops=drops,
        drop_errors=drop_errors,
        metric=metric,
        cumulative=means,
    )


def _counts(drop: float, error: float, t: float) -> bool:
    """Whether a loss is significant; with one split its sign decides."""
    return drop > t * error if np.isfinite(error) else drop > 0


def _verdict(
    score: str, drops: dict[str, float], errors: dict[str, float], without_all: float, t: float, rivals: list[str]
) -> str:
    best = max(drops, key=lambda name: drops[name])
    if not _counts(drops[best], errors[best], t):
        return (
            f"No component is needed alone: the score of {score} falls by {drops[best]:.3g} at most, "
            f"which is within the noise; without all of them it is {without_all:.4g}."
        )
    verdict = (
        f"The score falls most without {best}: by {drops[best]:.3g} (standard error {errors[best]:.2g}) from {score}; "
        f"without all components it is {without_all:.4g}."
    )
    if close := [name for name in rivals if _counts(drops[name], errors[name], t)]:
        verdict += f" That {' or '.join(close[:3])} contributes as much cannot be ruled out."
    return verdict


def _next_steps(drops: dict[str, float], errors: dict[str, float], t: float) -> tuple[str, ...]:
    order = sorted(drops, key=lambda name: -drops[name])
    useless = [name for name in order if not _counts(drops[name], errors[name], t)]
    steps: tuple[str, ...] = ()
    if len(useless) == len(order):
        steps = (
            "remove components one after the other: they replace each other, and the cumulative column "
            "shows how many can go",
        )
    elif useless:
        shown = ", ".join(useless[:6]) + (f" and {len(useless) - 6} more" if len(useless) > 6 else "")
        steps = (f"try without {shown}: removed alone, the loss is not significant",)
    if harmful := [name for name in order if np.isfinite(errors[name]) and drops[name] < -t * errors[name]]:
        steps = (f"remove {', '.join(harmful[:6])}: the score is better without", *steps)
    return steps


def _components(components: Any, names: list[str], model: Any) -> dict[str, Any]:
    """Indices of the columns to leave out, or parameters to set, by name of the component."""
    if components is None:
        return {name: np.array([j]) for j, name in enumerate(names)}
    if not isinstance(components, Mapping) or not components:
        raise ParameterTypeError(f"components={components!r:.60}; expected columns or parameters by name")
    found: dict[str, Any] = {}
    for name, given in components.items():
        if isinstance(given, Mapping):
            try:
                clone(model).set_params(**given)
            except ValueError as error:
                raise ParameterError(f"components[{name!r}]: {error}") from None
            found[str(name)] = dict(given)
            continue
        columns = [given] if isinstance(given, str | int | np.integer) else list(given)
        found[str(name)] = np.array([_column(name, c, names) for c in columns], dtype=np.int64)
        if len(columns) == 0:
            raise ParameterError(f"components[{name!r}]: no columns given")
    return found


def _column(name: str, given: Any, names: list[str]) -> int:
    if isinstance(given, str):
        if given not in names:
            raise ParameterError(f"components[{name!r}]: {given!r} is no column of X; it has {names[:12]}")
        return names.index(given)
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or not 0 <= given < len(names):
        raise ParameterError(f"components[{name!r}]: {given!r}; expected a name or a number below {len(names)}")
    return int(given)


def _without(model: Any, gone: list[Any], p: int, classifier: bool) -> tuple[Any, np.ndarray | None]:
    """The model with components switched off and the columns that are left; a constant where none are."""
    changed = {name: value for part in gone if isinstance(part, dict) for name, value in part.items()}
    out = np.concatenate([part for part in gone if not isinstance(part, dict)] or [np.zeros(0, np.int64)])
    left = np.setdiff1d(np.arange(p), out)
    if len(left) == 0:
        return (DummyClassifier(strategy="prior") if classifier else DummyRegressor()), np.arange(1)
    estimator = clone(model).set_params(**changed) if changed else model
    return estimator, left if len(left) < p else None
