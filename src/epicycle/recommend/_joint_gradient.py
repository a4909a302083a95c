"""The joint objective of all factors and biases as a function of one vector, for L-BFGS and stochastic gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epicycle import _native, optim
from epicycle.core._certificate import Certificate
from epicycle.core._monitor import Monitor
from epicycle.core._random import stream
from epicycle.core._solution import Solution
from epicycle.recommend._alternating import MemoryEquations, Model, _ratio, _state, gradient_certificate
from epicycle.recommend._ratings import Ratings

Array = np.ndarray

#: Entries of a pass between two looks for Ctrl-C.
_PIECE = 1 << 20
#: Passes after which the steps of stochastic gradients are half as long as at first: rate_t = rate / (1 + t / 10).
_HALVING = 10


class JointObjective(optim.Objective):
    """F of alternating least squares, as a function of all parameters at once."""

    lower_bound = 0.0
    capabilities = frozenset({"metric"})

    def __init__(self, equations: MemoryEquations, model: Model) -> None:
        self.equations, self.model, self.size = equations, model, len(model.flat)
        # Gradients are measured like those of alternating least squares, by the right-hand sides at the start.
        self.scale = 0.0
        for side in (0, 1):
            trial = replace(model, flat=model.flat.copy())
            trial.side(side)[:] = 0
            self.scale = math.hypot(self.scale, float(np.linalg.norm(equations.loss(trial, side)[1])))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """F and its gradient, by users and by items."""
        at = replace(self.model, flat=x)
        value, of_users = self.equations.objective(at, 0)
        of_items = self.equations.objective(at, 1)[1]
        return value, np.concatenate([of_users.ravel(), of_items.ravel()])

    def metric(self) -> optim.Metric:
        """The diagonal of the Hessian for partners as large as those of the start."""
        squares = []
        for side in (0, 1):
            penalty, e = self.equations.penalties[side], self.equations.entries[side]
            count = np.diff(e.start).astype(np.float64)
            if e.curvature is not None:
                sums = np.concatenate([[0.0], np.cumsum(e.curvature)])
                count = sums[e.start[1:]] - sums[e.start[:-1]]
            k = self.model.k
            spread = float(np.mean(self.model.side(1 - side)[:, :k] ** 2)) if k else 0.0
            of_factor = (penalty.scale * penalty.factor + count * spread)[:, None]
            columns = [np.tile(of_factor, (1, k)), (penalty.bias + count)[:, None]]
            squares.append(np.hstack(columns if self.model.bias else columns[:1]).ravel())
        return optim.Metric.of_diagonal(np.concatenate(squares))

    def certify(self, x: Array, tol: float, value: float | None = None, gradient: Array | None = None) -> Certificate:
        """The norm of the gradient, relative to the right-hand sides of the regressions."""
        if gradient is None:
            gradient = self.value_and_gradient(x)[1]
        return gradient_certificate(_ratio(float(np.linalg.norm(gradient)), self.scale), tol)


def descend(
    ratings: Ratings,
    target: Array,
    equations: MemoryEquations,
    model: Model,
    *,
    rate: float,
    seed: int,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
) -> Solution:
    """Passes of stochastic gradients over the ratings in a new order each, on one thread."""
    objective = JointObjective(equations, model)
    n_iter = 0
    if state is not None:
        model.flat[:] = state["flat"]
        n_iter = int(state["n_iter"])
    of_users, of_items = _shares(ratings.user, equations, 0), _shares(ratings.item, equations, 1)
    reason, value, certificate = "max_iter", math.nan, gradient_certificate(math.inf, tol)
    while n_iter < max_iter:
        order = stream(seed, "pass", n_iter).permutation(len(target))
        step = rate / (1 + n_iter / _HALVING)
        n_iter += 1
        for lo in range(0, len(order), _PIECE):
            _native.recommend.sgd_pass(
                order[lo : lo + _PIECE],
                ratings.user,
                ratings.item,
                target,
                ratings.weight,
                of_users,
                of_items,
                step,
                model.users,
                model.items,
                model.bias,
            )
        value, gradient = objective.value_and_gradient(model.flat)
        certificate = objective.certify(model.flat, tol, value, gradient)
        stop = monitor(
            n_iter,
            model.flat,
            objective=value,
            gradient=certificate.value,
            state=partial(_state, model.flat.copy(), n_iter),
        )
        if certificate.holds or stop or not math.isfinite(value):
            reason = "converged" if certificate.holds else "stopped" if math.isfinite(value) else "diverged"
            break
    return Solution(model.flat, value, monitor.history(), certificate, n_iter, reason, state=_state(model.flat, n_iter))


def _shares(codes: Array, equations: MemoryEquations, side: int) -> Array:
    """The share of one entry in the penalties of its row, of factors and of the bias."""
    penalty = equations.penalties[side]
    count = np.maximum(np.bincount(codes, minlength=len(penalty.scale)), 1)
    return np.column_stack([penalty.factor * penalty.scale / count, penalty.bias / count])
