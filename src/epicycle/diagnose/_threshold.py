"""Threshold of a score for imbalanced classes, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, styled
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.diagnose._threshold_metrics import Criterion, counts_at, criterion_of, cross_validated, ratio
from epicycle.report._finding import Finding
from epicycle.select._fit_and_score import fitted, run_all
from epicycle.select._inputs import (
    CROSS_VALIDATION_DOCS,
    Rows,
    Split,
    check_weights_taken,
    checked_rows,
    folds_of,
    seeded,
)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Threshold(Finding):
    """A threshold for a score, with precision, recall and the metric there.

    Attributes
    ----------
    threshold : float
        Scores at or above it count as positive.
    precision, recall, f1 : float
        At the threshold.
    tp, fp, fn, tn : float
        Counts (or weights) of the confusion matrix there.
    value : float
        The metric there; costs are negative.
    cv_value, cv_error : float
        The metric with the threshold chosen on other folds than those it is applied to, and its standard error.
    default_threshold, default_value : float
        0.5 for probabilities and 0 for other scores, and the metric there.
    prevalence : float
        Share of positive rows.
    average_precision : float
        The area under the precision-recall curve, as a step function.
    thresholds, precisions, recalls, values : ndarray
        The curves, from the largest threshold to the smallest.
    positive : label
        The positive class.
    model_ : estimator
        The model on all rows; None where scores were given.
    """

    threshold: float
    precision: float
    recall: float
    f1: float
    tp: float
    fp: float
    fn: float
    tn: float
    value: float
    cv_value: float
    cv_error: float
    default_threshold: float
    default_value: float
    prevalence: float
    average_precision: float
    metric: str
    positive: Any = True
    negative: Any = False
    model_: Any = None
    thresholds: np.ndarray = field(default_factory=lambda: np.zeros(0))
    precisions: np.ndarray = field(default_factory=lambda: np.zeros(0))
    recalls: np.ndarray = field(default_factory=lambda: np.zeros(0))
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def predict(self, X: Any) -> np.ndarray:
        """Labels by this threshold."""
        if self.model_ is None:
            raise ParameterError("X: there is no model, scores were given; compare them with `threshold`")
        above = _scores(self.model_, X, self.positive)[0] >= self.threshold
        return np.asarray(np.where(above, self.positive, self.negative))

    @styled
    def plot(self, ax: Axes | None = None, *, kind: str = "threshold") -> Axes:
        """Draw precision, recall and the metric by threshold, or precision against recall.

        Parameters
        ----------
        kind : {"threshold", "precision-recall"}, default="threshold"
        """
        if kind not in ("threshold", "precision-recall"):
            raise ParameterError(f"kind={kind!r}; expected 'threshold' or 'precision-recall'")
        ax = axes_of(ax)
        if kind == "precision-recall":
            ax.step(self.recalls, self.precisions, where="post", color=COLOURS["blue"])
            ax.plot(self.recall, self.precision, "D", color=COLOURS["vermilion"], ms=8, label="chosen")
            ax.axhline(self.prevalence, color=COLOURS["grey"], ls=":", label="chance")
            ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02))
            ax.legend(loc="best")
            return ax
        inner = slice(1, -1) if len(self.thresholds) > 4 else slice(None)
        x = self.thresholds[inner]
        ax.plot(x, self.precisions[inner], color=COLOURS["blue"], ls="-", label="precision")
        ax.plot(x, self.recalls[inner], color=COLOURS["orange"], ls="--", label="recall")
        if self.metric == "cost":
            other = ax.twinx()
            other.plot(x, -self.values[inner], color=COLOURS["green"], ls="-.", label="cost")
            other.set(ylabel="cost (green)")
            other.grid(visible=False)
            ax.plot([], [], color=COLOURS["green"], ls="-.", label="cost")
        else:
            ax.plot(x, self.values[inner], color=COLOURS["green"], ls="-.", label=self.metric)
        ax.axvline(self.threshold, color=COLOURS["vermilion"], lw=1.5, label=f"chosen, {self.threshold:.3g}")
        if x.min() <= self.default_threshold <= x.max():
            ax.axvline(self.default_threshold, color=COLOURS["grey"], lw=1, ls=":", label="default")
        ax.set(xlabel="threshold", ylabel="share", ylim=(0, 1.02))
        ax.legend(loc="best")
        return ax


@in_catalogue("diagnose", "J7", certificate="standard errors", docs=CROSS_VALIDATION_DOCS)
def threshold(
    model: Any,
    X: Any,
    y: Any,
    *,
    metric: str | Callable[..., Any] = "f1",
    costs: tuple[float, float] | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    positive: Any = None,
    cv: Any = 5,
    groups: Any = None,
    ordered: bool = False,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Threshold:
    r"""Choose the threshold of a two-class model for imbalanced classes by cross-validation.

    Every row is scored by a model that was not fitted to it. At each threshold the rows at or above it count as
    positive, with

    .. math:: P = \frac{tp}{tp + fp}, \qquad R = \frac{tp}{tp + fn}, \qquad
              F_\beta = \frac{(1 + \beta^2) P R}{\beta^2 P + R} ,

    and the best one is taken. Its value on other rows is `cv_value`: for every fold the threshold is chosen on the
    other folds.

    Parameters
    ----------
    model : classifier for two classes, or any model with predict_proba, decision_function or score_samples
        Fitted already with ``cv="prefit"``.
    metric : str or callable, default="f1"
        "f1", "f2", "f0.5" and so on, "accuracy", "balanced_accuracy", "mcc", "youden" (recall of both classes less
        one), "cost" (needs `costs`), or ``metric(tp, fp, fn, tn)`` on arrays; larger is better.
    costs : tuple of two floats, optional
        Of a false positive and of a false negative; with it the metric is "cost".
    min_precision, min_recall : float, optional
        Only thresholds that reach these are considered.
    positive : label, optional
        By default the rarer of the two.
    cv : int, splitter, splits or "prefit", default=5
    ordered : bool, default=False
        Whether the rows are in order of time; the first ones are then never predicted, and left out.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LogisticRegression, diagnose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = rng.random(2000) < 1 / (1 + np.exp(4 - 2 * X[:, 0]))     # one in twelve
    >>> found = diagnose.threshold(LogisticRegression(), X, y)
    >>> found.threshold < 0.5 and found.value > found.default_value
    True
    """
    rows, seed = checked_rows(X, y, sample_weight, groups), seed_of(random_state)
    if not hasattr(model, "fit") or isinstance(model, type):
        raise ParameterTypeError(f"model={model!r:.60}; expected a classifier")
    criterion = criterion_of(metric, costs, min_precision, min_recall)
    classes, counts = np.unique(rows.y, return_counts=True)
    if len(classes) != 2:
        raise DataError(f"y: {len(classes)} classes; expected two, one of them positive")
    if positive is None:
        positive = classes[int(np.argmin(counts[::-1]) == 0)] if counts[0] != counts[1] else classes[1]
    elif positive not in classes:
        raise ParameterError(f"positive={positive!r}; y has {classes.tolist()!r}")
    negative = classes[0] if classes[1] == positive else classes[1]
    prefit = isinstance(cv, str) and cv == "prefit"
    if rows.weight is not None and not prefit:
        check_weights_taken("model", model)
    splits = folds_of(rows, 5 if prefit else cv, classifier=True, ordered=ordered and not prefit, seed=seed)
    if prefit:
        final = model
        scores, default = _scores(model, rows.X, positive)
    else:
        scores, default = _out_of_fold(seeded(model, seed), rows, splits, positive, n_jobs)
        final = fitted(seeded(model, seed), rows)
    fold = np.full(rows.n, -1)
    for j, (_, test) in enumerate(splits):
        fold[test] = j
    seen = fold >= 0
    weight = None if rows.weight is None else rows.weight[seen]
    labels = {"positive": positive, "negative": negative, "model_": final}
    return _chosen(scores[seen], rows.y[seen] == positive, weight, fold[seen], criterion, default, **labels)


@in_catalogue("diagnose", "J7", certificate="standard errors", docs=CROSS_VALIDATION_DOCS)
def threshold_of_scores(
    scores: Any,
    y: Any,
    *,
    metric: str | Callable[..., Any] = "f1",
    costs: tuple[float, float] | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    sample_weight: Any = None,
    default: float = 0.5,
    random_state: Any = 0,
) -> Threshold:
    """Choose the threshold for given scores, larger for more likely positives.

    For densities, as in the detection of anomalies, give their negative logarithm.

    Parameters
    ----------
    scores : array-like of shape (n,)
    y : array-like of shape (n,)
        Booleans, or 0 and 1.
    metric, costs, min_precision, min_recall
        As for :func:`threshold`.
    sample_weight : array-like of shape (n,), optional
    default : float, default=0.5
        The threshold to compare with.

    Examples
    --------
    >>> from epicycle.diagnose import threshold_of_scores
    >>> found = threshold_of_scores([0.1, 0.2, 0.3, 0.4, 0.8, 0.9], [0, 0, 0, 1, 0, 1])
    >>> round(found.threshold, 2), round(found.precision, 3), found.recall
    (0.35, 0.667, 1.0)
    """
    criterion = criterion_of(metric, costs, min_precision, min_recall)
    s, labels = np.asarray(scores, dtype=np.float64), np.asarray(y)
    rows = checked_rows(s.reshape(len(s), -1), labels, sample_weight)
    if s.ndim != 1 or not np.isfinite(s).all():
        raise DataError("scores: expected one finite number for each row")
    if not np.isin(labels, (0, 1)).all() or len(np.unique(labels)) != 2:
        raise DataError("y: expected 0 and 1, and both of them")
    k = int(min(5, np.bincount(labels.astype(int)).min()))
    fold = np.zeros(len(s), dtype=np.int64)
    if k >= 2:
        for j, (_, test) in enumerate(folds_of(rows, k, classifier=True, seed=seed_of(random_state))):
            fold[test] = j
    return _chosen(s, labels.astype(bool), rows.weight, fold, criterion, float(default))


def _scores(model: Any, X: Any, positive: Any) -> tuple[np.ndarray, float]:
    """Scores of the rows, larger for the positive class, and their default threshold."""
    if hasattr(model, "predict_proba"):
        at = int(np.flatnonzero(np.asarray(model.classes_) == positive)[0])
        return np.asarray(model.predict_proba(X))[:, at], 0.5
    if hasattr(model, "decision_function") and is_classifier(model):
        sign = 1.0 if np.asarray(model.classes_)[1] == positive else -1.0
        return sign * np.asarray(model.decision_function(X)).ravel(), 0.0
    for method in ("score_samples", "decision_function"):
        if hasattr(model, method):  # densities and the like: the rarer, the more positive
            values = -np.asarray(getattr(model, method)(X)).ravel()
            return values, float(np.quantile(values, 0.9))
    raise ParameterTypeError(f"model: {type(model).__name__} has no predict_proba, decision_function or score_samples")


def _out_of_fold(
    model: Any, rows: Rows, splits: list[Split], positive: Any, n_jobs: int | None
) -> tuple[np.ndarray, float]:
    def work(split: Split) -> tuple[np.ndarray, float]:
        part = fitted(model, rows.part(split[0]))
        return _scores(part, rows.part(split[1]).X, positive)

    results = run_all(work, splits, n_jobs)
    scores = np.full(rows.n, np.nan)
    for (_, test), (values, _) in zip(splits, results, strict=True):
        scores[test] = values
    return scores, results[0][1]


def _chosen(
    s: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None,
    fold: np.ndarray,
    criterion: Criterion,
    default: float,
    **labels: Any,
) -> Threshold:
    name, measure = criterion.name, criterion.measure
    w = np.ones(len(s)) if weight is None else weight
    thresholds, tp, fp, fn, tn = counts_at(s, y, w)
    precision = np.where(tp + fp > 0, ratio(tp, tp + fp), np.nan)
    recall, value = ratio(tp, tp + fn), np.asarray(measure(tp, fp, fn, tn), dtype=np.float64)
    at = criterion.best(value, precision, recall)
    if at < 0:
        reached = f"precision {np.nanmax(precision):.3g} and recall {recall.max():.3g} each at most"
        raise ParameterError(f"min_precision, min_recall: no threshold reaches both; {reached}")
    cv_value, cv_error = cross_validated(s, y, w, fold, criterion)
    # Thresholds fall: the first one at or below the default has the same confusion counts.
    usual = int(np.searchsorted(-thresholds, -default, side="left"))
    usual = min(usual, len(thresholds) - 1)
    f1 = ratio(2 * tp, 2 * tp + fp + fn)
    # Average precision as a step function; the trapezoidal rule would be too optimistic.
    average = float(np.sum(np.diff(recall) * np.nan_to_num(precision[1:])))
    prevalence = float(w @ y / w.sum())
    points = {"chosen": at, "default": usual}
    for level in (0.5, 0.8, 0.9, 0.95):
        points[f"recall {level}"] = int(np.argmax(recall >= level - 1e-12))
    rows = {"threshold": thresholds, "precision": precision, "recall": recall, "f1": f1}
    sign, digits = (-1, 4) if name == "cost" else (1, 3)  # people write costs without the sign that makes them a score
    rows |= {"share_positive": (tp + fp) / w.sum(), name: sign * value}
    columns: dict[str, Any] = {"point": list(points)}
    columns |= {column: values[list(points.values())] for column, values in rows.items()}
    columns["threshold"][1] = default  # the score next to it has the same confusion counts
    shown, at_default = (f"{sign * value[point]:.{digits}g}" for point in (at, usual))
    verdict = (
        f"Threshold {thresholds[at]:.4g}: precision {np.nan_to_num(precision[at]):.3g}, recall {recall[at]:.3g}, "
        f"{name} {shown}, where the default {default:.3g} gives {at_default}."
    )
    if prevalence < 0.4:
        verdict += f" One row in {1 / max(prevalence, 1e-12):.0f} is positive."
    if np.isfinite(cv_value):
        verdict += f" On rows that it was not chosen on it gives {sign * cv_value:.3g} (standard error {cv_error:.2g})."
    steps = []
    if np.isfinite(cv_value) and cv_value <= value[usual]:
        steps.append("keep the default threshold: choosing one gains nothing on rows that were not used for it")
    if prevalence < 0.1:
        steps.append(
            "use precision and recall, not accuracy: always predicting the negative class is right for most rows"
        )
    curves = {"threshold": thresholds, "precision": np.nan_to_num(precision), "recall": recall, "f1": f1}
    curves |= {"tp": tp, "fp": fp, "fn": fn, "tn": tn, "value": value}
    at_choice: dict[str, Any] = {name: float(values[at]) for name, values in curves.items()}
    return Threshold(
        verdict=verdict,
        columns=columns,
        next_steps=tuple(steps),
        **at_choice,
        cv_value=cv_value,
        cv_error=cv_error,
        default_threshold=default,
        default_value=float(value[usual]),
        prevalence=prevalence,
        average_precision=average,
        metric=name,
        thresholds=thresholds,
        precisions=precision,
        recalls=recall,
        values=value,
        **labels,
    )
