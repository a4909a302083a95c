"""Sums over rows of a generalized linear model: each function maps a batch to its terms.

Losses, gradients and Hessians are weighted sums over rows, neither divided by the total weight nor penalised. The
gradient is in (w, b); of the Hessian the lower triangle is filled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.data import Batch
from epicycle.linear.glm._design import Design
from epicycle.linear.glm._inputs import Rows, Target
from epicycle.linear.glm._response import Response, Terms
from epicycle.linear.logistic._statistics import Largest
from epicycle.stats._family import StandardFamily

Array = np.ndarray
Sums = tuple[float, float, Largest, Largest, Array, Array]


@dataclass(frozen=True)
class Model:
    """The model that every pass evaluates."""

    response: Response
    target: Target
    design: Design
    shift: Array


def predictor(batch: Batch, model: Model, rows: Rows, w: Array, b: float) -> Array:
    """eta of every row, its offset among it."""
    eta = model.design.predictor(batch.X, w).astype(np.float64, copy=False)
    eta = eta + (b - float(model.shift @ w[: model.design.n_dense]))
    return eta if rows.offset is None else eta + rows.offset


# ------------------------------------------------------------------------------------------------ X, y


def row_statistic(
    batch: Batch, model: Model, w: Array, b: float, metric: Array | None, expected: bool, hessian: bool
) -> Sums:
    """(loss, Pearson's statistic, least curvature negated, longest row in the metric, gradient, Hessian or nothing)."""
    rows, response, X = model.target.rows(batch), model.response, batch.X
    parts = model.design.parts(X)
    if response.native is None:
        return _in_python(batch, parts, model, rows, w, b, metric, expected, hessian)
    family = _native.glm.Family(kind=response.native, a=response.a, b=response.b, expected=expected)
    loss, pearson, least, reach, g, H = _native.glm.evaluate(
        *parts, rows.y, rows.weight, rows.offset, model.shift, w, b, metric, family, hessian
    )
    return loss, pearson, Largest(-least), Largest(reach), g, H


def _in_python(
    batch: Batch,
    parts: tuple[Any, Any],
    model: Model,
    rows: Rows,
    w: Array,
    b: float,
    metric: Array | None,
    expected: bool,
    hessian: bool,
) -> Sums:
    terms, weight = _terms(batch, model, rows, w, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        loss = float(weight @ terms.loss) if len(weight) else 0.0
        pearson = float(np.sum(np.where(terms.e > 0, weight * np.square(terms.r) / terms.e, 0.0)))
    r, h = weight * terms.r, weight * (terms.e if expected else terms.h)
    used = weight > 0
    least = float(h[used].min(initial=np.inf))
    if not np.isfinite(loss):
        size = model.design.size + 1
        return (
            np.inf,
            np.nan,
            Largest(0.0),
            Largest(np.inf),
            np.full(size, np.nan),
            np.full((size * hessian,) * 2, np.nan),
        )
    g, H, reach = _add_up(parts, model, r, h if hessian else None, metric)
    return loss, pearson, Largest(-least), Largest(reach), g, H


def _terms(batch: Batch, model: Model, rows: Rows, w: Array, b: float) -> tuple[Terms, Array]:
    """The terms of every row and its weight; rows of no weight add nothing, whatever they hold."""
    terms, weight = model.response.terms(rows.y, predictor(batch, model, rows, w, b)), rows.weights
    gone = weight == 0
    if gone.any():
        fields = (np.where(gone, 0.0, value) for value in (terms.loss, terms.r, terms.h, terms.e))
        terms = Terms(*fields)
    return terms, weight


def _add_up(parts: tuple[Any, Any], model: Model, r: Array, h: Any, metric: Array | None) -> tuple[Array, Array, float]:
    """sum_i r_i x_i and sum_i h_i x_i x_i'; curvatures below zero are added up apart."""
    kernel, head = _native.glm.accumulate, (*parts, model.shift)
    below = h is not None and bool((h < 0).any())
    positive = np.maximum(h, 0.0) if below else h
    _, _, _, reach, g, H = kernel(*head, np.ascontiguousarray(r), positive, metric)
    if below:
        H = H - kernel(*head, np.zeros(len(r)), np.maximum(-h, 0.0), None)[5]
    return g, H, reach


def second_statistic(batch: Batch, model: Model, w: Array, b: float, columns: Array) -> tuple[Array]:
    """The Hessian of the loss over some coefficients and the intercept, in full: of working sets."""
    rows = model.target.rows(batch)
    terms, weight = _terms(batch, model, rows, w, b)
    h = weight * terms.h
    X = np.empty((batch.n_rows, len(columns) + 1), order="F")
    X[:, :-1] = model.design.columns(batch.X, columns)
    dense = columns < model.design.n_dense
    X[:, :-1][:, dense] -= model.shift[columns[dense]]
    X[:, -1] = 1.0
    return (X.T @ (X * h[:, None]),)


def diagonal_statistic(batch: Batch, model: Model, w: Array, b: float) -> tuple[Array, Array, Largest]:
    """sum_i h_i (x_ij, 1) and sum_i h_i (x_ij^2, 1), and the least h_i of a row of positive weight, negated."""
    rows, design = model.target.rows(batch), model.design
    terms, weight = _terms(batch, model, rows, w, b)
    h = weight * terms.h
    least = Largest(-float(h[weight > 0].min(initial=np.inf)))
    X = batch.X
    if sp.issparse(X):
        return np.append(X.T @ h, h.sum()), np.append(X.multiply(X).T @ h, h.sum()), least
    dense, codes = design.split(X)
    centred = dense - model.shift
    first, second = [h @ centred], [np.einsum("ij,ij,i->j", centred, centred, h)]
    for c, (count, skip) in enumerate(zip(design.counts, design.skip, strict=True)):
        own = codes[:, c].astype(np.intp)
        sums = np.bincount(own[own >= 0], weights=h[own >= 0], minlength=count)[skip:]
        first.append(sums)
        second.append(sums)
    total = np.array([h.sum()])
    return np.concatenate([*first, total]), np.concatenate([*second, total]), least


def floor_statistic(batch: Batch, model: Model, w: Array, b: float, radius: float, reach: float) -> tuple[Largest]:
    """The least ratio of curvatures after and before a move of the parameters by `radius` in the norm of the Hessian.

    Row i moves by no more than radius / sqrt(h_i), nor than radius * reach. Gives the least ratio, negated.
    """
    rows = model.target.rows(batch)
    eta = predictor(batch, model, rows, w, b)
    terms, weight = _terms(batch, model, rows, w, b)
    h = weight * terms.h
    bends = h > 0  # where the loss is a straight line nothing can fall
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rho = radius * np.minimum(1 / np.sqrt(np.where(bends, h, 1.0)), reach)
        floor: Any = model.response.curvature_floor  # the caller has seen that there is one
        ratio = floor(rows.y, eta, rho)
    ratio = np.where(np.isfinite(ratio), ratio, 0.0)
    return (Largest(-float(ratio[bends].min(initial=1.0))),)


def recession_statistic(batch: Batch, model: Model, w: Array, b: float) -> tuple[Largest, Largest]:
    """Whether the loss of no row rises, however far one goes along (w, b).

    Gives the largest move of a row that would make its loss rise, and the largest that makes it fall for ever; for
    losses that fall to one side where the response is at the end of its range.
    """
    rows = model.target.rows(batch)
    plain = Rows(rows.y, rows.weight, None, rows.trials, rows.log_base)
    move = predictor(batch, model, plain, w, b)
    y, used = rows.y, rows.weights > 0
    falls_down = (y == 0) & (move < 0)
    falls_up = (y == 1) & (move > 0) if model.response.family.support == (0.0, 1.0) else np.zeros(len(y), bool)
    falls = (falls_down | falls_up) & used
    size = np.abs(move)
    return Largest(size[used & ~falls].max(initial=0.0)), Largest(size[falls].max(initial=0.0))


# ------------------------------------------------------------------------------------------------ y alone


def target_statistic(
    batch: Batch, target: Target, response: Response
) -> tuple[float, float, float, float, float, Largest, Largest]:
    """(rows and weight that count, sums of y, of |y| and of the loss's constant, largest y, least y negated)."""
    rows = target.rows(batch)
    y, weight = rows.y, rows.weight
    if isinstance(response.family, StandardFamily):
        response.family.check_target(y, batch.start)
    if weight is not None and not weight.all():
        used = weight > 0
        y, weight = y[used], weight[used]
    low, high = float(y.min(initial=np.inf)), float(y.max(initial=-np.inf))
    total = float(y.sum()) if weight is None else float(weight @ y)
    size = total if low >= 0 else float(np.abs(y).sum()) if weight is None else float(weight @ np.abs(y))
    constant = sum_of(response.constant, y, weight, low, high)
    amount = float(len(y)) if weight is None else float(weight.sum())
    return float(len(y)), amount, total, size, constant, Largest(high), Largest(-low)


#: Responses that are whole numbers up to this are counted, and functions of them evaluated once for each.
COUNTED = 4096


def sum_of(function: Callable[[Array], Array], y: Array, weight: Array | None, low: float, high: float) -> float:
    """sum_i w_i f(y_i), with f evaluated at the distinct values where y are small whole numbers."""
    if low >= 0 and high <= COUNTED and len(y) > COUNTED:
        whole = y.astype(np.intp)
        if np.array_equal(whole, y):
            amounts = np.bincount(whole, weights=weight)
            present = np.flatnonzero(amounts)
            return float(amounts[present] @ function(present.astype(np.float64)))
    values = function(y)
    return float(values.sum()) if weight is None else float(weight @ values)


def constant_statistic(batch: Batch, target: Target, response: Response, b: float) -> tuple[float, float, float]:
    """(loss, its derivative in b, its expected second derivative) at eta = b + offset."""
    rows = target.rows(batch)
    weight = rows.weights
    eta = np.full(len(rows.y), b) if rows.offset is None else b + rows.offset
    terms = response.terms(rows.y, eta)
    with np.errstate(invalid="ignore"):
        used = weight > 0
        sums = [float(weight[used] @ values[used]) for values in (terms.loss, terms.r, terms.e)]
    return sums[0], sums[1], sums[2]


def saturated_statistic(batch: Batch, target: Target, response: Response, phi: float) -> tuple[float]:
    """The log-likelihood of the saturated model."""
    rows = target.rows(batch)
    used = rows.weights > 0
    y, weight = rows.y[used], rows.weights[used]
    family = response.family
    if not isinstance(family, StandardFamily):
        base: Any = rows.log_base  # encoded for every family of one's own
        return (float(weight @ (base[used] + family.conjugate(y))),)
    if family.weighs_likelihood and rows.trials is None and len(y):
        one = np.ones(1)
        low, high = float(y.min()), float(y.max())
        return (sum_of(lambda v: family.log_likelihood_saturated(v, one, phi, None), y, weight, low, high),)
    trials = None if rows.trials is None else rows.trials[used]
    return (float(np.sum(family.log_likelihood_saturated(y, weight, phi, trials))),)
