"""The multinomial family: labels, the softmax of one linear predictor for each class, by the logistic machinery."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data import Batch, as_data
from epicycle.linear._scikit_learn import GLM_SOLVERS
from epicycle.linear.logistic._inference import inference
from epicycle.linear.logistic._objective import LogisticObjective, far_shift
from epicycle.linear.logistic._separation import examine_separation
from epicycle.linear.logistic._solve import minimise
from epicycle.stats._class_scores import log_probabilities, probabilities
from epicycle.stats._labels import codes, encode_labels
from epicycle.stats.families import Multinomial

Array = np.ndarray


def fit_multinomial(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any, exposure: Any) -> None:
    """Fit a :class:`GeneralizedLinearModel` with labels; two classes have two rows of coefficients of opposite sign."""
    for name, value in (("offset", offset), ("exposure", exposure)):
        if value is not None:
            raise ParameterError(f"{name}: is for responses that are numbers; family='multinomial' takes none")
    if model.alpha > 0 and (model.l1_ratio > 0 or model.penalty_weights is not None):
        raise ParameterError("family='multinomial' has an L2 penalty alone: expected l1_ratio=0, no penalty_weights")
    if model.link not in ("auto", "canonical", "logit"):
        raise ParameterError(f"link={model.link!r}: family='multinomial' has the (canonical) 'logit' link alone")
    data = model._fit_data(X, y, sample_weight, target="labels")
    model.classes_, totals, data = encode_labels(data, type(model).__name__, model.n_jobs)
    V, K = float(totals.sum()), len(model.classes_)
    # The mean of losses plus alpha/2 |W|^2, times V. Two classes: w and -w share the penalty, 2 * alpha/2 |w/2|^2.
    penalty = model.alpha * V * (0.5 if K == 2 else 1.0)
    objective = LogisticObjective(
        data,
        K,
        penalty,
        intercept=model.fit_intercept,
        shift=far_shift(data) if model.fit_intercept else np.zeros(data.n_features),
        n_jobs=model.n_jobs,
    )
    n = int(engine.sum(_count, data, n_jobs=model.n_jobs)[0])

    def attributes(x: Array) -> dict[str, Any]:
        params = objective.matrix(x)
        params = np.vstack([-params, params]) / 2 if K == 2 else params - params.mean(axis=0)
        W, b = params[:, :-1], params[:, -1] - params[:, :-1] @ objective.shift
        return {
            "coef_": W.astype(data.dtype),
            "intercept_": b.astype(data.dtype),
            "classes_": model.classes_,
            "family_": Multinomial(),
            "link_": "logit",
            "categories_": {},
            "coefficient_names_": model._names(),
            "_drop_": False,
        }

    solution = minimise(
        objective,
        {"irls": "newton", **GLM_SOLVERS}.get(model.solver, model.solver),
        tol=model.tol,
        max_iter=model.max_iter,
        monitor=model._monitor(model.max_iter, attributes),
        state=model._resume_state(),
        options=model.solver_options or {},
        random_state=model.random_state,
    )
    if model.alpha == 0 and (separated := examine_separation(objective, solution, model._names())):
        certificate = Certificate("separation", np.inf, model.tol, separated)
        solution = replace(solution, certificate=certificate, reason="separated", message=separated)
    elif model.alpha == 0:
        solution, found = inference(objective, solution)
        if found is not None:
            model._covariance_ = found.covariance
    for name, value in attributes(solution.x).items():
        setattr(model, name, value)
    loss = solution.value - penalty / 2 * float(np.square(objective.matrix(solution.x)[:, :-1]).sum())
    share = totals / V
    q = float((K - 1) * (data.n_features + model.fit_intercept))
    values = {
        "deviance": 2 * loss,
        "null_deviance": -2 * float(totals @ np.log(share)),
        "n_observations": n,
        "effective_parameters": q,
        "residual_degrees": n * (K - 1) - q,
        "dispersion": 1.0,
        "pearson_dispersion": np.nan,
        "deviance_dispersion": np.nan,
        "log_likelihood": -loss,
        "aic": 2 * loss + 2 * q,
        "bic": 2 * loss + float(np.log(n)) * q,
    }
    for name, value in values.items():
        setattr(model, f"{name}_", value)
    model._conclude(solution)


def _count(batch: Batch) -> tuple[int]:
    return (batch.n_rows if batch.weight is None else int(np.count_nonzero(batch.weight)),)


def multinomial_mean(scores: Any) -> Any:
    """Probabilities from linear predictors, in memory or of a Dask array."""
    if isinstance(scores, np.ndarray):
        return probabilities(scores)
    return scores.map_blocks(probabilities, dtype=scores.dtype)


def multinomial_deviances(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
    """Deviance of the model on labelled rows, and that of the shares of the classes."""
    data = as_data(X, y, sample_weight, target="labels", estimator_name=type(model).__name__)
    model._check_features(X, data, reset=False)
    args = (model.coef_.astype(np.float64), model.intercept_.astype(np.float64), model.classes_)
    loss, totals = engine.sum(_loss, data, *args, n_jobs=model.n_jobs)
    share = totals / totals.sum()
    return 2 * loss, -2 * float(np.sum(totals[share > 0] * np.log(share[share > 0])))


def _loss(batch: Batch, coef: Array, intercept: Array, classes: Array) -> tuple[float, Array]:
    own = codes(np.asarray(batch.y), labels=classes)
    if not np.array_equal(classes[own], batch.y):
        raise DataError(f"y: has labels that the fit did not see; it saw {classes.tolist()[:10]}")
    scores = np.asarray(batch.X @ coef.T) + intercept
    losses = -log_probabilities(scores)[np.arange(len(own)), own]
    weight = np.ones(len(own)) if batch.weight is None else batch.weight
    return float(weight @ losses), np.bincount(own, weights=weight, minlength=len(classes)).astype(np.float64)
