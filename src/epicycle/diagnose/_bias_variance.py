"""Diagnosis of bias and variance by learning curves, with a verdict by stated rules and advice.

With the scores T on training rows and V on validation rows of the model fitted to all rows of a fold, and a desired
level D, the shortfall is D - V = (D - T) + (T - V): D - T is bias, which remains even on the rows of the fit, and T - V
is variance, the difference between these rows and others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor

from epicycle.core._checks import number
from epicycle.core._exceptions import ParameterTypeError
from epicycle.core._plot_style import Axes, styled
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.diagnose._advice import finish_fit, reduce_bias, reduce_variance
from epicycle.diagnose._learning_curves import Curve, complexity_curve, rows_curve
from epicycle.plot import learning_curve
from epicycle.report._finding import Finding
from epicycle.select._fit_and_score import Task, fitted, run_tasks
from epicycle.select._inputs import (
    CROSS_VALIDATION_DOCS,
    Rows,
    Split,
    check_model,
    checked_rows,
    folds_of,
    rows_ratio,
    seeded,
)
from epicycle.select._scorers import Scorer, scorer_of
from epicycle.stats._intervals import corrected_error, t_quantile
from epicycle.tree import RandomForestClassifier, RandomForestRegressor

_MORE_ROWS = "get more rows, or use more folds, before anything else is decided"
_MORE_FOLDS = "use more folds, which take more time, before anything else is decided"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class BiasVariance(Finding):
    """Diagnosis of a model: high bias, high variance, too few rows or a good fit; or too few folds to tell.

    Attributes
    ----------
    kind : {"high bias", "high variance", "needs more data", "good fit", "undecided"}
    train_score, validation_score : float
        Of the model on all rows of a fold, averaged over the folds.
    validation_error : float
        Standard error of the latter.
    gap, gap_error : float
        Training score less validation score, and its standard error.
    desired, baseline : float
        The desired level, and the score of a constant.
    bias, variance : float
        The parts of the shortfall: `desired` less the training score, and the gap; not below zero.
    slope, slope_error : float
        Gain of the validation score by the last rows added, up to half of all, and its standard error.
    metric : str
    curve, complexity : Curve
        Scores by number of rows, and by the parameter where one was given (otherwise None).
    best_value : object
        The value of the parameter with the best validation score.
    """

    kind: str
    train_score: float
    validation_score: float
    validation_error: float
    gap: float
    gap_error: float
    desired: float
    baseline: float
    bias: float
    variance: float
    slope: float
    slope_error: float
    metric: str
    curve: Curve
    complexity: Curve | None = None
    parameter: str | None = None
    best_value: Any = None
    desired_from: str = ""

    @styled
    def plot(self, ax: Axes | None = None, *, against: str = "rows") -> Axes:
        """Draw training and validation scores with bands of one standard error.

        Parameters
        ----------
        against : {"rows", "parameter"}, default="rows"
        """
        if against not in ("rows", "parameter") or (against == "parameter" and self.complexity is None):
            raise ParameterTypeError(f"against={against!r}; expected 'rows', or 'parameter' where one was given")
        curve = self.curve if against == "rows" or self.complexity is None else self.complexity
        ax = learning_curve(
            curve.x,
            curve.train,
            curve.validation,
            ax,
            desired=self.desired if against == "rows" else None,
            desired_label=f"can be reached\n({self.desired_from})",
            xlabel="training rows" if against == "rows" else str(self.parameter),
            ylabel=self.metric.replace("_", " "),
        ).ax_
        low = min(curve.mean("validation").min(), self.desired, self.baseline)
        span = max(curve.mean("train").max(), self.desired) - self.baseline
        if span > 0 and low < self.baseline - span:  # very low scores at the start would flatten the rest
            ax.set_ylim(bottom=self.baseline - span)
        ax.set(title=self.kind)
        return ax


@in_catalogue("diagnose", "J4", certificate="standard errors", docs=CROSS_VALIDATION_DOCS)
def bias_variance(
    model: Any,
    X: Any,
    y: Any,
    *,
    desired: float | Any = None,
    sizes: Any = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0),
    parameter: str | None = None,
    values: Sequence[Any] | None = None,
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    ordered: bool = False,
    sample_weight: Any = None,
    tolerance: float = 0.05,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> BiasVariance:
    """Diagnose bias and variance of a model by its learning curves.

    The rules, with the scores T on training rows and V on validation rows, the desired level D and the score B of a
    constant, all at the full size; s is the standard error of a difference over the folds, with the correction for
    folds that share rows, t the 97.5% quantile of Student's t, and a difference counts where it exceeds both t s and
    the share `tolerance` of D - B. Scores below that of a constant are raised to it.

    1. V falls short of D, and at least half of D - V is D - T: **high bias**. The model is too simple even for the rows
       that it was fitted to.
    2. V falls short of D otherwise, or T - V counts and exceeds a quarter of D - B: **high variance**. The model fits
       its own rows far better than others.
    3. T - V counts, and the last rows added raised V by a difference that counts: **needs more data**. Nothing better
       is known for this number of rows, and more of them would help. The same where the errors are so large that a
       fifth of D - B could not be seen; with two or three folds, whose errors are hardly known themselves, it is
       **undecided** where as large errors of many folds would have been small enough.
    4. Otherwise a **good fit**.

    Parameters
    ----------
    model : estimator
    desired : float or estimator, optional
        The desired level: a number (of people, of an earlier system, of the noise), or a flexible model whose
        cross-validated score on the same folds is taken. By default that of a random forest, or of the
        model itself where it is the better one.
    sizes : array-like, default=(0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
        Points of the curve, as shares of the training rows or as numbers.
    parameter : str, optional
        A parameter of the model, as of ``set_params``, to draw the scores against.
    values : sequence, optional
        Its values.
    ordered : bool, default=False
        Whether the rows are in order of time: folds are then predicted from the rows before them, and smaller sizes
        take the latest.
    tolerance : float, default=0.05
        Share of D - B below which a difference does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LinearRegression, diagnose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> found = diagnose.bias_variance(LinearRegression(), X, y)
    >>> found.kind
    'high bias'
    >>> found.next_steps[0]
    'add features: interactions, powers, splines, or measurements of another kind'
    """
    rows, seed = checked_rows(X, y, sample_weight, groups), seed_of(random_state)
    check_model(model, rows)
    number("tolerance", tolerance, low=0, high=1)
    classifier = bool(is_classifier(model))
    scorer, metric = scorer_of(scoring, model)
    splits = folds_of(rows, cv, classifier=classifier, ordered=ordered, seed=seed)
    fixed = seeded(model, seed)
    curve = rows_curve(fixed, rows, splits, scorer, sizes, n_jobs, seed, ordered=ordered, classifier=classifier)
    level = _level(desired, model, rows, splits, scorer, n_jobs, seed, curve)
    constant = DummyClassifier(strategy="prior") if classifier else DummyRegressor()
    baseline = _folds(constant, rows, splits, scorer, n_jobs)
    baseline_score = float(np.mean(baseline)) if np.isfinite(baseline).all() else float(np.min(curve.validation))
    complexity = None
    if parameter is not None:
        complexity = complexity_curve(fixed, rows, splits, scorer, parameter, values or (), n_jobs)
    sign = int(getattr(scorer, "_sign", 1))
    return assessed(
        fixed,
        curve,
        metric,
        level,
        baseline_score,
        ratio=rows_ratio(splits),
        sign=sign,
        certificate=getattr(fitted(fixed, rows), "certificate_", None),
        n_features=rows.X.shape[1] if len(rows.X.shape) > 1 else 1,
        tolerance=float(tolerance),
        complexity=complexity,
        parameter=parameter,
    )


def _folds(model: Any, rows: Rows, splits: Sequence[Split], scorer: Scorer, n_jobs: int | None) -> np.ndarray:
    tasks = [Task("", model, j, split) for j, split in enumerate(splits)]
    return np.array([result.score for result in run_tasks(tasks, rows, scorer, n_jobs)])


class Level(NamedTuple):
    """The desired level, its scores on the folds where these were measured, and its source."""

    score: float
    folds: np.ndarray | None
    source: str


def _level(
    desired: Any,
    model: Any,
    rows: Rows,
    splits: Sequence[Split],
    scorer: Scorer,
    n_jobs: int | None,
    seed: int,
    curve: Curve,
) -> Level:
    itself = Level(float(curve.validation[-1].mean()), curve.validation[-1], "the model itself")
    if desired is not None and not hasattr(desired, "fit"):
        return Level(number("desired", desired), None, "as given")
    if desired is None:
        if not (is_classifier(model) or is_regressor(model)):
            return itself
        desired = RandomForestClassifier() if is_classifier(model) else RandomForestRegressor()
    scores = _folds(seeded(desired, seed), rows, splits, scorer, n_jobs)
    if not np.isfinite(scores).all() or scores.mean() <= itself.score:
        return itself
    return Level(float(scores.mean()), scores, type(desired).__name__)


def assessed(
    model: Any,
    curve: Curve,
    metric: str,
    desired: Level,
    baseline: float,
    *,
    ratio: float,
    sign: int,
    certificate: Any,
    n_features: int,
    tolerance: float = 0.05,
    complexity: Curve | None = None,
    parameter: str | None = None,
) -> BiasVariance:
    """The diagnosis by the rules above, from a learning curve.

    ratio : test rows of a fold over its training rows, for the standard errors of folds that share rows.
    sign : -1 where the scores of the curve are losses with their sign changed.
    """
    level, level_folds, level_from = desired
    T, V = float(curve.train[-1].mean()), float(curve.validation[-1].mean())
    # A fold on which the model is far worse than a constant would dominate the standard errors of all differences.
    train, validation = np.maximum(curve.train, baseline)[-1], np.maximum(curve.validation, baseline)[-1]
    if level_folds is not None:
        level_folds = np.maximum(level_folds, baseline)
        level = float(level_folds.mean())
    n_folds = curve.validation.shape[1]
    t = t_quantile(n_folds)
    gap_error = float(corrected_error(train - validation, ratio))
    short_error = float(corrected_error((level if level_folds is None else level_folds) - validation, ratio))
    # The range between a constant and the desired level is the unit of all differences.
    scale = max(level - baseline, 1e-12)

    def counts(value: float, error: float) -> bool:
        return value > tolerance * scale and (not np.isfinite(error) or value > t * error)

    # The gain of the last doubling of the rows, or of the last step where that is clearer.
    half = int(np.argmin(np.abs(np.log(curve.x[:-1] / (curve.x[-1] / 2)))))
    rises = [validation - np.maximum(curve.validation[at], baseline) for at in dict.fromkeys((half, len(curve.x) - 2))]
    slope, slope_error = max(
        ((float(rise.mean()), float(corrected_error(rise, ratio))) for rise in rises), key=lambda r: (counts(*r), -r[1])
    )
    short, gap = level - float(validation.mean()), float((train - validation).mean())
    bias = level - float(train.mean())
    rising = counts(slope, slope_error)
    falls_short = counts(short, short_error)
    # Differences of a fifth of the range could not be seen with these standard errors.
    error = float(corrected_error(validation, ratio))
    blurred = np.isfinite(short_error) and t * max(short_error, error) > 0.2 * scale
    # Student's t of two folds is 13: with many folds the same errors would say enough.
    few_folds = n_folds < 4 and 2.0 * max(short_error, error) <= 0.2 * scale
    # In words losses have their usual sign.
    said_T, said_V, said_level = (f"{sign * value:.4g}" for value in (T, V, level))
    if falls_short and bias >= 0.5 * short:
        kind, steps = "high bias", reduce_bias(model, certificate=certificate)
        why = (
            f"even on the rows it was fitted to it scores only {said_T}, while {said_level} can be reached "
            f"({level_from}); on other rows it scores {said_V}"
        )
    elif falls_short or (counts(gap, gap_error) and gap > 0.25 * scale):
        kind = "high variance"
        steps = (
            *finish_fit(model, certificate),
            *reduce_variance(model, more_rows_help=rising, n_features=n_features),
        )
        reached = f", while {said_level} can be reached ({level_from})" if falls_short else ""
        why = f"it scores {said_T} on the rows it was fitted to and {said_V} on others{reached}"
    elif (wants_rows := counts(gap, gap_error) and rising) or blurred:
        kind = "needs more data"
        steps = reduce_variance(model, more_rows_help=True, n_features=n_features) if wants_rows else (_MORE_ROWS,)
        why = (
            f"the last rows improved its score of {said_V} by {slope:.2g}, and {gap:.2g} lie between that "
            "and its score on the rows it was fitted to"
            if wants_rows
            else f"the folds differ too much: {said_V}, standard error {error:.2g}"
        )
        if few_folds and not wants_rows:
            kind, steps = "undecided", (_MORE_FOLDS,)
            why = (
                f"{n_folds} folds are too few to tell: it scores {said_T} on the rows it was fitted to and {said_V} on "
                f"others, with a standard error of {error:.2g}"
            )
    else:
        kind = "good fit"
        steps = finish_fit(model, certificate)
        why = (
            f"it scores {said_V} on rows it has not seen, {said_T} on those it has, and nothing better is known "
            f"({level_from})"
            if level_folds is not None
            else f"it scores {said_V} on rows it has not seen; {said_level}, which was desired, is within their noise"
        )
    notes: tuple[str, ...] = ()
    if kind == "good fit" and not rising and slope > max(slope_error, 0.01 * scale):
        notes += (
            f"the curve is not flat yet: the last rows improved the score by {slope:.2g}, with a standard error of "
            f"{slope_error:.2g}",
        )
    if n_folds < 2:
        notes += ("there is one split, so that no standard error is known: only sizes of differences were used",)
    notes += tuple(f"left out of the curve: {failure[:150]}" for failure in curve.failures[:3])
    best = None
    if complexity is not None:
        best = complexity.x[int(np.argmax(complexity.mean("validation")))]
        notes += (f"of the values of {parameter} tried, {best} has the best validation score",)
    return BiasVariance(
        verdict=f"{kind[0].upper()}{kind[1:]}: {why} ({metric}).",
        columns=_columns(curve, complexity, parameter),
        next_steps=steps,
        notes=notes,
        kind=kind,
        train_score=T,
        validation_score=V,
        validation_error=float(curve.error("validation")[-1]),
        gap=T - V,
        gap_error=float(corrected_error(curve.train[-1] - curve.validation[-1], ratio)),
        desired=level,
        baseline=baseline,
        bias=max(level - T, 0.0),
        variance=max(T - V, 0.0),
        slope=slope,
        slope_error=slope_error,
        metric=metric,
        curve=curve,
        complexity=complexity,
        parameter=parameter,
        best_value=best,
        desired_from=level_from,
    )


def _columns(curve: Curve, complexity: Curve | None, parameter: str | None) -> dict[str, Any]:
    parts = [("rows", curve)] if complexity is None else [("rows", curve), (str(parameter), complexity)]
    return {
        "against": [name for name, c in parts for _ in c.x],
        "value": [value for _, c in parts for value in np.asarray(c.x).tolist()],
        **{
            f"{part}_{what}": np.concatenate([getattr(c, measure)(part) for _, c in parts])
            for part in ("train", "validation")
            for what, measure in (("score", "mean"), ("error", "error"))
        },
    }
