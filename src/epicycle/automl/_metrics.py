"""Metrics: the score that ranks the candidates, and its interval on the test set."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import bdtr, stdtr
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import make_scorer, mean_pinball_loss

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream
from epicycle.select._scorers import Replay, Scorer, TestScore, responses_of, score_with, scorer_of
from epicycle.stats._class_scores import row_losses
from epicycle.stats._intervals import ScoreOfCounts, bca_interval, score_of_counts
from epicycle.theory import test_bound

#: Short names of scores: name of the scorer in scikit-learn, label, and whether it is a loss (smaller is better).
_SHORT: dict[str, tuple[str, str, bool]] = {
    "accuracy": ("accuracy", "accuracy", False),
    "balanced_accuracy": ("balanced_accuracy", "balanced accuracy", False),
    "roc_auc": ("roc_auc", "area under the ROC curve", False),
    "average_precision": ("average_precision", "average precision", False),
    "f1": ("f1", "F1", False),
    "f1_macro": ("f1_macro", "F1, mean of the classes", False),
    "log_loss": ("neg_log_loss", "log loss", True),
    "brier": ("neg_brier_score", "Brier score", True),
    "r2": ("r2", "R2", False),
    "rmse": ("neg_root_mean_squared_error", "root mean squared error", True),
    "mse": ("neg_mean_squared_error", "mean squared error", True),
    "mae": ("neg_mean_absolute_error", "mean absolute error", True),
    "mape": ("neg_mean_absolute_percentage_error", "mean absolute percentage error", True),
    "poisson": ("neg_mean_poisson_deviance", "mean Poisson deviance", True),
}
#: One sentence on each score.
_READINGS: dict[str, str] = {
    "accuracy": "share of rows that are predicted correctly",
    "balanced_accuracy": "mean over the classes of the share that is found: chance is 1 / number of classes",
    "roc_auc": "probability that a positive row gets a larger score than a negative one; 0.5 is chance",
    "average_precision": "area under precision and recall; chance is the share of positives",
    "f1": "harmonic mean of precision and recall of the second class",
    "f1_macro": "mean of the F1 of all classes",
    "log_loss": "mean of -log of the probability given to the true class; 0 is perfect",
    "brier": "mean squared error of the probabilities; 0 is perfect",
    "r2": "share of the variance of the target that is explained; 1 is perfect, 0 is the mean",
    "rmse": "root of the mean squared error, in the unit of the target; large errors count most",
    "mse": "mean squared error, in the squared unit of the target",
    "mae": "mean size of the errors, in the unit of the target",
    "mape": "mean size of the errors as a share of the target",
    "poisson": "mean Poisson deviance; 0 is perfect",
}
_CLASSES = ("accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1", "f1_macro", "log_loss", "brier")
_NUMBERS = ("r2", "rmse", "mse", "mae", "mape", "poisson")
#: Accuracy is the default metric while the rarest of two classes has at least this share (0.4 / k of k classes): a
#: constant then errs on a fifth of the rows or more.
_SKEWED = 0.2
#: A rarer class is missing from folds, where the ROC curve has no value.
_FEW_ROWS = 10
#: Bootstrap draws: 1000 for a stable 2.5% quantile, and never fewer than 200, however slow the metric is.
_MAX_DRAWS, _MIN_DRAWS = 1000, 200
#: The jackknife of the acceleration leaves out one of so many groups of rows: its third moment needs no more.
_JACKKNIFE_GROUPS = 60


@dataclass(frozen=True)
class Metric:
    """A metric: `score` is larger for better predictions, `shown` is the score under its usual name and sign."""

    name: str
    label: str
    scorer: Scorer
    scoring: str
    loss: bool
    task: str
    classes: np.ndarray | None = None

    @property
    def greater_is_better(self) -> bool:
        return not self.loss

    @property
    def scoring_argument(self) -> Any:
        """Argument `scoring` of other functions: the name of a scorer where that is enough."""
        if not getattr(self.scorer, "_kwargs", None):
            return self.scoring
        if self.classes is None or len(self.classes) == 2:
            return self.scorer

        def score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
            # A model that was fitted to a part of the rows may lack a class.
            return self.score(responses_of(model, X, self.classes), np.asarray(y), sample_weight)

        score.__name__ = self.name
        score.__dict__["_sign"] = -1 if self.loss else 1  # as scikit-learn's scorers have it
        return score

    def replay(self, responses: Mapping[str, np.ndarray]) -> Replay:
        """Stored predictions as a model that a scorer can call: its X are numbers of rows."""
        model = DummyClassifier() if self.task == "classification" else DummyRegressor()
        return Replay(model, responses, self.classes)

    def score(self, responses: Mapping[str, np.ndarray], y: np.ndarray, weight: np.ndarray | None = None) -> float:
        """The score of predictions, larger is better; NaN where it has no value (one class only)."""
        try:
            return score_with(self.scorer, self.replay(responses), np.arange(len(y))[:, None], y, weight)
        except ValueError:
            return float("nan")

    def shown(self, score: float) -> float:
        """The score with its usual sign: losses are positive."""
        return -score if self.loss else score

    def tie(self, responses: Mapping[str, np.ndarray], y: np.ndarray) -> float:
        """Second criterion between equal scores, larger is better: log loss of classes, squared error of numbers."""
        if quantile_of(self.name) is not None:
            return self.score(responses, y)  # the squared error is about the mean
        if self.classes is None:
            return -float(np.mean(row_losses("squared_error", y, responses["predict"])))
        if "predict_proba" not in responses:
            return -math.inf
        return -float(np.mean(row_losses("log_loss", y, responses["predict_proba"], self.classes)))

    def with_bound(
        self,
        responses: Mapping[str, np.ndarray],
        y: np.ndarray,
        weight: np.ndarray | None,
        seed: int,
        level: float = 0.95,
        seconds: float = 1.0,
    ) -> TestScore:
        """The score and its interval: exact for accuracy, else the bootstrap.

        The bootstrap takes fewer draws where they need more than `seconds`.
        """
        n = len(y)
        score = self.score(responses, y, weight)
        if self.name == "accuracy" and weight is None:
            # Clopper and Pearson: the number of errors is binomial.
            exact = test_bound(errors=round(n * (1 - score)), n=n, level=level, sides=2)
            return TestScore(score, 1 - exact.upper, 1 - exact.lower, level, "binomial", n, self.name)
        resampled = score_of_counts(self.name, responses, y, self.classes, weight)
        if resampled is None:
            resampled = self._score_of_copies(responses, y, weight)
        low, high = bootstrap_interval(resampled, n, level, seed, seconds)
        ends = sorted((self.shown(low), self.shown(high)))
        return TestScore(self.shown(score), ends[0], ends[1], level, "bootstrap", n, self.name)

    def _score_of_copies(
        self, responses: Mapping[str, np.ndarray], y: np.ndarray, weight: np.ndarray | None
    ) -> ScoreOfCounts:
        """Any other metric of drawn rows, as scikit-learn computes it: every row is copied as often as it was drawn."""

        def score(counts: np.ndarray) -> float:
            rows = np.repeat(np.arange(len(y)), np.asarray(counts, dtype=np.int64))
            drawn = {name: values[rows] for name, values in responses.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.score(drawn, y[rows], None if weight is None else weight[rows])

        return score


def metric_for(metric: str | None, task: str, y: np.ndarray) -> Metric:
    """The metric of that name; by default accuracy (ROC AUC for imbalanced classes), or R2."""
    classes = np.unique(y) if task == "classification" else None
    if metric is None:
        metric = _default(task, y)
    known = _CLASSES if task == "classification" else _NUMBERS
    if isinstance(metric, str) and (level := quantile_of(metric)) is not None and task == "regression":
        scorer = make_scorer(mean_pinball_loss, alpha=level, greater_is_better=False)
        return Metric(metric, f"pinball loss at {level:g}", scorer, metric, True, task)
    if not isinstance(metric, str):
        raise ParameterError(f"metric={metric!r:.40}; expected the name of a score")
    short = {scoring: name for name, (scoring, _, _) in _SHORT.items()}.get(metric, metric)
    if short in _SHORT:
        if short not in known:
            raise ParameterError(f"metric={metric!r}: not a score for {task}; expected one of {', '.join(known)}")
        scoring, label, loss = _SHORT[short]
    else:
        scoring, label, loss = metric, metric.removeprefix("neg_").replace("_", " "), metric.startswith("neg_")
    # ROC AUC generalises to one class against the rest; F1 and average precision have no such default.
    if classes is not None and len(classes) > 2:
        if short == "roc_auc":
            scoring, label = "roc_auc_ovr_weighted", "area under the ROC curves, one class against the rest"
        if short in ("f1", "average_precision"):
            raise ParameterError(
                f"metric={metric!r}: for two classes; expected 'f1_macro' or 'log_loss' for {len(classes)}"
            )
    try:
        scorer, _ = scorer_of(scoring, None)
    except ParameterError:
        raise ParameterError(
            f"metric={metric!r}; expected one of {', '.join(known)}, or the name of a scorer of scikit-learn"
        ) from None
    if short in ("f1", "average_precision") and classes is not None:
        scorer = _with_arguments(scorer, pos_label=classes[1])
    elif classes is not None and (short == "log_loss" or (len(classes) > 2 and short in ("brier", "roc_auc"))):
        # A fold may lack a class, and the score is over all of them.
        scorer = _with_arguments(scorer, _area_over_classes if short == "roc_auc" else None, labels=classes)
    return Metric(short.removeprefix("neg_"), label, scorer, scoring, loss, task, classes)


def quantile_of(metric: str) -> float | None:
    """The level of a pinball loss by its name, such as "pinball_0.9"; None for other metrics."""
    name, _, level = metric.partition("_")
    try:
        found = float(level)
    except ValueError:
        return None
    return found if name == "pinball" and 0 < found < 1 else None


def _with_arguments(scorer: Any, function: Any = None, **arguments: Any) -> Any:
    """The scorer with further arguments of its function, or with another function of the same predictions."""
    kept = scorer._kwargs if function is None else {}
    return make_scorer(
        function or scorer._score_func,
        response_method=scorer._response_method,
        greater_is_better=scorer._sign > 0,
        **{**kept, **arguments},
    )


def _area_over_classes(
    y: np.ndarray, probabilities: np.ndarray, *, labels: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """Mean area under the ROC curves of the classes that are among the rows, weighted by their share."""
    from sklearn.metrics import roc_auc_score

    v = np.ones(len(y)) if sample_weight is None else sample_weight
    shares = np.array([v[y == label].sum() for label in labels])
    there = np.flatnonzero((shares > 0) & (shares < v.sum()))
    if len(there) == 0:
        return float("nan")
    areas = [roc_auc_score(y == labels[k], probabilities[:, k], sample_weight=sample_weight) for k in there]
    return float(np.average(areas, weights=shares[there]))


def _default(task: str, y: np.ndarray) -> str:
    if task == "regression":
        return "r2"
    counts = np.unique(y, return_counts=True)[1]
    if counts.min() * len(counts) >= 2 * _SKEWED * len(y):
        return "accuracy"
    return "roc_auc" if len(counts) == 2 and counts.min() >= _FEW_ROWS else "log_loss"


def score_record(name: str, score: TestScore) -> dict[str, Any]:
    """A score of the test set in plain values, with its label and a sentence on how to read it."""
    level = quantile_of(name)
    if level is not None:
        reading = f"mean error, of which {level:g} counts where the target is above and {1 - level:g} where it is below"
        return {**asdict(score), "label": f"pinball loss at {level:g}", "reading": reading}
    label = _SHORT[name][1] if name in _SHORT else name
    return {**asdict(score), "label": label, "reading": _READINGS.get(name, "")}


def further_metrics(metric: Metric) -> tuple[str, ...]:
    """Further metrics that are reported for the test set."""
    if quantile_of(metric.name) is not None:
        return ()  # R2 and the squared error are about the mean, the absolute error about the median
    if metric.task == "regression":
        return ("r2", "rmse", "mae")
    two = metric.classes is not None and len(metric.classes) == 2
    more = ("roc_auc", "average_precision") if two else ("f1_macro",)
    return ("accuracy", "balanced_accuracy", "log_loss", "brier", *more)


def bootstrap_interval(
    score: ScoreOfCounts, n: int, level: float, seed: int, seconds: float = 1.0
) -> tuple[float, float]:
    """Interval of a score from rows drawn with replacement; fewer draws where they take more than `seconds`."""
    if n < 3:
        return np.nan, np.nan
    rng, began, draws = stream(seed, "resample"), time.perf_counter(), []
    for b in range(_MAX_DRAWS):
        draws.append(score(np.bincount(rng.integers(0, n, n), minlength=n)))
        if b + 1 >= _MIN_DRAWS and time.perf_counter() - began > seconds:
            break
    return bca_interval(score(np.ones(n)), np.array(draws), score, n, level, n_groups=_JACKKNIFE_GROUPS)


@dataclass(frozen=True)
class Comparison:
    """Losses of two models on the same rows.

    Attributes
    ----------
    metric : str
        "error rate" of classifiers, "squared error" of regressors.
    first, second : float
        The mean loss of each.
    difference : float
        First less second: negative where the first is better.
    lower, upper : float
        Of the difference, at `level`.
    p_value : float
        Of a difference as large where both are equally good: McNemar's exact test, or Student's paired t.
    test : str
    only_first, only_second : int or None
        Rows that only the one got right, of classifiers.
    n : int
    level : float
    verdict : str
    """

    metric: str
    first: float
    second: float
    difference: float
    lower: float
    upper: float
    p_value: float
    test: str
    only_first: int | None
    only_second: int | None
    n: int
    level: float
    verdict: str


def compare_losses(
    first: np.ndarray,
    second: np.ndarray,
    *,
    names: tuple[str, str] = ("A", "B"),
    metric: str,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare the losses of two models row by row.

    Errors are compared by McNemar's exact test; the interval of their difference inverts the binomial tail of the rows
    on which the models differ, each of the two kinds of rows at half the risk, so that it holds for any number of rows.
    Other losses are compared by Student's t for pairs, with a BCa bootstrap interval.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    n, differences = len(a), a - b
    if n < 2:
        raise DataError(f"{n} row; expected at least 2 to compare models")
    only_a = only_b = None
    if metric == "error rate":
        only_a, only_b = int(np.sum(differences < 0)), int(np.sum(differences > 0))
        # McNemar: with equally good models each of the rows on which they differ is a toss of a coin.
        p = min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5))) if only_a + only_b else 1.0
        test = "McNemar, exact"
        lower, upper = _difference_of_errors(only_a, only_b, n, level)
    else:
        p, test = _paired_t(differences), "Student's t for pairs"
        lower, upper = bootstrap_interval(lambda c: float(c @ differences / c.sum()), n, level, seed)
    difference = float(differences.mean())
    if p < 1 - level and difference != 0:
        better, worse = (names[0], names[1]) if difference < 0 else (names[1], names[0])
        verdict = f"{better} is better than {worse}: its {metric} is smaller by {abs(difference):.4g} (p = {p:.2g})."
    else:
        verdict = f"{names[0]} and {names[1]} cannot be distinguished on {n:,} rows (p = {p:.2g})."
    return Comparison(
        metric, float(a.mean()), float(b.mean()), difference, lower, upper, p, test, only_a, only_b, n, level, verdict
    )


def _difference_of_errors(a: int, b: int, n: int, level: float) -> tuple[float, float]:
    """Bounds of P(only A wrong) - P(only B wrong): each of the two shares has an exact interval at half the risk."""
    # Union bound over the two shares, which makes the interval conservative at any n.
    half = 1 - (1 - level) / 2
    only_a_wrong, only_b_wrong = (test_bound(errors=k, n=n, level=half, sides=2) for k in (b, a))
    return only_a_wrong.lower - only_b_wrong.upper, only_a_wrong.upper - only_b_wrong.lower


def _paired_t(differences: np.ndarray) -> float:
    n, spread = len(differences), float(differences.std(ddof=1))
    if spread == 0:
        return 1.0 if differences[0] == 0 else 0.0
    t = float(differences.mean()) / (spread / math.sqrt(n))
    return float(2 * stdtr(n - 1, -abs(t)))
