"""Scores of models by scikit-learn's scorers, and their intervals by resampling rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import get_scorer
from sklearn.utils import get_tags

from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core._random import stream
from epicycle.stats._intervals import ScoreOfCounts, bca_interval, score_of_counts
from epicycle.theory import test_bound

Scorer = Callable[..., float]
#: Bootstrap draws for a standard error: its own relative error is then 1 / sqrt(200), 7%.
DRAWS = 100
RESPONSES = ("predict", "predict_proba", "predict_log_proba", "decision_function")

#: Scores that are functions of the logarithm of a ratio of sums over rows; decreasing.
_LOSSES: dict[str, Callable[[float], float]] = {
    "mean_squared_error": lambda z: -float(np.exp(z)),
    "mean_absolute_error": lambda z: -float(np.exp(z)),
    "root_mean_squared_error": lambda z: -float(np.exp(z / 2)),
    "r2_score": lambda z: 1 - float(np.exp(z)),
}


#: Functions of scikit-learn whose values for drawn rows follow from the counts of the rows, and their short names.
_COUNTED = {
    "accuracy_score": "accuracy",
    "r2_score": "r2",
    "mean_squared_error": "mse",
    "mean_absolute_error": "mae",
    "root_mean_squared_error": "rmse",
}


def scorer_of(scoring: Any, estimator: Any) -> tuple[Scorer, str]:
    """The scorer and its name; without one accuracy for classifiers, R2 for regressors, else the model's own score."""
    if scoring is None:
        if is_classifier(estimator):
            return get_scorer("accuracy"), "accuracy"
        if is_regressor(estimator):
            return get_scorer("r2"), "r2"
        if not hasattr(estimator, "score"):
            raise ParameterTypeError(f"scoring=None; {type(estimator).__name__} has no score of its own, give one")
        return _own_score, "score"
    if isinstance(scoring, str):
        try:
            return get_scorer(scoring), scoring
        except ValueError:
            from difflib import get_close_matches

            from sklearn.metrics import get_scorer_names

            close = get_close_matches(scoring, get_scorer_names(), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ParameterError(f"scoring={scoring!r}; expected the name of a scorer of scikit-learn{hint}") from None
    if callable(scoring):
        return scoring, str(getattr(scoring, "__name__", None) or getattr(scoring, "_score_func", scoring).__name__)
    raise ParameterTypeError(f"scoring={scoring!r:.60}; expected a name, a callable or None")


def _own_score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(model.score(X, y) if sample_weight is None else model.score(X, y, sample_weight=sample_weight))


def score_with(scorer: Scorer, model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
    """One number; larger is better."""
    value = scorer(model, X, y) if weight is None else scorer(model, X, y, sample_weight=weight)
    if not np.isscalar(value) and np.ndim(value) > 0:
        raise ParameterTypeError(f"scoring: gave {value!r:.60}; expected one number")
    return float(value)


def poolable(scorer: Scorer) -> bool:
    """Whether the scorer uses predictions alone, so that these may come from several models."""
    return hasattr(scorer, "_response_method")


class Replay(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Stands for a model whose predictions are stored: its X holds indices of rows."""

    def __init__(self, model: Any, responses: Mapping[str, np.ndarray], classes: np.ndarray | None) -> None:
        self.model, self.responses = model, responses
        if classes is not None:
            self.classes_ = classes

    def __sklearn_tags__(self) -> Any:
        if hasattr(self.model, "__sklearn_tags__"):
            return get_tags(self.model)
        tags = super().__sklearn_tags__()  # of a model without tags of scikit-learn
        tags.estimator_type = "classifier" if hasattr(self, "classes_") else "regressor"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name in RESPONSES and name in self.__dict__.get("responses", {}):

            def stored(rows: Any) -> np.ndarray:
                return np.asarray(self.responses[name][np.asarray(rows)[:, 0]])

            stored.__name__ = name  # scikit-learn looks at the name of the method
            return stored
        raise AttributeError(name)


def responses_of(model: Any, X: Any, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """All predictions of a fitted model; probabilities in the order of `classes`, zero for classes it lacks."""
    found = {name: np.asarray(getattr(model, name)(X)) for name in RESPONSES if hasattr(model, name)}
    own = getattr(model, "classes_", None)
    if classes is None or own is None or np.array_equal(own, classes):
        return found
    # A fold may lack a class: its probabilities get a column of zeros there.
    at = np.searchsorted(classes, own)
    for name, empty in (("predict_proba", 0.0), ("predict_log_proba", -np.inf)):
        if name in found:
            wide = np.full((len(found[name]), len(classes)), empty)
            wide[:, at] = found[name]
            found[name] = wide
    found.pop("decision_function", None)  # margins against other classes cannot be compared
    return found


def resampled(
    scorer: Scorer,
    replay: Replay,
    y: np.ndarray,
    weight: np.ndarray | None,
    seed: int,
    n_draws: int = DRAWS,
    *,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """The score on rows drawn with replacement; the same draws for every model. NaN where it has no value there.

    Groups are drawn with all their rows, because rows of one group are not independent.
    """
    n, scores, rng = len(y), np.full(n_draws, np.nan), stream(seed, "resample")
    member = None if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
    counted = _score_of_counts(scorer, replay, y, weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for b in range(n_draws):
            if member is None:
                rows = rng.integers(0, n, n)
            else:
                drawn = rng.integers(0, (g := int(member.max()) + 1), g)
                rows = np.repeat(np.arange(n), np.bincount(drawn, minlength=g)[member])
            if counted is not None:
                scores[b] = counted(np.bincount(rows, minlength=n))
            else:
                scores[b] = _on(scorer, replay, y, weight, rows)
    return scores


def _score_of_counts(scorer: Scorer, replay: Replay, y: np.ndarray, weight: np.ndarray | None) -> ScoreOfCounts | None:
    """The score as a function of how often each row counts, for metrics that are sums over rows; None for others."""
    name = _COUNTED.get(_function_name(scorer))
    predicted = replay.responses.get("predict")
    if name is None or predicted is None or y.ndim != 1 or predicted.shape != y.shape:
        return None
    return score_of_counts(name, replay.responses, y, weight=weight)


def _function_name(scorer: Scorer) -> str:
    """Name of the function of scikit-learn behind a scorer; empty where it has further arguments."""
    return "" if getattr(scorer, "_kwargs", None) else getattr(getattr(scorer, "_score_func", None), "__name__", "")


def _on(scorer: Scorer, replay: Replay, y: np.ndarray, weight: np.ndarray | None, rows: np.ndarray) -> float:
    try:
        return score_with(scorer, replay, rows[:, None], y[rows], None if weight is None else weight[rows])
    except ValueError:  # a draw with one class only has no area under its curve
        return np.nan


@dataclass(frozen=True)
class TestScore:
    """Score of a model on a test set, with its interval.

    Attributes
    ----------
    score : float
    lower, upper : float
        The true score lies between them with probability `level`.
    level : float
    method : str
        "binomial" (exact, for accuracy) or "bootstrap" (studentised for mean losses and R2, bias-corrected and
        accelerated for other scores).
    n : int
        Rows.
    metric : str
    """

    __test__ = False  # no test, whatever its name

    score: float
    lower: float
    upper: float
    level: float
    method: str
    n: int
    metric: str

    def __str__(self) -> str:
        between = f"between {self.lower:.4g} and {self.upper:.4g}"
        return f"{self.metric} {self.score:.4g} on {self.n} test rows; {between} at {self.level:.0%} ({self.method})"


def on_test_part(
    scorer: Scorer, metric: str, model: Any, X: Any, y: np.ndarray, *, level: float, seed: int, n_draws: int = 1000
) -> TestScore:
    """The score on a test set with its interval: exact for accuracy, by the bootstrap otherwise."""
    n = len(y)
    score = score_with(scorer, model, X, y, None)
    if metric == "accuracy":
        bound = test_bound(errors=round(n * (1 - score)), n=n, level=level, sides=2)
        return TestScore(score, 1 - bound.upper, 1 - bound.lower, level, "binomial", n, metric)
    if not poolable(scorer) or n < 3:
        return TestScore(score, np.nan, np.nan, level, "none known", n, metric)
    replay = Replay(model, responses_of(model, X), getattr(model, "classes_", None))
    if (studentised := _studentised(scorer, replay, y, level, seed, n_draws)) is not None:
        return TestScore(score, *studentised, level, "bootstrap", n, metric)
    counted = _score_of_counts(scorer, replay, y, None)

    def score_of_rows(mask: np.ndarray) -> float:
        return _on(scorer, replay, y, None, np.flatnonzero(mask)) if counted is None else counted(mask)

    draws = resampled(scorer, replay, y, None, seed, n_draws)
    lower, upper = bca_interval(score, draws, score_of_rows, n, level)
    return TestScore(score, lower, upper, level, "bootstrap", n, metric)


def _studentised(
    scorer: Scorer, replay: Replay, y: np.ndarray, level: float, seed: int, n_draws: int
) -> tuple[float, float] | None:
    """The bootstrap-t interval of a mean loss or of R2, on the scale of logarithms; None for other scores.

    With the loss N / D, sums over rows, the logarithm has the standard error sqrt(sum (n_i / N - d_i / D)^2). No draw
    has a larger loss than the largest of the sample, so the interval is widened as Student's t is against the normal,
    with the degrees of freedom of the variance, 2 n / (kurtosis - 1).
    """
    name = _function_name(scorer)
    if name not in _LOSSES or y.ndim != 1 or replay.responses["predict"].shape != y.shape:
        return None
    target = y.astype(np.float64) - y.mean()
    off = y - replay.responses["predict"]
    loss = np.abs(off) if name == "mean_absolute_error" else np.square(off, dtype=np.float64)

    def at(counts: np.ndarray) -> tuple[float, float]:
        base = (target - counts @ target / counts.sum()) ** 2 if name == "r2_score" else np.ones(len(y))
        N, D = float(counts @ loss), float(counts @ base)
        if N <= 0 or D <= 0:
            return np.nan, np.nan
        return float(np.log(N / D)), float(np.sqrt(counts @ (loss / N - base / D) ** 2))

    value, error = at(np.ones(len(y)))
    if not error > 0:
        return None
    rng, n = stream(seed, "resample"), len(y)
    drawn = np.array([at(np.bincount(rng.integers(0, n, n), minlength=n)) for _ in range(n_draws)])
    with np.errstate(all="ignore"):
        t = (drawn[:, 0] - value) / drawn[:, 1]
    t = t[np.isfinite(t)]
    if len(t) < 50:
        return None
    parts = loss - np.mean(loss)
    tails = float(n * (parts**4).sum() / (parts**2).sum() ** 2) if parts.any() else 3.0
    # Var(s^2) = sigma^4 (kurtosis - 1) / n: heavy tails leave few degrees of freedom for the variance.
    freedom = max(2 * n / max(tails - 1, 1.0), 3.0)
    wider = error * float(stdtrit(freedom, 0.5 + level / 2) / ndtri(0.5 + level / 2))
    # Bootstrap-t: the quantiles of t are reflected, so the upper one gives the lower end of the loss.
    high, low = (value - wider * np.quantile(t, q) for q in (0.5 - level / 2, 0.5 + level / 2))
    return _LOSSES[name](high), _LOSSES[name](low)
