"""Predictions of Gaussian process regression in the units of the targets: of the posterior, before fit of the prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError, NotFittedError
from epicycle.core._parameters import check_parameters
from epicycle.data import ArrayData
from epicycle.gp._posterior import predict_batch, predict_rows
from epicycle.kernels._prepared import as_rows, as_texts

_NONE = np.empty((0, 0))


@dataclass(frozen=True)
class Outcome:
    """Means in the units of the targets, variances and covariance on the scale of the likelihood.

    means : (n, t)
    variance : (n,), covariance : (n, n), each where it was asked for
    scale : (t,), the unit of the targets
    vector : whether there is a single target, without an axis of its own
    dtype : float32 where the rows are
    """

    means: np.ndarray
    variance: np.ndarray
    covariance: np.ndarray
    scale: np.ndarray
    vector: bool
    dtype: np.dtype[Any]

    def shaped(self, values: Any, axis: int = 1) -> Any:
        """Values of all targets, without their axis where there is one target only."""
        return (values[(slice(None),) * axis + (0,)] if self.vector else values).astype(self.dtype)


def outcome_of(model: Any, X: Any, *, joint: bool, variance: bool = False) -> Outcome:
    """Predictions of a regressor for the rows of X: of each by itself, or of all jointly."""
    if not is_fitted(model):
        return _prior(model, X, joint)
    posterior, scale, centre, vector = model._posterior(), model._y_scale_, model._y_centre_, model._vector_
    data: Any = None
    if model.kernel_.takes == "strings":
        rows: Any = as_texts(X, "X", type(model).__name__)
    else:
        data = model._predict_data(X)
        rows = data.X if isinstance(data, ArrayData) else None
    dtype = _dtype_of(rows)
    if joint:
        A = posterior.kernel.prepare(_joint_rows(model, rows), like=posterior.B)
        model._require(A.n_rows, 3.0)
        covariance = posterior.covariance(A, rows)
        means, spread = posterior.means(A, rows), np.maximum(np.diagonal(covariance), 0.0)
        return Outcome(means * scale + centre, spread, covariance, scale, vector, dtype)
    if data is None:
        found = predict_rows(rows, posterior, variance=variance)
    else:
        found = engine.map(predict_batch, data, posterior, variance, n_jobs=model.n_jobs)
    means, spread = (found[:, :-1], found[:, -1]) if variance else (found, _NONE)
    return Outcome(means * scale + centre, spread, _NONE, scale, vector, dtype)


def _joint_rows(model: Any, rows: Any) -> Any:
    """The rows, where a covariance of all of them can be had."""
    if rows is None:
        raise DataError("X: a joint covariance needs all rows in memory; collect them first")
    if model.kernel_.takes == "precomputed":
        raise DataError(
            "X: a joint covariance needs the kernel among the new rows, which a precomputed one does not have"
        )
    return rows


def _prior(model: Any, X: Any, joint: bool) -> Outcome:
    check_parameters(model, model._parameters)
    kernel = model._named_kernel(None)
    if kernel.takes == "precomputed" or model.mean != "zero":
        raise NotFittedError(
            f"GaussianProcessRegressor: kernel={model.kernel!r:.40} with mean={model.mean!r:.40} has no prior before "
            "fit; call 'fit' first"
        )
    rows = as_rows(X, kernel, "X")
    A = kernel.prepare(rows)
    covariance = _NONE
    if joint:
        model._require(A.n_rows, 3.0)
        whole = kernel.whole_matrix(A)
        covariance = kernel.block(A, A) if whole is None else whole
    t = model.n_targets or 1
    variance = np.asarray(kernel.prepared_diagonal(A))
    return Outcome(np.zeros((A.n_rows, t)), variance, covariance, np.ones(t), t == 1, _dtype_of(rows))


def _dtype_of(rows: Any) -> np.dtype[Any]:
    """float32 where the rows are."""
    return np.dtype(np.float32 if getattr(rows, "dtype", None) == np.float32 else np.float64)


def is_fitted(model: Any) -> bool:
    return hasattr(model, "theta_")


def new_noise(model: Any) -> float:
    """Noise variance of a new observation, on the scale of the likelihood."""
    known = float(model.alpha) if model.alpha is not None and np.ndim(model.alpha) == 0 else 0.0
    if is_fitted(model):
        return float(model._noise_ + known + model.jitter_)
    if isinstance(model.noise, str):
        raise NotFittedError("GaussianProcessRegressor: noise=\"auto\" is known after fit only; call 'fit' first")
    return float(model.noise) + known
