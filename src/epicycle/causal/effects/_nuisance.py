"""Nuisance models: the outcome and the treatment given the covariates, on rows that they were not fitted to.

Cross-fitting (Chernozhukov et al. 2018) predicts every row by models fitted to the other folds, so that an estimate
may use learners that overfit: their errors are independent of the noise of the rows they predict.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from epicycle.causal.effects._folds import content_keys
from epicycle.causal.effects._study import Study
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import (
    CollinearityWarning,
    DataTypeError,
    ParameterError,
    ParameterTypeError,
    SeparationWarning,
)
from epicycle.core._parameters import AnyOf, Choice, Described, Domain, NoneOr
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
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
    "boosting": lambda seed, n_jobs: StoppedBoosting(seed, n_jobs),
    "forest": lambda seed, n_jobs: RandomForestClassifier(min_samples_leaf=5, random_state=seed, n_jobs=n_jobs),
}
#: Operations on a cell of X by one model; a hundred trees of a few levels.
_WORK_PER_CELL = 500.0
_ESTIMATOR = Described("an estimator with fit and predict", lambda v: hasattr(v, "fit") and not isinstance(v, type))
#: Domains of `outcome_model` and `propensity_model`.
OUTCOME: Domain = NoneOr(AnyOf(Choice(*REGRESSORS, "logistic"), _ESTIMATOR))
EFFECT: Domain = NoneOr(AnyOf(Choice(*REGRESSORS), _ESTIMATOR))
PROPENSITY: Domain = NoneOr(AnyOf(Choice(*CLASSIFIERS, "linear"), _ESTIMATOR))


@dataclass(frozen=True)
class StoppedBoosting:
    """Boosting of a probability for as long as it improves on a tenth of the rows.

    Weights are reciprocals of probabilities: on a few thousand rows a hundred rounds make some of these so small that
    standard errors double. The rows are chosen by their content, as folds are.
    """

    seed: int
    n_jobs: int | None
    patience: int = 10

    def fitted(self, study: Study, labels: np.ndarray, rows: np.ndarray) -> GradientBoostingClassifier:
        """The classifier of labels of these rows; all of them are used where a part would lack a label."""
        held = rows & (content_keys(study, self.seed) % np.uint64(10) == 0)
        train, shared = rows & ~held, SharedArguments(random_state=self.seed, n_jobs=self.n_jobs)
        if min(len(np.unique(labels[part])) for part in (held, train)) < 2:
            model = GradientBoostingClassifier(**shared)
            return model.fit(study.X[rows], labels[rows], study.weight_of(rows))
        model = GradientBoostingClassifier(n_iter_no_change=self.patience, keep_best=True, **shared)
        return model.fit(
            study.X[train],
            labels[train],
            study.weight_of(train),
            X_val=study.X[held],
            y_val=labels[held],
            sample_weight_val=study.weight_of(held),
        )


def model_of(given: Any, argument: str, *, classes: bool, seed: int, n_jobs: int | None) -> Any:
    """A fresh model: the one of a name, a clone of the one given, or by default the linear one."""
    table = CLASSIFIERS if classes else REGRESSORS
    if given is None:
        given = "logistic" if classes else "linear"
    if not isinstance(given, str):
        if isinstance(given, type) or not (hasattr(given, "fit") and hasattr(given, "get_params")):
            raise ParameterTypeError(f"{argument}={given!r:.60}; expected an instance of BaseEstimator")
        return clone(given)
    if given in table:
        return table[given](seed, n_jobs)
    if given in CLASSIFIERS and not classes:  # a binary outcome
        return CLASSIFIERS[given](seed, n_jobs)
    raise ParameterError(f"{argument}={given!r}: for a treatment of two values expected one of {', '.join(table)}")


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of nuisance models that do not concern an effect; for the main thread, filters are global."""
    # An effect whose sums have left the range of numbers is refused at the end.
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # Of columns that depend on each other the coefficients are one choice of many, the predictions are not.
        warnings.simplefilter("ignore", CollinearityWarning)
        # Arms that the covariates separate have propensities of 0 and 1: the check of overlap says so and where.
        warnings.simplefilter("ignore", SeparationWarning)
        yield


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # which threads do not inherit
def fitted(model: Any, study: Study, target: np.ndarray, rows: np.ndarray, argument: str) -> Any:
    """The model fitted to these rows; a model that cannot take weights is refused where there are some."""
    X, y, weight = study.X[rows], target[rows], study.weight_of(rows)
    if X.shape[1] == 0:
        return Constant(float(np.average(y, weights=weight)))
    if isinstance(model, StoppedBoosting) or is_classifier(model):
        y = _labels(y, argument)
    if len(np.unique(y[:2])) == 1 and len(np.unique(y)) == 1:  # classifiers refuse a single class
        return Constant(float(y[0]))
    if isinstance(model, StoppedBoosting):
        return model.fitted(study, _labels(target, argument), rows)
    arguments = {} if weight is None else {"sample_weight": weight}
    if weight is not None and not has_fit_parameter(model, "sample_weight"):
        raise ParameterError(f"{argument}: {type(model).__name__} takes no sample_weight, but weights were given")
    return model.fit(X, y, **arguments)


def _labels(y: np.ndarray, argument: str) -> np.ndarray:
    if not np.isin(y, (0.0, 1.0)).all():
        raise DataTypeError(f"{argument}: is a classifier, for which y has to be 0 or 1")
    return y.astype(np.int64)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
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


@dataclass(frozen=True)
class Nuisance:
    """A function of the covariates to be cross-fitted: the model by threads, its target, and the arm it is learnt from.

    argument : the name of the estimator's argument, for messages.
    arm : 0.0 or 1.0, or None for all rows.
    known : whether the model is one of this package: those are fitted side by side.
    """

    make: Callable[[int | None], Any]
    target: np.ndarray
    argument: str
    arm: float | None = None
    known: bool = False


def cross_fitted(parts: Sequence[Nuisance], study: Study, folds: np.ndarray, n_jobs: int | None) -> list[np.ndarray]:
    """Predictions of each target for all rows, by models fitted to the rows of other folds (and of one arm).

    Models of this package are fitted side by side, with the threads shared out among them: one model for each thread
    waits for no other, where several threads of one model wait for each other at every split. Their bits do not depend
    on it.
    """
    out = [np.empty(study.n_rows) for _ in parts]
    tasks = [(j, k) for j in range(len(parts)) for k in range(int(folds.max()) + 1)]
    work = _WORK_PER_CELL * study.n_rows * study.X.shape[1]

    def run(task: tuple[int, int], threads: int | None) -> None:
        (j, k), part = task, parts[task[0]]
        inside = folds == k
        train = ~inside if part.arm is None else ~inside & (study.t == part.arm)
        if inside.any():
            model = fitted(part.make(threads), study, part.target, train, part.argument)
            out[j][inside] = predicted(model, study.X[inside])

    together = [task for task in tasks if parts[task[0]].known]
    threads = n_threads(work * len(together), n_jobs)
    side_by_side = threads > 1 and len(together) > 1
    for j, k in tasks:
        if not (side_by_side and parts[j].known):
            run((j, k), n_jobs)
    if side_by_side:
        each = max(1, threads // len(together))
        in_order(together, lambda task: run(task, each), None, min(threads, len(together)))
    return out
