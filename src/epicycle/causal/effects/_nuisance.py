"""Nuisance models: the outcome and the treatment given the covariates, on rows that they were not fitted to.

Cross-fitting (Chernozhukov et al. 2018) predicts every row by models fitted to the other folds, so that an estimate
may use learners that overfit: their errors are independent of the noise of the rows that they meet.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from epicycle.causal.effects._study import Study
from epicycle.core._exceptions import CollinearityWarning, DataTypeError, ParameterError, SeparationWarning
from epicycle.core._parameters import AnyOf, Choice, Described, Domain, NoneOr
from epicycle.linear.least_squares._linear_regression import LinearRegression
from epicycle.linear.logistic._logistic_regression import LogisticRegression
from epicycle.tree.boosting._classifier import GradientBoostingClassifier
from epicycle.tree.boosting._regressor import GradientBoostingRegressor
from epicycle.tree.forest._classifier import RandomForestClassifier
from epicycle.tree.forest._regressor import RandomForestRegressor

REGRESSORS: dict[str, Callable[[int, int | None], Any]] = {
    "linear": lambda _seed, n_jobs: LinearRegression(n_jobs=n_jobs),
    "boosting": lambda seed, n_jobs: GradientBoostingRegressor(random_state=seed, n_jobs=n_jobs),
    "forest": lambda seed, n_jobs: RandomForestRegressor(min_samples_leaf=5, random_state=seed, n_jobs=n_jobs),
}
CLASSIFIERS: dict[str, Callable[[int, int | None], Any]] = {
    "logistic": lambda _seed, n_jobs: LogisticRegression(penalty=None, n_jobs=n_jobs),
    "boosting": lambda seed, n_jobs: GradientBoostingClassifier(random_state=seed, n_jobs=n_jobs),
    "forest": lambda seed, n_jobs: RandomForestClassifier(min_samples_leaf=5, random_state=seed, n_jobs=n_jobs),
}
_ESTIMATOR = Described("an estimator with fit and predict", lambda v: hasattr(v, "fit") and not isinstance(v, type))
#: Domains of `outcome_model` and `propensity_model`.
OUTCOME: Domain = NoneOr(AnyOf(Choice(*REGRESSORS, "logistic"), _ESTIMATOR))
EFFECT: Domain = NoneOr(AnyOf(Choice(*REGRESSORS), _ESTIMATOR))
PROPENSITY: Domain = NoneOr(AnyOf(Choice(*CLASSIFIERS, "linear"), _ESTIMATOR))


def model_of(given: Any, argument: str, *, classes: bool, seed: int, n_jobs: int | None) -> Any:
    """A fresh model: the one of a name, a clone of the one given, or by default the linear one."""
    table = CLASSIFIERS if classes else REGRESSORS
    if given is None:
        given = "logistic" if classes else "linear"
    if not isinstance(given, str):
        return clone(given)
    if given in table:
        return table[given](seed, n_jobs)
    if given in CLASSIFIERS and not classes:  # a binary outcome
        return CLASSIFIERS[given](seed, n_jobs)
    raise ParameterError(f"{argument}={given!r}: for a treatment of two values expected one of {', '.join(table)}")


@contextmanager
def _quiet() -> Iterator[None]:
    # Of columns that depend on each other the coefficients are one choice of many, the predictions are not.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollinearityWarning)
        # Arms that can be told apart have propensities of 0 and 1: the check of overlap says so and where.
        warnings.simplefilter("ignore", SeparationWarning)
        yield


def fitted(model: Any, study: Study, target: np.ndarray, rows: np.ndarray, argument: str) -> Any:
    """The model fitted to these rows; a model that cannot take weights is refused where there are some."""
    X, y, weight = study.X[rows], target[rows], study.weight_of(rows)
    if X.shape[1] == 0:
        return Constant(float(np.average(y, weights=weight)))
    if is_classifier(model):
        y = _labels(y, argument)
    if len(np.unique(y[:2])) == 1 and len(np.unique(y)) == 1:  # classifiers refuse a single class
        return Constant(float(y[0]))
    arguments = {} if weight is None else {"sample_weight": weight}
    if weight is not None and not has_fit_parameter(model, "sample_weight"):
        raise ParameterError(f"{argument}: {type(model).__name__} takes no sample_weight, but weights were given")
    with _quiet():
        return model.fit(X, y, **arguments)


def _labels(y: np.ndarray, argument: str) -> np.ndarray:
    if not np.isin(y, (0.0, 1.0)).all():
        raise DataTypeError(f"{argument}: is a classifier, for which y has to be 0 or 1")
    return y.astype(np.int64)


def predicted(model: Any, X: Any) -> np.ndarray:
    """Predictions as numbers: of a classifier the probability of 1."""
    if not isinstance(model, Constant) and is_classifier(model):
        return np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1]
    return np.asarray(model.predict(X), dtype=np.float64).ravel()


@dataclass
class Constant:
    """The prediction of a model without covariates, or of a target of one value."""

    value: float

    def predict(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], self.value)


def cross_fitted(
    make: Callable[[], Any],
    study: Study,
    target: np.ndarray,
    folds: np.ndarray,
    argument: str,
    arm: float | None = None,
) -> np.ndarray:
    """Predictions of `target` for all rows, each by a model fitted to the rows of other folds (and of one arm)."""
    out = np.empty(study.n_rows)
    for k in range(int(folds.max()) + 1):
        inside = folds == k
        train = ~inside if arm is None else ~inside & (study.t == arm)
        if inside.any():
            out[inside] = predicted(fitted(make(), study, target, train, argument), study.X[inside])
    return out
