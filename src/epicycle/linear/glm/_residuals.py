"""Residuals of every kind, for rows of any source.

With r = y - mu, weights w and dispersion phi: Pearson r sqrt(w / V(mu)); deviance sign(r) sqrt(w d(y, mu)); working
r g'(mu); Anscombe, which is nearly normal; and quantile residuals Phi^-1(F(y)), which are exactly normal under the
model (Dunn and Smyth 1996), with a random point within the step of F for discrete responses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from epicycle.core._exceptions import ParameterError
from epicycle.linear.glm._response import Response
from epicycle.linear.glm._targets import Rows
from epicycle.stats.families import StandardFamily

__all__ = ["KINDS", "residuals"]

Array = NDArray[np.float64]

KINDS = ("response", "pearson", "deviance", "working", "anscombe", "quantile")


def residuals(kind: str, response: Response, rows: Rows, eta: Array, phi: float, rng: np.random.Generator) -> Array:
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
        return family.anscombe(y, mu) * np.sqrt(weight)
    trials = np.ones(len(y)) if rows.trials is None else rows.trials
    own = weight if rows.trials is None else np.where(trials > 0, weight / np.maximum(trials, 1e-300), 0.0)
    below, above = family.distribution(y, mu, phi / np.where(own > 0, own, np.nan), trials)
    p = below + rng.random(len(y)) * (above - below)
    return np.asarray(ndtri(np.clip(p, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)))
