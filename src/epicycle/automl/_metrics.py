"""Which score decides, and what predictions are worth: one number for a race, with a bound for the test part."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from epicycle.automl._intervals import accelerated_interval, score_of_counts
from epicycle.core._exceptions import ParameterError
from epicycle.select._scorers import Replay, Scorer, TestScore, score_with, scorer_of
from epicycle.theory import test_bound

__all__ = ["Judge", "judge_for"]

#: Short names of scores: scikit-learn's, what to call it, and whether the name says a loss (smaller is better).
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
_CLASSES = ("accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1", "f1_macro", "log_loss", "brier")
_NUMBERS = ("r2", "rmse", "mse", "mae", "mape", "poisson")
#: The rarest class has to have this share for accuracy to say enough.
_SKEWED = 0.2


@dataclass(frozen=True)
class Judge:
    """A metric: `score` is larger for better predictions, `shown` is what people read."""

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
        """What to hand to functions with an argument `scoring`: the name where that says all."""
        return self.scorer if self.name in ("f1", "average_precision") else self.scoring

    def replay(self, responses: Mapping[str, np.ndarray]) -> Replay:
        """What a model said, to be scored: its X are numbers of rows."""
        model = DummyClassifier() if self.task == "classification" else DummyRegressor()
        return Replay(model, responses, self.classes)

    def score(self, responses: Mapping[str, np.ndarray], y: np.ndarray, weight: np.ndarray | None = None) -> float:
        """The score of predictions, larger is better; NaN where it has no value (one class only)."""
        try:
            return score_with(self.scorer, self.replay(responses), np.arange(len(y))[:, None], y, weight)
        except ValueError:
            return float("nan")

    def shown(self, score: float) -> float:
        """A score as it is called: losses positive."""
        return -score if self.loss else score

    def tie(self, responses: Mapping[str, np.ndarray], y: np.ndarray) -> float:
        """What decides between equal scores, larger is better: log loss of classes, squared error of numbers."""
        if self.classes is None:
            return -float(np.mean((y - responses["predict"]) ** 2))
        if "predict_proba" not in responses:
            return -math.inf
        p = responses["predict_proba"][np.arange(len(y)), np.searchsorted(self.classes, y)]
        return float(np.mean(np.log(np.clip(p, 1e-15, 1.0))))

    def with_bound(
        self, responses: Mapping[str, np.ndarray], y: np.ndarray, weight: np.ndarray | None, seed: int,
        level: float = 0.95, seconds: float = 1.0,
    ) -> TestScore:  # fmt: skip
        """The score and its interval: exact for accuracy, empirical Bernstein for the Brier score, else the bootstrap.

        The bootstrap takes fewer draws where they need more than `seconds`.
        """
        n = len(y)
        if self.name == "brier" and weight is None and self.classes is not None:
            truth = (np.asarray(self.classes)[None, :] == y[:, None]).astype(float)
            losses = ((responses["predict_proba"] - truth) ** 2).sum(axis=1) / 2  # between 0 and 1
            bound = test_bound(losses, sides=2, level=level)
            return TestScore(bound.estimate, bound.lower, bound.upper, level, bound.method, n, self.name)
        score = self.score(responses, y, weight)
        if self.name == "accuracy" and weight is None:
            exact = test_bound(errors=round(n * (1 - score)), n=n, level=level, sides=2)
            return TestScore(score, 1 - exact.upper, 1 - exact.lower, level, "binomial", n, self.name)
        quick = score_of_counts(self.name, responses, y, self.classes, weight)
        if quick is None:
            quick = self._slowly(responses, y, weight)
        _, low, high = accelerated_interval(quick, n, level, seed, seconds)
        ends = sorted((self.shown(low), self.shown(high)))
        return TestScore(self.shown(score), ends[0], ends[1], level, "bootstrap", n, self.name)

    def _slowly(self, responses: Mapping[str, np.ndarray], y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Any other metric of drawn rows, as scikit-learn computes it."""

        def score(counts: np.ndarray) -> float:
            rows = np.repeat(np.arange(len(y)), np.asarray(counts, dtype=np.int64))
            said = {name: values[rows] for name, values in responses.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.score(said, y[rows], None if weight is None else weight[rows])

        return score


def judge_for(metric: str | None, task: str, y: np.ndarray) -> Judge:
    """The judge of a metric; by default accuracy (the area under the ROC curve where classes are skewed), or R2."""
    classes = np.unique(y) if task == "classification" else None
    if metric is None:
        metric = _default(task, y)
    known = _CLASSES if task == "classification" else _NUMBERS
    if not isinstance(metric, str):
        raise ParameterError(f"metric={metric!r:.40}; expected the name of a score")
    short = {scoring: name for name, (scoring, _, _) in _SHORT.items()}.get(metric, metric)
    if short in _SHORT:
        if short not in known:
            raise ParameterError(f"metric={metric!r}: not a score for {task}; expected one of {', '.join(known)}")
        scoring, label, loss = _SHORT[short]
    else:
        scoring, label, loss = metric, metric.removeprefix("neg_").replace("_", " "), metric.startswith("neg_")
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
        scorer = _for_class(scorer, classes[1])
    return Judge(short.removeprefix("neg_"), label, scorer, scoring, loss, task, classes)


def _for_class(scorer: Any, positive: Any) -> Any:
    """The scorer, told which class is positive where labels are no zeros and ones."""
    from sklearn.metrics import make_scorer

    needs = scorer._response_method
    return make_scorer(scorer._score_func, response_method=needs, **{**scorer._kwargs, "pos_label": positive})


def _default(task: str, y: np.ndarray) -> str:
    if task == "regression":
        return "r2"
    shares = np.unique(y, return_counts=True)[1] / len(y)
    if shares.min() * len(shares) >= 2 * _SKEWED:
        return "accuracy"
    return "roc_auc" if len(shares) == 2 else "log_loss"


def further_metrics(judge: Judge) -> tuple[str, ...]:
    """What else is told about the test part."""
    if judge.task == "regression":
        return ("r2", "rmse", "mae")
    two = judge.classes is not None and len(judge.classes) == 2
    return ("accuracy", "balanced_accuracy", "log_loss", "brier", *(("roc_auc", "average_precision") if two else ()))
