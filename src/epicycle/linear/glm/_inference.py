"""Inference of generalized linear models: statistics of a fit, the summary, tests between nested models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.stats

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.data import ArrayData
from epicycle.linear.glm._design import Design
from epicycle.linear.glm._evaluation import deviances, objective_on, open_fitted
from epicycle.linear.glm._fit import Fit
from epicycle.linear.glm._inputs import Target, open_rows
from epicycle.linear.glm._statistics import saturated_statistic
from epicycle.linear.logistic._inference import class_tables
from epicycle.linear.logistic._objective import inverse_factor
from epicycle.stats._family import StandardFamily
from epicycle.stats._power_families import Gaussian
from epicycle.stats._summary import Summary, wald_summary
from epicycle.stats.families import Multinomial

Array = np.ndarray

# --------------------------------------------------------------------------------------------------------------------
# Statistics of the fit as a whole: dispersion, likelihood, information criteria, covariance.


@dataclass(frozen=True)
class Statistics:
    """Numbers about a fit as a whole; attributes of the estimator, each with an underscore."""

    deviance: float
    null_deviance: float
    n_observations: int
    effective_parameters: float
    residual_degrees: float
    pearson_dispersion: float
    deviance_dispersion: float
    dispersion: float
    log_likelihood: float
    aic: float
    bic: float


def statistics_of(fitted: Fit, dispersion: str | float) -> Statistics:
    """All numbers; `dispersion` says how phi is estimated, or what it is."""
    objective, solution = fitted.objective, fitted.solution
    x, V, n = solution.x, objective.totals.weight, int(objective.totals.rows)
    penalty = float(objective.l1 @ np.abs(x)) + 0.5 * float(objective.l2 @ (x * x))
    deviance = 2 * V * max(solution.value - penalty, 0.0)
    chi_square = objective.pearson_at(x)
    parameters = effective_parameters(fitted)
    degrees = n - parameters
    pearson = chi_square / degrees if degrees > 0 else np.nan
    by_deviance = deviance / degrees if degrees > 0 else np.nan
    known = fitted.response.family.dispersion
    if isinstance(dispersion, str):
        phi = {"pearson": pearson, "deviance": by_deviance, "auto": pearson if known is None else known}[dispersion]
    else:
        phi = float(dispersion)
    likelihood = _log_likelihood(fitted, deviance, phi, n)
    return Statistics(
        deviance=deviance,
        null_deviance=fitted.null.deviance,
        n_observations=n,
        effective_parameters=parameters,
        residual_degrees=degrees,
        pearson_dispersion=pearson,
        deviance_dispersion=by_deviance,
        dispersion=phi,
        log_likelihood=likelihood,
        aic=-2 * likelihood + 2 * parameters,
        bic=-2 * likelihood + float(np.log(n)) * parameters,
    )


def effective_parameters(fitted: Fit) -> float:
    """The rank of the design; with an L2 penalty tr((H + penalty)^-1 H); with an L1 term over the support."""
    objective = fitted.objective
    second = objective.last_second
    x = fitted.solution.x
    chosen = np.flatnonzero((x != 0) | (objective.l1 == 0))
    if second is None or not len(chosen):
        return float(len(chosen))
    whole = len(chosen) == len(second.H)
    half, _, _ = second.factor if whole else inverse_factor(second.H[np.ix_(chosen, chosen)])
    return float(half.shape[1] - objective.l2[chosen] @ np.square(half).sum(axis=1))


def _log_likelihood(fitted: Fit, deviance: float, phi: float, n: int) -> float:
    objective, response = fitted.objective, fitted.response
    family = response.family
    if isinstance(family, Gaussian) and response.native == 0:
        phi = deviance / n  # the likelihood is largest there
    elif isinstance(family, StandardFamily) and family.dispersion is not None:
        phi = family.dispersion
    if not (np.isfinite(phi) and phi > 0):
        return np.nan
    data, target = objective.data, objective.model.target
    if isinstance(data, ArrayData):  # at once: some likelihoods are tabulated first
        (saturated,) = saturated_statistic(data.rows(0, data.n_rows), target, response, phi)
    else:
        (saturated,) = engine.sum(saturated_statistic, data, target, response, phi, n_jobs=objective.n_jobs)
    return float(saturated) - deviance / (2 * phi)


def covariance_of(fitted: Fit, information: Array) -> Array | None:
    """The inverse of the information, for (w, b) with b at the origin of X; None where it is singular."""
    scale = np.sqrt(np.diagonal(information))
    if not (scale > 0).all():
        return None
    try:
        factor = scipy.linalg.cho_factor(information / scale / scale[:, None], lower=True)
    except scipy.linalg.LinAlgError:
        return None
    covariance = scipy.linalg.cho_solve(factor, np.eye(len(scale))) / scale / scale[:, None]
    if fitted.objective.intercept:  # from b at the shift to b at the origin
        back = np.eye(len(scale))
        shift = fitted.objective.model.shift
        back[-1, : len(shift)] = -shift
        covariance = back @ covariance @ back.T
    return np.asarray(covariance)


# --------------------------------------------------------------------------------------------------------------------
# The table of coefficients.


def summarise(model: Any, confidence: float) -> Summary:
    """Coefficients with their standard errors where the fit has them, and the reason where it has none."""
    title = f"Generalized linear model, {model.family_.name} family, {model.link_} link, {model._penalty_line()}"
    if isinstance(model.family_, Multinomial):
        return _summarise_classes(model, confidence, title)
    intercept = float(model.intercept_) if model.fit_intercept else None
    if hasattr(model, "_covariance_") and np.isfinite(model.dispersion_):
        facts = {
            "deviance": model.deviance_,
            "null deviance": model.null_deviance_,
            "dispersion": model.dispersion_,
            "log-likelihood": model.log_likelihood_,
            "AIC": model.aic_,
        }
        estimated = model.dispersion in ("pearson", "deviance") or (
            model.dispersion == "auto" and model.family_.dispersion is None
        )
        return wald_summary(
            model.coefficient_names_,
            model.coef_,
            intercept,
            model.dispersion_ * model._covariance_,
            confidence=confidence,
            title=title,
            facts=facts,
            degrees_of_freedom=model.residual_degrees_ if estimated else None,
        )
    why = _why_no_errors(model)
    b = None if intercept is None else np.array([intercept])
    return Summary.of_coefficients(model.coefficient_names_, model.coef_[None, :], b, ["y"], title, why)


def _summarise_classes(model: Any, confidence: float, title: str) -> Summary:
    """The log-odds of every class against the first, with standard errors where the fit has them."""
    b = model.intercept_ if model.fit_intercept else None
    names = model._names()
    if not hasattr(model, "_covariance_"):
        return Summary.of_coefficients(
            names, model.coef_, b, [str(c) for c in model.classes_], title, _why_no_errors(model)
        )
    coef = model.coef_
    if len(model.classes_) == 2:  # coefficients of opposite sign: their difference are the log-odds
        coef, b = coef[1:] - coef[:1], None if b is None else b[1:] - b[:1]
    facts = {name: getattr(model, f"{name}_") for name in ("deviance", "null_deviance", "log_likelihood", "aic")}
    return class_tables(
        names, model.classes_, coef, b, model._covariance_, confidence=confidence, title=title, facts=facts, note=""
    )


def _why_no_errors(model: Any) -> str:
    if model.alpha > 0:
        return f"penalised ({model._penalty_line()}): naive standard errors do not hold; use alpha=0 for inference"
    if not model.converged_:
        return "the fit did not converge"
    return "the columns depend on each other, or are too many for the rows: standard errors do not exist"


# --------------------------------------------------------------------------------------------------------------------
# Tests between nested models: likelihood ratio (or F) and score.
#
# Under the smaller model, q parameters fewer, (D_small - D_big) / phi is chi-square with q degrees of freedom; where
# phi is estimated, divided by q it is nearly F with q and n - p degrees. The score test needs the smaller fit alone:
# with U the gradient and I the information of the larger model there, U'I^-1 U / phi is chi-square with q degrees too.


@dataclass(frozen=True)
class TestResult:
    """A test statistic, its degrees of freedom and its p-value.

    kind : "likelihood ratio", "F" or "score".
    statistic : float
    degrees : number of parameters that the smaller model lacks.
    residual_degrees : of the larger model, for F; nan otherwise.
    p_value : float
    """

    __test__ = False  # not a test of ours, whatever its name says

    kind: str
    statistic: float
    degrees: float
    residual_degrees: float
    p_value: float

    def __str__(self) -> str:
        law = "chi2" if np.isnan(self.residual_degrees) else "F"
        inside = f"{self.degrees:g}" if law == "chi2" else f"{self.degrees:g}, {self.residual_degrees:g}"
        return f"{self.kind} test: {law}({inside}) = {self.statistic:.4g}, p = {self.p_value:.4g}"


def _likelihood_ratio(small: float, big: float, q: float, phi: float | None, by: float, degrees: float) -> TestResult:
    """From two deviances; with phi known chi-square, else F with the dispersion `by` of the larger model."""
    if not q > 0:
        raise DataError(f"small: the models differ by {q:g} parameters; expected a smaller model first")
    if small < big - 1e-6 * abs(big):
        raise DataError(
            f"small: its deviance {small:g} is below that of the larger model, {big:g}: it is not nested in it"
        )
    fall = max(small - big, 0.0)
    if phi is not None:
        return TestResult("likelihood ratio", fall / phi, q, np.nan, float(scipy.stats.chi2.sf(fall / phi, q)))
    F = fall / q / by
    return TestResult("F", F, q, degrees, float(scipy.stats.f.sf(F, q, degrees)))


def _score(U: Array, information: Array, tested: Array, phi: float) -> TestResult:
    """From gradient and information of the larger model at the smaller one's optimum."""
    unit = 1 / np.sqrt(np.where(np.diagonal(information) > 0, np.diagonal(information), 1.0))
    S, v = information * unit * unit[:, None], U * unit
    values, Q = scipy.linalg.eigh(S)
    kept = values > 8 * len(values) * np.finfo(float).eps * values[-1]
    rest = np.setdiff1d(np.arange(len(U)), tested)
    base = scipy.linalg.eigvalsh(S[np.ix_(rest, rest)]) if len(rest) else np.empty(0)
    rank = int((base > 8 * max(len(base), 1) * np.finfo(float).eps * base.max(initial=0.0)).sum())
    statistic = float(np.sum(np.square(Q.T @ v)[kept] / values[kept])) / phi
    q = float(kept.sum() - rank)
    if not q > 0:
        raise DataError("X: the added columns say nothing new: they depend on those of the model")
    return TestResult("score", statistic, q, np.nan, float(scipy.stats.chi2.sf(statistic, q)))


def likelihood_ratio_test(
    model: Any, small: Any, X: Any, y: Any, sample_weight: Any, offset: Any, exposure: Any
) -> TestResult:
    """The smaller model against the larger one, both fitted to these rows without a penalty."""
    _check_unpenalised(model, small)
    values = []
    for fitted in (small, model):
        part = X if fitted is model else _columns_of(X, small)
        values.append(deviances(fitted, *open_fitted(fitted, part, y, sample_weight, offset, exposure))[0])
        if abs(values[-1] - fitted.deviance_) > 1e-6 * max(abs(fitted.deviance_), 1e-300):
            which = "small" if fitted is small else "the model"
            there, here = fitted.deviance_, values[-1]
            raise DataError(f"X, y: {which} was fitted to other rows: its deviance is {there:g} there, {here:g} here")
    q = model.effective_parameters_ - small.effective_parameters_
    known, asked = model.family_.dispersion, model.dispersion
    phi = known if asked == "auto" else asked if not isinstance(asked, str) else None
    return _likelihood_ratio(values[0], values[1], q, phi, model.dispersion_, model.residual_degrees_)


def score_test(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any, exposure: Any) -> TestResult:
    """The columns of X that the model does not have, tested without fitting the larger model."""
    _check_unpenalised(model, model)
    if model.categories_:
        raise ParameterError("score_test: the model has columns of categories; expected dense or sparse columns")
    own, n_columns = _positions(X, model)
    data, target = open_rows(X, y, sample_weight, offset, exposure, Target(model.family_), type(model).__name__)
    objective, _ = objective_on(model, data, target, Design(n_columns))
    x = np.zeros(n_columns + 1)
    x[own], x[-1] = model.coef_, model.intercept_
    V = objective.totals.weight
    _, g = objective.value_and_gradient(x)
    information = objective.information(x)
    keep = np.arange(n_columns + model.fit_intercept)
    tested = np.setdiff1d(np.arange(n_columns), own)
    if len(tested) == 0:
        raise DataError("X: has no column besides those of the model; expected some to test")
    return _score(V * g[keep], information[np.ix_(keep, keep)], tested, model.dispersion_)


def _check_unpenalised(model: Any, small: Any) -> None:
    if not (hasattr(small, "penalty_weights") and hasattr(small, "family")):
        raise ParameterTypeError(f"small: expected a fitted model of this class, got {type(small).__name__}")
    for fitted in (model, small):
        fitted._check_fitted()
        if fitted.alpha > 0 or isinstance(fitted.family_, Multinomial):
            raise ParameterError("tests between models need unpenalised fits (alpha=0) of one response")
    if model.family_ != small.family_ or model.link_ != small.link_:
        raise ParameterError(f"small: its family is {small.family_!r}, this model's {model.family_!r}")


def _positions(X: Any, model: Any) -> tuple[Array, int]:
    """Positions of the columns of a model in X, and the number of columns of X."""
    names = getattr(model, "feature_names_in_", None)
    if hasattr(X, "columns") and names is not None:
        have = [str(c) for c in X.columns]
        missing = [n for n in names if n not in have]
        if missing:
            raise DataError(f"X: has no column {missing[0]!r}, which the smaller model has")
        return np.array([have.index(n) for n in names]), len(have)
    p = int(np.shape(X)[1]) if not hasattr(X, "shape") else int(X.shape[1])
    if model.n_features_in_ > p:
        raise DataError(f"X: has {p} columns, the smaller model {model.n_features_in_}")
    return np.arange(model.n_features_in_), p


def _columns_of(X: Any, model: Any) -> Any:
    """The columns of a smaller model."""
    at, p = _positions(X, model)
    if len(at) == p and (at == np.arange(p)).all():
        return X
    if hasattr(X, "columns"):
        return X[[X.columns[j] for j in at]]
    return X[:, : len(at)] if hasattr(X, "shape") else np.asarray(X)[:, : len(at)]
