"""The objective of a linear model as a function of parameters, whoever found them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.class_weight import compute_class_weight

from epicycle.core._exceptions import ParameterError
from epicycle.linear import ElasticNet, Lasso, LinearRegression, LogisticRegression, QuantileRegressor, Ridge

__all__ = ["objective_of"]

Objective = Callable[[Any], float]


def objective_of(model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Objective | None:
    """J(other) = the objective that `model` minimises at the coefficients of `other`; None where it is not known.

    The letters are those of the classes' documentation: weights v, coefficients w, intercept b.
    """
    v = np.ones(len(y)) if weight is None else weight
    kind = type(model)
    if kind is LogisticRegression:
        return _logistic(model, X, y, v)
    if kind is LinearRegression:
        return lambda other: 0.5 * _squares(other, X, y, v)
    if kind is Ridge and model.penalty_matrix is None and np.ndim(model.alpha) == 0:
        factors = 1.0 if model.penalty_weights is None else np.asarray(model.penalty_weights)
        return lambda other: 0.5 * (_squares(other, X, y, v) + model.alpha * float((factors * _coef(other) ** 2).sum()))
    if kind in (Lasso, ElasticNet) and getattr(model, "bound", None) is None:
        ratio = 1.0 if kind is Lasso else float(model.l1_ratio)
        f = 1.0 if getattr(model, "penalty_weights", None) is None else np.asarray(model.penalty_weights)

        def sparse(other: Any) -> float:
            w = _coef(other)
            penalty = float((f * (ratio * np.abs(w) + (1 - ratio) / 2 * w**2)).sum())
            return _squares(other, X, y, v) / (2 * float(v.sum())) + float(model.alpha) * penalty

        return sparse
    if kind is QuantileRegressor:

        def pinball(other: Any) -> float:
            r, tau = y - _linear(other, X), float(model.quantile)
            loss = np.maximum(tau * r, (tau - 1) * r)
            return float(v @ loss / v.sum()) + float(model.alpha) * float(np.abs(_coef(other)).sum())

        return pinball
    return None


def _logistic(model: Any, X: Any, y: np.ndarray, v: np.ndarray) -> Objective:
    classes = np.asarray(model.classes_)
    codes = np.searchsorted(classes, y)
    if (codes >= len(classes)).any() or (classes[np.minimum(codes, len(classes) - 1)] != y).any():
        raise ParameterError("y: has labels that model_a was not fitted to")
    if model.class_weight is not None:
        v = v * compute_class_weight(model.class_weight, classes=classes, y=y, sample_weight=v)[codes]
    strength = 0.0 if np.isinf(model.C) else 1.0 / float(model.C)
    ratio = float(model.l1_ratio or 0.0)

    def loss(other: Any) -> float:
        z = _linear(other, X)
        if z.ndim == 1 or z.shape[1] == 1:
            z = np.column_stack([np.zeros(len(y)), z.reshape(-1)])
        if z.shape[1] != len(classes):
            raise ParameterError(f"model_b: coefficients for {z.shape[1]} classes; model_a has {len(classes)}")
        w = _coef(other)
        likelihood = float(v @ (logsumexp(z, axis=1) - z[np.arange(len(y)), codes]))
        return likelihood + strength * float((ratio * np.abs(w) + (1 - ratio) / 2 * w**2).sum())

    return loss


def _coef(other: Any) -> np.ndarray:
    if not hasattr(other, "coef_"):
        raise ParameterError(
            f"model_b: {type(other).__name__} has no coef_ to put into the objective; give a callable objective(model)"
        )
    return np.asarray(other.coef_, dtype=np.float64)


def _linear(other: Any, X: Any) -> np.ndarray:
    w = _coef(other)
    rows = X if hasattr(X, "dtype") else np.asarray(X)
    if w.shape[-1] != rows.shape[1]:
        raise ParameterError(f"model_b: {w.shape[-1]} coefficients; X has {rows.shape[1]} features")
    return np.asarray(rows @ w.T) + np.asarray(getattr(other, "intercept_", 0.0))


def _squares(other: Any, X: Any, y: np.ndarray, v: np.ndarray) -> float:
    return float(v @ (y - np.reshape(_linear(other, X), len(y))) ** 2)
