"""Gradient of the likelihood of a linear Gaussian state-space model, and its maximum by limited-memory BFGS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle import optim
from epicycle.control.filters._kalman_em import (
    Fitted,
    Moments,
    learn,
    moments,
    n_observed,
    start_square,
)
from epicycle.core._exceptions import DataError

if TYPE_CHECKING:
    from epicycle.control.filters._kalman_filter import KalmanFilter

Array = np.ndarray
_COVARIANCES = ("W", "V", "covariance")
_EM_STEPS = 20  # before the gradient: they bring any start near enough for BFGS


def score(model: KalmanFilter, m: Moments, names: tuple[str, ...]) -> dict[str, Array]:
    """Expected derivatives of the log-density of states and observations."""
    found: dict[str, Array] = {}
    rooms = (("A", "B", "b", "W", m.dynamics), ("C", "D", "d", "V", m.observation))
    for slope, controls, constant, noise, regression in rooms:
        if not {slope, controls, constant, noise} & set(names):
            continue
        M, precision = getattr(model, slope), _inverse(noise, getattr(model, noise))
        found[slope] = precision @ (regression.yx - M @ regression.xx)
        found[noise] = _of_covariance(precision, regression.square(M), regression.count)
        response = precision @ regression.response(M)
        found[constant], found[controls] = response[:, 0], response[:, 1:]
    if {"mean", "covariance"} & set(names):
        precision = _inverse("covariance", model.covariance)
        found["mean"] = precision @ np.sum([x - model.mean for x, _ in m.starts], axis=0)
        found["covariance"] = _of_covariance(precision, start_square(model.mean, m), len(m.starts))
    return {name: found[name] for name in names}


def _of_covariance(precision: Array, square: Array, count: int) -> Array:
    """Derivative of -count/2 log|M| - 1/2 trace(M^-1 square)."""
    G = 0.5 * (precision @ square @ precision - count * precision)
    return np.asarray((G + G.T) / 2)


def _inverse(name: str, M: Array) -> Array:
    values, vectors = np.linalg.eigh(M)
    if values[0] <= 1e-14 * values[-1]:
        raise DataError(
            f"{name}: it is singular (smallest eigenvalue {values[0]:g}), and the likelihood has no derivative there; "
            "expected a positive definite matrix, or other parameters"
        )
    return np.asarray((vectors / values) @ vectors.T)


def climb(
    model: KalmanFilter,
    series: list[Any],
    controls: list[Any],
    names: tuple[str, ...],
    max_iter: int,
    tol: float,
    n_jobs: int | None = None,
) -> Fitted:
    """Some steps of EM, then BFGS over the parameters, covariances by their triangular roots."""
    count = n_observed(series)
    first = learn(model, series, controls, names, min(_EM_STEPS, max_iter), tol, n_jobs)
    values, model = list(first.values), first.model
    start = _pack(model, names)

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        try:
            trial = model.with_parameters(**_unpack(model, names, x))
            found = moments(trial, series, controls, n_jobs)
            G = score(trial, found, names)
        except (DataError, np.linalg.LinAlgError):
            return np.inf, np.zeros_like(x)  # a singular covariance, or a series that the model cannot have given
        return -found.value / count, -_pack_gradient(trial, names, G, x) / count

    objective = optim.FunctionObjective(value_and_gradient, len(start))
    solution = optim.solve("lbfgs", objective, start, tol=tol, max_iter=max_iter)
    values += (-count * solution.history["objective"]).tolist()
    size = float(np.abs(value_and_gradient(solution.x)[1]).max())
    meaning = "no derivative of the log-likelihood is larger for each observation: a stationary point"
    return Fitted(model.with_parameters(**_unpack(model, names, solution.x)), values, size, meaning)


def _pack(model: KalmanFilter, names: tuple[str, ...]) -> Array:
    parts = []
    for name in names:
        M = getattr(model, name)
        parts.append(np.linalg.cholesky(M)[np.tril_indices(len(M))] if name in _COVARIANCES else M.ravel())
    return np.concatenate(parts)


def _unpack(model: KalmanFilter, names: tuple[str, ...], x: Array) -> dict[str, Array]:
    found, at = {}, 0
    for name in names:
        like = getattr(model, name)
        if name in _COVARIANCES:
            L, place = np.zeros_like(like), np.tril_indices(len(like))
            L[place] = x[at : at + len(place[0])]
            found[name], at = L @ L.T, at + len(place[0])
        else:
            found[name], at = x[at : at + like.size].reshape(like.shape), at + like.size
    return found


def _pack_gradient(model: KalmanFilter, names: tuple[str, ...], G: dict[str, Array], x: Array) -> Array:
    """With M = L L' and dF = trace(G dM) it is dF = trace((2 G L)' dL)."""
    parts, at = [], 0
    for name in names:
        like = getattr(model, name)
        if name in _COVARIANCES:
            L, place = np.zeros_like(like), np.tril_indices(len(like))
            L[place] = x[at : at + len(place[0])]
            parts.append((2 * G[name] @ L)[place])
            at += len(place[0])
        else:
            parts.append(G[name].ravel())
            at += like.size
    return np.concatenate(parts)
