r"""Alternating least squares:  minimise over the parameters x_u of users and y_i of items

    F = 1/2 sum_(u,i) a_ui (t_ui - x_u'y_i - b_u - c_i)^2 + 1/2 sum_u s_u |x_u|^2 + 1/2 sum_i s_i |y_i|^2 + ...

With one side fixed, F is a ridge regression for every row of the other, solved exactly by Cholesky's factor (or
improved by a few conjugate gradients): F never rises. At a stationary point all partial derivatives are zero; those of
the side that was solved last are, those of the other are known when its equations are next set up.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from epicycle import _native, engine
from epicycle.core._certificate import Certificate
from epicycle.core._monitor import Monitor
from epicycle.core._solution import Solution
from epicycle.data import Batch, DaskData
from epicycle.engine import n_threads
from epicycle.recommend._ratings import Entries, batch_codes

Array = np.ndarray

#: Bytes of normal equations that one pass over a cluster adds up; more rows take more passes.
_PASS_BYTES = 1 << 26


@dataclass(frozen=True)
class SidePenalty:
    """Penalties of the rows of one side: row u has scale[u] * factor on factors and `bias` on its bias."""

    factor: float
    bias: float
    scale: Array

    def vector(self, k: int, with_bias: bool) -> Array:
        return np.array([self.factor] * k + [0.0] * with_bias)

    def base(self, k: int, with_bias: bool) -> Array:
        return np.diag([0.0] * k + [self.bias] * with_bias)

    def gradient(self, x: Array, k: int) -> Array:
        g: Array = x * self.scale[:, None] * self.factor
        if x.shape[1] > k:
            g[:, k] = self.bias * x[:, k]
        return g

    def value(self, x: Array, k: int) -> float:
        return 0.5 * float(np.sum(x * self.gradient(x, k)))


@dataclass
class Model:
    """Parameters of users and items as one vector: k factors of each, and behind them the bias where there is one."""

    flat: Array
    n_users: int
    n_items: int
    k: int
    bias: bool

    @property
    def d(self) -> int:
        return self.k + self.bias

    @property
    def users(self) -> Array:
        return self.flat[: self.n_users * self.d].reshape(self.n_users, self.d)

    @property
    def items(self) -> Array:
        return self.flat[self.n_users * self.d :].reshape(self.n_items, self.d)

    def side(self, side: int) -> Array:
        return self.users if side == 0 else self.items


class Step(NamedTuple):
    """Result of a half-step, as sums over the rows of its side.

    size : squared norm of the right-hand sides.
    slope : squared norm of the gradient before the step.
    value : the objective after it, without the penalty of the other side.
    """

    size: float
    slope: float
    value: float


@dataclass
class Equations(ABC):
    """The regressions of both sides; side 0 are the users, side 1 the items.

    everywhere : whether every pair that is not listed counts as an error of weight 1 from 0, as for implicit feedback.
    constant : what the sums over the listed entries leave out of F.
    """

    penalties: tuple[SidePenalty, SidePenalty]
    everywhere: bool = field(default=False, kw_only=True)
    constant: float = field(default=0.0, kw_only=True)

    def _base(self, model: Model, side: int) -> Array:
        """The quadratic form that all rows of a side have in common."""
        base, other = self.penalties[side].base(model.k, model.bias), model.side(1 - side)
        return base + other.T @ other if self.everywhere else base

    def _added(self, model: Model, side: int, loss: float, gradient: Array) -> tuple[float, Array]:
        """The loss over the listed entries and its gradient with those of the others added."""
        loss += self.constant
        if not self.everywhere:
            return loss, gradient
        x, other = model.side(side), model.side(1 - side)
        gram = other.T @ other
        return loss + 0.5 * float(np.sum(gram * (x.T @ x))), gradient + x @ gram

    @abstractmethod
    def half_step(self, model: Model, side: int) -> Step:
        """Improve a side given the other, in place."""

    @abstractmethod
    def loss(self, model: Model, side: int) -> tuple[float, Array]:
        """F without penalties, and its gradient for a side."""

    def objective(self, model: Model, side: int = 0) -> tuple[float, Array]:
        """F, and its gradient for a side."""
        loss, gradient = self.loss(model, side)
        for s in (0, 1):
            loss += self.penalties[s].value(model.side(s), model.k)
        return loss, gradient + self.penalties[side].gradient(model.side(side), model.k)


@dataclass
class MemoryEquations(Equations):
    """Ratings in memory.

    steps : conjugate gradients in a half-step; 0 solves exactly.
    """

    entries: tuple[Entries, Entries]
    steps: int = 0
    n_jobs: int | None = None

    def _threads(self, model: Model) -> int:
        return n_threads(float(len(self.entries[0].at)) * model.d**2, self.n_jobs)

    def half_step(self, model: Model, side: int) -> Step:
        penalty, other, base = self.penalties[side], model.side(1 - side), self._base(model, side)
        e, vector = self.entries[side], penalty.vector(model.k, model.bias)
        numbers = _native.recommend.half_step(
            e.start,
            e.at,
            e.target,
            e.curvature,
            other,
            model.bias,
            base,
            vector,
            penalty.scale,
            model.side(side),
            self.steps,
            self._threads(model),
        )
        size, slope, value = numbers.sum(axis=0).tolist()
        return Step(size, slope, value + self.constant)

    def loss(self, model: Model, side: int) -> tuple[float, Array]:
        x, other, e = model.side(side), model.side(1 - side), self.entries[side]
        losses, gradient = _native.recommend.row_losses(
            e.start, e.at, e.target, e.curvature, other, model.bias, x, self._threads(model)
        )
        return self._added(model, side, float(losses.sum()), gradient)


@dataclass
class ClusterEquations(Equations):
    """Ratings in partitions of Dask: the normal equations of users and items are sums over the partitions.

    read : gives codes, targets and weights of squared errors of a batch, from the batch and `given`.
    """

    data: DaskData
    read: Callable[[Batch, Any], Listed]
    given: Any

    def _moments(self, model: Model, side: int) -> Array:
        """Second moments of (partner's factors, 1, target) for every row of the side."""
        n, D = len(model.side(side)), model.d + 1
        at_once = max(1, _PASS_BYTES // (8 * D * D))
        pieces = []
        for lo in range(0, n, at_once):
            count = min(at_once, n - lo)
            add = partial(moments, read=self.read, side=side, bias=model.bias, lo=lo, count=count)
            pieces.append(engine.sum(add, self.data, model.side(1 - side).copy(), self.given)[0])
        M = np.concatenate(pieces)
        lower = np.tril(M)
        full: Array = lower + np.tril(M, -1).transpose(0, 2, 1)
        return full

    def half_step(self, model: Model, side: int) -> Step:
        M = self._moments(model, side)
        d, penalty, x = model.d, self.penalties[side], model.side(side)
        A, b, squares = M[:, :d, :d], M[:, :d, d], M[:, d, d]
        diagonal = penalty.scale[:, None, None] * np.diag(penalty.vector(model.k, model.bias))
        A = A + diagonal + self._base(model, side)
        before = np.einsum("uij,uj->ui", A, x) - b
        x[:] = np.linalg.solve(A, b[..., None])[..., 0]
        value = 0.5 * float(np.sum(squares) - np.sum(b * x)) + self.constant
        return Step(float(np.sum(b * b)), float(np.sum(before**2)), value)

    def loss(self, model: Model, side: int) -> tuple[float, Array]:
        M = self._moments(model, side)
        d, x = model.d, model.side(side)
        Ax, b = np.einsum("uij,uj->ui", M[:, :d, :d], x), M[:, :d, d]
        loss = 0.5 * float(np.sum(M[:, d, d]) - 2 * np.sum(b * x) + np.sum(Ax * x))
        return self._added(model, side, loss, Ax - b)


class Listed(NamedTuple):
    """Listed entries of a batch: codes of users and items, targets, and weights of squared errors or None."""

    user: Array
    item: Array
    target: Array
    weight: Array | None


def explicit_entries(batch: Batch, offset: Array) -> Listed:
    """Ratings about the means of items."""
    user, item, value, weight = batch_codes(batch)
    return Listed(user, item, value - offset[item], weight)


def implicit_entries(batch: Batch, alpha: float) -> Listed:
    """Feedback by its confidence, as :func:`confidence` has it."""
    user, item, value, weight = batch_codes(batch)
    a, target, _ = confidence(value if weight is None else value * weight, alpha)
    return Listed(user, item, target, a)


def left_out(batch: Batch, alpha: float) -> tuple[float]:
    """The constant of :func:`confidence` as a statistic."""
    _, _, value, weight = batch_codes(batch)
    return (confidence(value if weight is None else value * weight, alpha)[2],)


def confidence(value: Array, alpha: float) -> tuple[Array, Array, float]:
    """Weights and targets of the squared errors of implicit feedback, and the constant that they leave out of F.

    c (p - s)^2 = s^2 + a (t - s)^2 + const with c = 1 + a and t = c p / a, where p is 1 for positive ratings. Without
    a rating a pair is like one that is not listed: a is zero.
    """
    a = alpha * np.abs(value)
    p = (value > 0) & (a > 0)
    target = np.zeros(len(a))
    target[p] = (1.0 + a[p]) / a[p]
    return a, target, -0.5 * float(np.sum(target[p]))


def moments(
    batch: Batch,
    other: Array,
    given: Any,
    read: Callable[[Batch, Any], Listed],
    side: int,
    bias: bool,
    lo: int,
    count: int,
) -> tuple[Array]:
    """The statistic of :class:`ClusterEquations` for `count` rows from `lo` on."""
    user, item, target, weight = read(batch, given)
    own, at = (user, item) if side == 0 else (item, user)
    D = other.shape[1] + 1
    out = np.zeros((count, D, D))
    _native.recommend.add_moments(own, at, target, weight, other, bias, lo, out)
    return (out,)


def alternate(
    equations: Equations,
    model: Model,
    *,
    exact: bool,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
) -> Solution:
    """Rounds of two half-steps until the gradient is small, relative to the right-hand sides of the regressions.

    The gradient before a round costs nothing. Where it is small, or was before the last round, the gradient after the
    round is measured for both sides, and if it is too large not again before a tenth more rounds.
    """
    n_iter, next_look = 0, 0
    if state is not None:
        model.flat[:] = state["flat"]
        n_iter = int(state["n_iter"])
    reason, value, relative = "max_iter", math.nan, math.inf
    while n_iter < max_iter:
        n_iter += 1
        users, items = equations.half_step(model, 0), equations.half_step(model, 1)
        scale = math.sqrt(users.size + items.size)
        value = items.value + equations.penalties[0].value(model.users, model.k)
        before = _ratio(math.sqrt(users.slope + (0.0 if exact else items.slope)), scale)
        stop = monitor(
            n_iter, model.flat, objective=value, gradient=before, state=partial(_state, model.flat.copy(), n_iter)
        )
        if not math.isfinite(value):
            reason = "diverged"
            break
        if (before <= tol and n_iter >= next_look) or stop or n_iter == max_iter:
            relative = _ratio(measured_gradient(equations, model), scale)
            if relative <= tol:
                reason = "converged"
                break
            next_look = n_iter + 1 + n_iter // 10
        if stop:
            reason = "stopped"
            break
    certificate = gradient_certificate(relative, tol)
    return Solution(model.flat, value, monitor.history(), certificate, n_iter, reason, state=_state(model.flat, n_iter))


def measured_gradient(equations: Equations, model: Model) -> float:
    """The norm of the gradient for all parameters, by a pass for each side."""
    return math.hypot(*(float(np.linalg.norm(equations.objective(model, side)[1])) for side in (0, 1)))


def _state(flat: Array, n_iter: int) -> dict[str, Any]:
    return {"flat": flat, "n_iter": n_iter}


def _ratio(norm: float, scale: float) -> float:
    if norm == 0:
        return 0.0
    # of norms that overflow nothing is known
    return norm / scale if 0 < scale < math.inf and not math.isnan(norm) else math.inf


def gradient_certificate(relative: float, tol: float) -> Certificate:
    """Certificate from the norm of the joint gradient."""
    return Certificate(
        "gradient norm",
        relative,
        tol,
        f"the gradient for all factors and biases is {relative:.1e} of the right-hand sides of their regressions",
    )
