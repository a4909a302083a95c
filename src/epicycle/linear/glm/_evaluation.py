"""Evaluation of a fitted generalized linear model on rows: linear predictor, deviances, residuals.

With r = y - mu, weights w and dispersion phi the residuals are: Pearson r sqrt(w / V(mu)); deviance
sign(r) sqrt(w d(y, mu)); working r g'(mu); Anscombe, which is nearly normal; and quantile residuals Phi^-1(F(y)), which
are exactly normal under the model (Dunn and Smyth 1996), with a random point within the step of F for discrete
responses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream
from epicycle.data import Batch, Data, Scan, as_data
from epicycle.linear.glm._design import Design
from epicycle.linear.glm._fit import null_model
from epicycle.linear.glm._inputs import Predictor, Rows, Target, coded, gather, is_raw, offset_of, open_rows
from epicycle.linear.glm._objective import GlmObjective
from epicycle.linear.glm._response import Response, response_of
from epicycle.linear.glm._statistics import Model
from epicycle.optim._penalties import ElasticNet
from epicycle.stats._class_scores import linear_predictor
from epicycle.stats._family import StandardFamily
from epicycle.stats.families import Multinomial

Array = np.ndarray

KINDS = ("response", "pearson", "deviance", "working", "anscombe", "quantile")


def row_residuals(kind: str, response: Response, rows: Rows, eta: Array, phi: float, rng: np.random.Generator) -> Array:
    """One residual for each row, given its linear predictor."""
    y, weight, family = rows.y, rows.weights, response.family
    mu = response.mean(eta)
    left = y - mu
    if kind == "response":
        return left
    if kind == "pearson":
        return left * np.sqrt(weight / family.variance(mu))
    if kind == "deviance":
        return np.sign(left) * np.sqrt(weight * family.unit_deviance(y, mu))
    if kind == "working":
        return left / response.link.derivatives(eta)[0]
    if not isinstance(family, StandardFamily):
        raise ParameterError(f"kind={kind!r}: the family {family.name!r} of the user does not say its distribution")
    if kind == "anscombe":
        return np.asarray(family.anscombe(y, mu) * np.sqrt(weight))
    trials = np.ones(len(y)) if rows.trials is None else rows.trials
    own = weight if rows.trials is None else np.where(trials > 0, weight / np.maximum(trials, 1e-300), 0.0)
    below, above = family.distribution(y, mu, phi / np.where(own > 0, own, np.nan), trials)
    p = below + rng.random(len(y)) * (above - below)
    return np.asarray(ndtri(np.clip(p, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)))


def mean(eta: Array, response: Response) -> Array:
    """The mean of the response at the linear predictor, in its type; refused where the link has none."""
    low, high = response.link.domain
    outside = np.flatnonzero(((eta <= low) & np.isfinite(low)) | ((eta >= high) & np.isfinite(high)))
    if len(outside):
        first, name = outside[0], response.link.name
        raise DataError(
            f"X: the linear predictor of {len(outside)} of {len(eta)} rows is not between {low:g} and {high:g}, where "
            f"link={name!r} has a mean (first in row {first}: {eta[first]:g}); leave such rows out, or fit with a link "
            "that takes all numbers, such as 'log'"
        )
    with np.errstate(over="ignore"):
        return response.mean(eta).astype(eta.dtype, copy=False)


def _design(model: Any, *, raw: bool) -> Design:
    ignore = model.handle_unknown == "ignore"
    return Design(model.n_features_in_, model.categories_, drop=model._drop_, raw=raw, ignore_unknown=ignore)


def _coefficients(model: Any) -> tuple[Array, float]:
    """Coefficients in the order of work, and the intercept."""
    w = np.empty_like(model.coef_)
    w[_design(model, raw=False).reported()] = model.coef_
    return w, float(model.intercept_)


def predict_linear(model: Any, X: Any, offset: Any, exposure: Any) -> Any:
    """The linear predictor of rows of any source, offsets among it."""
    if isinstance(model.family_, Multinomial):
        return linear_predictor(model._predict_data(X), model.coef_, model.intercept_, model.n_jobs)
    link, name = response_of(model.family_, model._link()).link.name, type(model).__name__
    if exposure is not None and link != "log":
        raise ParameterError(f"exposure: is for link='log'; the link is {link!r}")
    w, b = _coefficients(model)
    if isinstance(X, Scan) and (offset is not None or exposure is not None):
        bare = Scan(X.tables, X.columns, (), X.weight, False, X.batch_rows)
        given = gather(bare, None, offset, exposure, Target(model.family_), name)
        data = as_data(given.X, target="numeric", multi_output=True, estimator_name=name)
        model._check_features(given.X, data, reset=False)
        return Predictor(_design(model, raw=True), w, b)(data, given.target, model.n_jobs)
    extra = offset_of(X, offset, exposure)
    ignore = model.handle_unknown == "ignore"
    data = model._predict_data(coded(X, model.categories_, ignore_unknown=ignore, estimator_name=name))
    eta = Predictor(_design(model, raw=is_raw(X)), w, b)(data, None, model.n_jobs)
    return eta if extra is None else eta + extra


def open_fitted(
    model: Any, X: Any, y: Any, sample_weight: Any, offset: Any, exposure: Any
) -> tuple[Data, Target, Design]:
    """Checked rows with their responses, and how the fitted model reads them."""
    model._check_fitted()
    name, ignore = type(model).__name__, model.handle_unknown == "ignore"
    if isinstance(model.family_, Multinomial):
        raise ParameterError("family='multinomial': this is not defined for labels")
    raw = is_raw(X)
    X = coded(X, model.categories_, ignore_unknown=ignore, estimator_name=name)
    data, target = open_rows(X, y, sample_weight, offset, exposure, Target(model.family_), name)
    if not isinstance(X, Scan) or data.n_features == model.n_features_in_:
        model._check_features(X if not isinstance(X, Scan) else data, data, reset=False)
    return data, target, _design(model, raw=raw)


def objective_on(model: Any, data: Data, target: Target, design: Design) -> tuple[GlmObjective, float]:
    """The unpenalised objective on other rows, and its null deviance."""
    response = response_of(model.family_, model._link())
    null = null_model(data, target, response, intercept=False, n_jobs=model.n_jobs)
    nothing = np.zeros(design.size)
    rows = Model(response, target, design, np.zeros(design.n_dense))
    penalty = ElasticNet(nothing, nothing)
    objective = GlmObjective(data, rows, penalty, intercept=True, totals=null.totals, n_jobs=model.n_jobs)
    return objective, null.deviance


def deviances(model: Any, data: Data, target: Target, design: Design) -> tuple[float, float]:
    """Deviance of the model and of the null model on rows."""
    objective, null = objective_on(model, data, target, design)
    w, b = _coefficients(model)
    return 2 * objective.totals.weight * objective.value(np.append(w.astype(np.float64), b)), null


def residuals(model: Any, data: Data, target: Target, design: Design, kind: str, seed: int) -> Any:
    """Residuals of all rows; `seed` is that of the randomised ones."""
    w, b = _coefficients(model)
    phi = model.dispersion_ if model.family_.dispersion is None else 1.0
    rows = Model(response_of(model.family_, model._link()), target, design, np.zeros(design.n_dense))
    return engine.map(_residual_batch, data, rows, w, b, kind, phi, seed, n_jobs=model.n_jobs)


def _residual_batch(batch: Batch, model: Model, w: Array, b: float, kind: str, phi: float, seed: int) -> Array:
    rows = model.target.rows(batch)
    eta = model.design.predictor(batch.X, w.astype(np.float64)) + b
    if rows.offset is not None:
        eta = eta + rows.offset
    return row_residuals(kind, model.response, rows, eta, phi, stream(seed, batch.start))
