"""What a fit says about itself as statistics: dispersion, likelihood, information criteria, covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle import engine
from epicycle.data import ArrayData
from epicycle.linear.glm._fit import Fit
from epicycle.linear.glm._statistics import saturated_statistic
from epicycle.linear.logistic._objective import inverse_factor
from epicycle.stats.families import Gaussian, StandardFamily

__all__ = ["Statistics", "covariance_of", "statistics_of"]

Array = np.ndarray


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
    return covariance
