"""Methods of an average effect by name: from a study and the options of the estimator to an estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epicycle.causal.effects._causal_forest import grow_forest
from epicycle.causal.effects._doubly_robust import augmented_weighting, partially_linear, targeted_learning
from epicycle.causal.effects._entropy_balancing import entropy_balanced
from epicycle.causal.effects._estimate import Estimate
from epicycle.causal.effects._folds import Folds, content_folds
from epicycle.causal.effects._matching import Matcher, matched_difference, whole_rows
from epicycle.causal.effects._matching_distances import (
    exact_cells,
    genetic_weights,
    score_coordinate,
    standardised,
    whitened,
)
from epicycle.causal.effects._meta_learners import LEARNERS, row_effects
from epicycle.causal.effects._nuisance import Constant, Nuisance, cross_fitted, fitted, model_of, predicted
from epicycle.causal.effects._regression import difference_of_means, interacted_regression
from epicycle.causal.effects._study import Study
from epicycle.causal.effects._weighting import (
    LogisticPropensity,
    balancing_propensity,
    logistic_propensity,
    population_weights,
    quantile_strata,
    stratified_difference,
    weighted_difference,
)
from epicycle.core._certificate import Certificate
from epicycle.linear.logistic._logistic_regression import LogisticRegression


@dataclass(frozen=True)
class Options:
    """The estimator's arguments that the methods use."""

    estimand: str
    outcome_model: Any
    propensity_model: Any
    effect_model: Any
    n_folds: int
    clip: float
    stabilize: bool
    n_strata: int
    distance: str
    n_neighbors: int
    replacement: bool
    caliper: float | None
    exact: Any
    bias_correction: bool
    n_estimators: int
    min_samples_leaf: int
    tol: float
    max_iter: int
    seed: int
    n_jobs: int | None

    def outcome(self, n_jobs: int | None = None) -> Any:
        return self._model("outcome_model", False, n_jobs)

    def propensity(self, n_jobs: int | None = None) -> Any:
        return self._model("propensity_model", True, n_jobs)

    def _model(self, argument: str, classes: bool, n_jobs: int | None) -> Any:
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        return model_of(getattr(self, argument), argument, classes=classes, seed=self.seed, n_jobs=n_jobs)

    def outcome_part(self, study: Study, arm: float | None = None) -> Nuisance:
        """The outcome given the covariates, of one arm or of all rows."""
        known = not hasattr(self.outcome_model, "fit")
        return Nuisance(self.outcome, study.y, "outcome_model", arm, known)

    def treatment_part(self, study: Study) -> Nuisance:
        """The treatment given the covariates: a probability where it has two values, otherwise a number."""
        known = not hasattr(self.propensity_model, "fit")
        make = partial(self._model, "propensity_model", study.binary)
        return Nuisance(make, study.t, "propensity_model", known=known)

    def effect(self) -> Any:
        """The model of row effects; by default the kind of the outcome model."""
        given = self.outcome_model if self.effect_model is None else self.effect_model
        return model_of(given, "effect_model", classes=False, seed=self.seed, n_jobs=self.n_jobs)

    def clipped(self, e: np.ndarray) -> np.ndarray:
        """Propensities within bounds, on the sides where a weight of this estimand would grow."""
        low = self.clip if self.estimand in ("ate", "atc", "cate") else 0.0
        high = 1 - self.clip if self.estimand in ("ate", "att", "cate") else 1.0
        return np.asarray(np.clip(e, low, high))


def propensity_scores(study: Study, options: Options, folds: np.ndarray | None = None) -> np.ndarray:
    """Propensities of all rows: by one model of all rows, or cross-fitted."""
    if folds is not None:
        return cross_fitted([options.treatment_part(study)], study, folds, options.n_jobs)[0]
    model = fitted(options.propensity(), study, study.t, np.ones(study.n_rows, dtype=bool), "propensity_model")
    return predicted(model, study.X)


def _difference(study: Study, options: Options) -> Estimate:
    return difference_of_means(study, options.tol)


def _regression(study: Study, options: Options) -> Estimate:
    return interacted_regression(study, options.estimand, options.tol)


def _weighting(study: Study, options: Options) -> Estimate:
    rows = np.ones(study.n_rows, dtype=bool)
    given = options.propensity_model in (None, "logistic") if not hasattr(options.propensity_model, "fit") else False
    if not given:  # a learner without a known influence: cross-fitted, its scores are taken as they are
        folds = content_folds(study, options.n_folds, options.seed)
        e = propensity_scores(folds.study, options, folds.number)
        return _on_rows(_weighted(folds.study, options, e, None), folds, study)
    model = fitted(options.propensity(), study, study.t, rows, "propensity_model")
    if isinstance(model, Constant):
        return _weighted(study, options, np.full(study.n_rows, model.value), None)
    assert isinstance(model, LogisticRegression)
    e = predicted(model, study.X)
    return _weighted(study, options, e, logistic_propensity(study, e))


def _weighted(study: Study, options: Options, e: np.ndarray, model: LogisticPropensity | None) -> Estimate:
    bounded = options.clipped(e)
    found = weighted_difference(
        study,
        bounded,
        options.estimand,
        stabilize=options.stabilize,
        tol=options.tol,
        model=model,
        free=(bounded == e).astype(np.float64),
    )
    found.propensity = e
    return found


def _balancing(study: Study, options: Options) -> Estimate:
    model = balancing_propensity(study, options.estimand, options.tol, options.max_iter)
    found = weighted_difference(study, model.e, options.estimand, stabilize=True, tol=options.tol, model=model)
    found.certificate = Certificate(
        "imbalance",
        model.residual,
        max(options.tol, 1e-10),
        "the weights give both arms the same means of the covariates, to so many standard deviations",
    )
    return found


def _entropy(study: Study, options: Options) -> Estimate:
    return entropy_balanced(study, options.estimand, options.tol, options.max_iter)


def _strata(study: Study, options: Options) -> Estimate:
    e = propensity_scores(study, options)
    strata = quantile_strata(e, study.w * study.target(options.estimand), options.n_strata)
    return stratified_difference(study, strata, options.estimand, "stratum of the propensity score", e)


def _on_rows(found: Estimate, folds: Folds, study: Study) -> Estimate:
    """The rows of an estimate from the pieces of a study."""
    if found.weights is not None:
        found.weights = folds.back(found.weights, study.n_rows)
    if found.propensity is not None:
        found.propensity = folds.back(found.propensity, study.n_rows)
    return found


def nuisances(folds: Folds, options: Options) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(e, Q0, Q1), cross-fitted, with e as it came."""
    study = folds.study
    parts = [options.treatment_part(study), options.outcome_part(study, 0.0), options.outcome_part(study, 1.0)]
    e, Q0, Q1 = cross_fitted(parts, study, folds.number, options.n_jobs)
    return e, Q0, Q1


def _doubly_robust(study: Study, options: Options, *, targeted: bool) -> Estimate:
    folds = content_folds(study, options.n_folds, options.seed)
    e, Q0, Q1 = nuisances(folds, options)
    bounded = options.clipped(e)
    solve = targeted_learning if targeted else augmented_weighting
    found = solve(folds.study, bounded, Q0, Q1, options.estimand, options.tol)
    found.weights = population_weights(folds.study.t, bounded, options.estimand)
    found.propensity = e
    return _on_rows(found, folds, study)


def _partially_linear(study: Study, options: Options) -> Estimate:
    folds = content_folds(study, options.n_folds, options.seed)
    pieces = folds.study
    parts = [options.treatment_part(pieces), options.outcome_part(pieces)]
    treatment, outcome = cross_fitted(parts, pieces, folds.number, options.n_jobs)
    return _on_rows(partially_linear(pieces, treatment, outcome, options.tol), folds, study)


def _matching(study: Study, options: Options) -> Estimate:
    if options.distance == "exact":
        cells = exact_cells(study, range(study.X.shape[1]))
        return stratified_difference(study, cells, options.estimand, "cell of equal rows")
    e = propensity_scores(study, options) if options.distance == "propensity" else None
    rows, source = whole_rows(study)
    cells = exact_cells(rows, options.exact)
    matcher = Matcher(options.n_neighbors, options.replacement, options.caliper, options.n_jobs)
    run = partial(
        matched_difference,
        rows,
        cells=cells,
        estimand=options.estimand,
        matcher=matcher,
        bias_correction=options.bias_correction,
    )
    X = rows.dense()
    if e is not None:
        found = run(score_coordinate(e[source]), by_score=True)
    elif options.distance == "genetic":
        scale, worst = genetic_weights(rows, lambda Z: run(Z).weights, options.seed)
        found = run(standardised(X) * scale)
        found.facts["largest_imbalance"] = worst
    else:
        found = run(whitened(X) if options.distance == "mahalanobis" else standardised(X))
    if found.weights is not None:
        found.weights = np.bincount(source, found.weights, study.n_rows) / study.w
    found.propensity = e
    return found


def _meta_learner(study: Study, options: Options, *, learner: str) -> Estimate:
    folds = content_folds(study, options.n_folds, options.seed)
    found = nuisances(folds, options)
    bounded = options.clipped(found[0])
    estimate = augmented_weighting(folds.study, bounded, found[1], found[2], "ate", options.tol)
    if learner == "forest":
        estimate.model = grow_forest(
            folds.study,
            (bounded, *found[1:]),
            n_estimators=options.n_estimators,
            min_samples_leaf=options.min_samples_leaf,
            seed=options.seed,
            n_jobs=options.n_jobs,
        )
    else:
        estimate.model = row_effects(
            learner, folds.study, found, options.outcome, options.effect, options.propensity, options.clip
        )
    estimate.weights = population_weights(folds.study.t, bounded, "ate")
    estimate.propensity = found[0]
    return _on_rows(estimate, folds, study)


@dataclass(frozen=True)
class Method:
    """A method: what it estimates, the arguments that it uses beside those of all, and the function."""

    estimands: tuple[str, ...]
    uses: tuple[str, ...]
    run: Callable[[Study, Options], Estimate]
    numeric: bool = False


_THREE = ("ate", "att", "atc")
_NUISANCES = ("outcome_model", "propensity_model", "n_folds")
METHODS: dict[str, Method] = {
    "difference": Method(_THREE, (), _difference),
    "regression": Method((*_THREE, "cate"), (), _regression),
    "matching": Method(
        _THREE,
        ("distance", "n_neighbors", "replacement", "caliper", "exact", "bias_correction", "propensity_model"),
        _matching,
    ),
    "strata": Method(_THREE, ("propensity_model", "n_strata"), _strata),
    "ipw": Method((*_THREE, "ato"), ("propensity_model", "n_folds", "clip", "stabilize"), _weighting),
    "cbps": Method(_THREE, (), _balancing),
    "entropy": Method(_THREE, (), _entropy),
    "aipw": Method(_THREE, (*_NUISANCES, "clip"), partial(_doubly_robust, targeted=False)),
    "tmle": Method(_THREE, (*_NUISANCES, "clip"), partial(_doubly_robust, targeted=True)),
    "dml": Method(("ate",), _NUISANCES, _partially_linear, numeric=True),
}
METHODS["causal_forest"] = Method(
    ("cate",),
    (*_NUISANCES, "clip", "n_estimators", "min_samples_leaf"),
    partial(_meta_learner, learner="forest"),
)
_FINAL = ("effect_model",)
METHODS |= {
    f"{letter}_learner": Method(
        ("cate",),
        (*_NUISANCES, "clip", *(_FINAL if letter in ("x", "r", "dr") else ())),
        partial(_meta_learner, learner=letter),
    )
    for letter in LEARNERS
}
