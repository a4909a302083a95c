"""Diagnosis of optimiser and objective: the objective of one model at the parameters of another.

Model B predicts better than model A, a(B) > a(A), and A was meant to minimise J. If J(B) < J(A), the optimiser of A
failed: B has better parameters. If J(B) >= J(A), A has minimised J, and J is the wrong objective. A
certificate that holds decides without B: no parameters have a smaller J.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from epicycle.core._exceptions import NotFittedError, ParameterError, ParameterTypeError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, short, styled
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.linear import ElasticNet, Lasso, LinearRegression, LogisticRegression, QuantileRegressor, Ridge
from epicycle.report._finding import Finding
from epicycle.select._inputs import checked_rows
from epicycle.select._scorers import Replay, poolable, resampled, responses_of, score_with, scorer_of


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class OptimizerOrObjective(Finding):
    """Cause of the lower score of a model: its optimiser or its objective.

    Attributes
    ----------
    kind : {"optimizer", "objective", "neither"}
    score_a, score_b, score_error : float
        Scores of the models, and the standard error of their difference.
    objective_a, objective_b : float
        The objective of model A, which is minimised, at the parameters of both; NaN where the certificate was enough.
    proven : bool
        Whether the certificate of model A proves that it reached its minimum.
    metric : str
    """

    kind: str
    score_a: float
    score_b: float
    score_error: float
    objective_a: float
    objective_b: float
    proven: bool
    metric: str
    names: tuple[str, str]

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both models by objective and score: further right predicts better, lower optimises better."""
        ax = axes_of(ax)
        points = ((self.score_a, self.objective_a, "blue", "o"), (self.score_b, self.objective_b, "vermilion", "D"))
        for name, (x, y, colour, marker) in zip(self.names, points, strict=True):
            if np.isfinite(y):
                ax.plot(x, y, marker, color=COLOURS[colour], ms=9, label=name)
            else:
                ax.axvline(x, color=COLOURS[colour], ls="--", label=name)
        ax.margins(0.25)
        a = self.names[0]
        ax.set(
            xlabel=f"{self.metric.replace('_', ' ')} (larger is better)",
            ylabel=f"objective of {short(a, 24)}\n(smaller is better)",
            title={"optimizer": "the optimiser", "objective": "the objective", "neither": "neither"}[self.kind],
        )
        ax.legend(loc="best")
        return ax


@in_catalogue("diagnose", "J5", certificate="that of the model")
def optimizer_or_objective(
    model_a: Any,
    model_b: Any,
    X: Any,
    y: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    sample_weight: Any = None,
    objective: Callable[[Any], float] | None = None,
    scoring: Any = None,
    names: tuple[str, str] | None = None,
    random_state: Any = 0,
) -> OptimizerOrObjective:
    r"""Find out why model A predicts worse than model B: its optimiser, or its objective.

    .. math::

       a(B) > a(A),\; J(B) < J(A) &: \text{the optimiser of A failed} \\
       a(B) > a(A),\; J(B) \ge J(A) &: \text{J is the wrong objective}

    with A's own objective J, which is minimised, and the score a that matters. Where `model_a.certificate_` holds and
    proves a minimum, it is the objective whatever J(B) is.

    Parameters
    ----------
    model_a : fitted estimator
        The model to diagnose.
    model_b : fitted estimator
        One that predicts better: another method, the same with more iterations, or parameters set by hand.
    X, y : rows and targets that matter; better not those of the fits
    X_train, y_train : rows and targets of the fit of model A, optional
        On which J is evaluated; by default X and y.
    sample_weight : array-like, optional
        Weights of the training rows in J.
    objective : callable, optional
        ``objective(model)`` gives J, which is minimised, at the parameters of a model. Without it J is known for
        LinearRegression, Ridge, Lasso, ElasticNet, LogisticRegression and QuantileRegressor, and for
        any model_b that has `coef_` and `intercept_` of the same shape.
    scoring : str or callable, optional
        The score a, larger is better; by default accuracy or R2.
    names : tuple of two str, optional
        Names of the models.
    random_state : int, Generator, RandomState or None, default=0
        For the standard error of the difference of scores, by resampling rows.

    Examples
    --------
    >>> import numpy as np
    >>> import epicycle as ep
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5)) * [1, 10, 100, 1000, 1]
    >>> y = X @ [1, 0.1, 0.01, 0.001, 1] > 0.5
    >>> with ep.config(on_nonconvergence="ignore"):
    ...     early = ep.LogisticRegression(solver="gd", max_iter=20).fit(X, y)
    >>> done = ep.LogisticRegression().fit(X, y)
    >>> ep.diagnose.optimizer_or_objective(early, done, X, y).kind
    'optimizer'
    """
    for name, model in (("model_a", model_a), ("model_b", model_b)):
        if not hasattr(model, "predict"):
            raise ParameterTypeError(f"{name}={model!r:.60}; expected a fitted estimator with predict")
        if isinstance(model, BaseEstimator):
            try:
                check_is_fitted(model)
            except SklearnNotFittedError as error:
                raise NotFittedError(f"{name}: {error}") from None
    if (X_train is None) != (y_train is None):
        raise ParameterError("X_train, y_train: expected both or none")
    rows = checked_rows(X, y)
    train = checked_rows(X, y, sample_weight) if X_train is None else checked_rows(X_train, y_train, sample_weight)
    scorer, metric = scorer_of(scoring, model_a)
    seed, called = seed_of(random_state), names or _names(model_a, model_b)
    spread = np.nan
    if poolable(scorer):
        replays = [Replay(m, responses_of(m, rows.X), getattr(m, "classes_", None)) for m in (model_a, model_b)]
        scores = [score_with(scorer, replay, np.arange(rows.n)[:, None], rows.y, None) for replay in replays]
        draws = [resampled(scorer, replay, rows.y, None, seed) for replay in replays]
        spread = float(np.nanstd(draws[1] - draws[0], ddof=1))
    else:
        scores = [score_with(scorer, model, rows.X, rows.y, None) for model in (model_a, model_b)]
    certificate = getattr(model_a, "certificate_", None)
    proven = certificate is not None and certificate.kind != "none" and bool(certificate.holds)
    values = [np.nan, np.nan]
    if objective is not None:
        values = [_value(objective, model) for model in (model_a, model_b)]
    else:
        J = objective_of(model_a, train.X, train.y, train.weight)
        if J is not None:
            values = [J(model_a), J(model_b)]
        elif not proven:
            raise ParameterError(
                f"objective: that of {type(model_a).__name__} is not known here, and no certificate of it holds; give "
                "a callable objective(model)"
            )
    classifier = isinstance(model_a, BaseEstimator) and bool(is_classifier(model_a))
    sign = int(getattr(scorer, "_sign", 1))  # in words losses have their usual sign
    return _result(called, scores, spread, values, proven, certificate, metric, classifier, sign)


def _value(objective: Callable[[Any], float], model: Any) -> float:
    value = objective(model)
    if np.ndim(value) != 0 or not np.isfinite(value):
        raise ParameterError(f"objective: gave {value!r:.40} for {type(model).__name__}; expected a finite number")
    return float(value)


def _names(model_a: Any, model_b: Any) -> tuple[str, str]:
    a, b = (type(m.steps[-1][1] if hasattr(m, "steps") else m).__name__ for m in (model_a, model_b))
    return (a, b) if a != b else (f"{a} (A)", f"{b} (B)")


def _result(
    names: tuple[str, str],
    scores: list[float],
    error: float,
    values: list[float],
    proven: bool,
    certificate: Any,
    metric: str,
    classifier: bool,
    sign: int,
) -> OptimizerOrObjective:
    a, b = names
    better = scores[1] > scores[0] and not (np.isfinite(error) and scores[1] - scores[0] <= 1.96 * error)
    known = bool(np.isfinite(values).all())
    slack = 1e-9 * max(abs(values[0]), abs(values[1]), 1e-300) if known else 0.0
    lower = known and values[1] < values[0] - slack
    notes: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    scored = f"{b} scores {sign * scores[1]:.4g}, {a} {sign * scores[0]:.4g} ({metric})"
    if not better:
        kind = "neither"
        why = "which is no significant difference"
        if scores[1] <= scores[0]:
            why = f"so that there is nothing to explain; take a model that predicts better than {a}"
        verdict = f"Neither is the cause: {scored}, {why}."
        if lower and not proven:
            verdict += f" Yet the objective of {a} is {values[0]:.6g} and {values[1]:.6g} at the parameters of {b}."
            steps = (f"let the optimiser of {a} finish nevertheless: its minimum is lower",)
    elif lower and not (proven and (values[0] - values[1]) <= 1e-6 * max(abs(values[0]), 1e-300)):
        kind = "optimizer"
        verdict = (
            f"The optimiser is the cause: {scored}, and the objective of {a} is {values[1]:.6g} at the parameters of "
            f"{b}, less than the {values[0]:.6g} that its own optimiser reached."
        )
        steps = ("run more iterations", "use another solver, such as Newton's method", "scale the features")
        if proven:
            notes = (f"the certificate of {a} contradicts this ({certificate}): check that {a} minimises `objective`",)
    else:
        kind = "objective"
        why = (
            f"the objective of {a} is {values[0]:.6g}, no more than the {values[1]:.6g} at the parameters of {b}"
            if known
            else f"{a} has reached its minimum"
        )
        proof = f"; its certificate proves it ({certificate})" if proven else ""
        verdict = f"The objective is the cause: {scored}, and {why}{proof}. Minimising it better would not help."
        steps = (
            "change the strength of the penalty",
            "weigh the classes or rows by what their errors cost"
            if classifier
            else "weigh rows by what their errors cost",
            f"use the loss of {b}, or one closer to {metric}",
        )
    if not np.isfinite(error):
        notes += ("this score cannot be resampled, so that no standard error is known",)
    return OptimizerOrObjective(
        verdict=verdict,
        columns={"model": [a, b], "score": scores, f"objective of {a}": values, "proven_minimum": [proven, None]},
        next_steps=steps,
        notes=notes,
        kind=kind,
        score_a=scores[0],
        score_b=scores[1],
        score_error=error,
        objective_a=values[0],
        objective_b=values[1],
        proven=proven,
        metric=metric,
        names=names,
    )


Objective = Callable[[Any], float]


def objective_of(model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Objective | None:
    """J(other) = the objective that `model` minimises at the coefficients of `other`; None where it is not known.

    The letters are those of the classes' documentation: weights v, coefficients w, intercept b.
    """
    v = np.ones(len(y)) if weight is None else weight
    kind = type(model)
    if kind is LogisticRegression:
        return _logistic(model, X, y, v)
    if kind is LinearRegression:
        return lambda other: 0.5 * _squares(other, X, y, v)
    if kind is Ridge and model.penalty_matrix is None and np.ndim(model.alpha) == 0:
        factors = 1.0 if model.penalty_weights is None else np.asarray(model.penalty_weights)
        return lambda other: 0.5 * (_squares(other, X, y, v) + model.alpha * float((factors * _coef(other) ** 2).sum()))
    if kind in (Lasso, ElasticNet) and getattr(model, "bound", None) is None:
        ratio = 1.0 if kind is Lasso else float(model.l1_ratio)
        f = 1.0 if getattr(model, "penalty_weights", None) is None else np.asarray(model.penalty_weights)

        def sparse(other: Any) -> float:
            w = _coef(other)
            penalty = float((f * (ratio * np.abs(w) + (1 - ratio) / 2 * w**2)).sum())
            return _squares(other, X, y, v) / (2 * float(v.sum())) + float(model.alpha) * penalty

        return sparse
    if kind is QuantileRegressor:

        def pinball(other: Any) -> float:
            r, tau = y - _linear(other, X), float(model.quantile)
            loss = np.maximum(tau * r, (tau - 1) * r)
            return float(v @ loss / v.sum()) + float(model.alpha) * float(np.abs(_coef(other)).sum())

        return pinball
    return None


def _logistic(model: Any, X: Any, y: np.ndarray, v: np.ndarray) -> Objective:
    classes = np.asarray(model.classes_)
    codes = np.searchsorted(classes, y)
    if (codes >= len(classes)).any() or (classes[np.minimum(codes, len(classes) - 1)] != y).any():
        raise ParameterError("y: has labels that model_a was not fitted to")
    if model.class_weight is not None:
        v = v * compute_class_weight(model.class_weight, classes=classes, y=y, sample_weight=v)[codes]
    strength = 0.0 if np.isinf(model.C) else 1.0 / float(model.C)
    ratio = float(model.l1_ratio or 0.0)

    def loss(other: Any) -> float:
        z = _linear(other, X)
        if z.ndim == 1 or z.shape[1] == 1:
            z = np.column_stack([np.zeros(len(y)), z.reshape(-1)])
        if z.shape[1] != len(classes):
            raise ParameterError(f"model_b: coefficients for {z.shape[1]} classes; model_a has {len(classes)}")
        w = _coef(other)
        likelihood = float(v @ (logsumexp(z, axis=1) - z[np.arange(len(y)), codes]))
        return likelihood + strength * float((ratio * np.abs(w) + (1 - ratio) / 2 * w**2).sum())

    return loss


def _coef(other: Any) -> np.ndarray:
    if not hasattr(other, "coef_"):
        raise ParameterError(
            f"model_b: {type(other).__name__} has no coef_ to put into the objective; give a callable objective(model)"
        )
    return np.asarray(other.coef_, dtype=np.float64)


def _linear(other: Any, X: Any) -> np.ndarray:
    w = _coef(other)
    rows = X if hasattr(X, "dtype") else np.asarray(X)
    if w.shape[-1] != rows.shape[1]:
        raise ParameterError(f"model_b: {w.shape[-1]} coefficients; X has {rows.shape[1]} features")
    return np.asarray(rows @ w.T + np.asarray(getattr(other, "intercept_", 0.0)))


def _squares(other: Any, X: Any, y: np.ndarray, v: np.ndarray) -> float:
    return float(v @ (y - np.reshape(_linear(other, X), len(y))) ** 2)
