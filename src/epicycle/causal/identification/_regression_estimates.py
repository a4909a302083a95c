"""Estimates without tables: regression or weighting for adjustment sets, regression for the front door.

Adjustment for z:   m_x = mean of mu(x, z_i)  or  mean of y_i 1[x_i = x] / pi(x | z_i), weights scaled to add up to n,
                    influence mu(x, z) - m_x + 1[x_i = x] (y - mu(x, z)) / pi(x | z).
Front door by m:    eta(m) = sum_x' P(x') mu(x', m),   m_x = mean of eta(m_i) over the rows with x_i = x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from epicycle.causal.identification._columns import encoded
from epicycle.core._exceptions import DataError

Array = np.ndarray
#: A treatment with more values is not one that arms can be made of.
MOST_ARMS = 20


@dataclass(frozen=True)
class Models:
    """Models of the outcome and of the treatment, not fitted."""

    regressor: Any
    classifier: Any


@dataclass(frozen=True)
class Arms:
    """A treatment with few values, an outcome, and what is adjusted for or mediates."""

    levels: Array
    arm: Array
    y: Array
    Z: Array
    v: Array  # weights of the rows

    def rows(self, chosen: Array) -> Arms:
        return Arms(self.levels, self.arm[chosen], self.y[chosen], self.Z[chosen], self.v[chosen])


def arms_of(columns: dict[str, Array], treatment: str, y: Array, others: tuple[str, ...], v: Array) -> Arms:
    """Rows by value of the treatment."""
    levels, arm = np.unique(columns[treatment], return_inverse=True)
    if len(levels) > MOST_ARMS:
        raise DataError(
            f"data[{treatment!r}]: {len(levels)} values; expected at most {MOST_ARMS}, group them or fit a "
            "StructuralCausalModel"
        )
    return Arms(levels, arm.ravel(), y, encoded(columns, others), v)


def outcome_models(data: Arms, regressor: Any) -> Array:
    """mu(x, z_i) for every x, (n, K), one regression for each arm."""
    out = np.empty((len(data.y), len(data.levels)))
    for k in range(len(data.levels)):
        inside = (data.arm == k) & (data.v > 0)
        if not inside.any():
            out[:, k] = np.nan
        elif data.Z.shape[1] == 0:
            out[:, k] = np.average(data.y[inside], weights=data.v[inside])
        else:
            fitted = clone(regressor).fit(data.Z[inside], data.y[inside], sample_weight=data.v[inside])
            out[:, k] = fitted.predict(data.Z)
    return out


def propensities(data: Arms, classifier: Any) -> Array:
    """pi(x | z_i), (n, K)."""
    share = np.bincount(data.arm, data.v, minlength=len(data.levels)) / data.v.sum()
    if data.Z.shape[1] == 0:
        return np.tile(share, (len(data.y), 1))
    out = np.zeros((len(data.y), len(data.levels)))
    model = clone(classifier).fit(data.Z, data.arm, sample_weight=data.v)
    out[:, model.classes_.astype(int)] = model.predict_proba(data.Z)
    return out


def by_regression(data: Arms, models: Models) -> Array:
    """Means of the predictions under each value of the treatment."""
    return np.asarray(np.average(outcome_models(data, models.regressor), axis=0, weights=data.v))


def by_weighting(data: Arms, models: Models) -> Array:
    """Weighted means of each arm."""
    pi = propensities(data, models.classifier)
    weight = data.v[:, None] * (data.arm[:, None] == np.arange(len(data.levels))) / np.maximum(pi, 1e-12)
    with np.errstate(invalid="ignore"):
        return np.asarray((weight * data.y[:, None]).sum(axis=0) / weight.sum(axis=0))


def influence(data: Arms, models: Models) -> Array:
    """The efficient influence of each row on the means, (n, K)."""
    mu, pi = outcome_models(data, models.regressor), propensities(data, models.classifier)
    inside = data.arm[:, None] == np.arange(len(data.levels))
    return np.asarray(
        mu - np.average(mu, axis=0, weights=data.v) + inside * (data.y[:, None] - mu) / np.maximum(pi, 1e-12)
    )


def by_front_door(data: Arms, models: Models) -> Array:
    """Means through mediators."""
    share = np.bincount(data.arm, data.v, minlength=len(data.levels)) / data.v.sum()
    eta = outcome_models(data, models.regressor)[:, share > 0] @ share[share > 0]
    arms = [data.arm == k for k in range(len(data.levels))]
    return np.array([np.average(eta[a], weights=data.v[a]) if p else np.nan for a, p in zip(arms, share, strict=True)])
