"""The distance of a stochastic solution from the minimum: a bound from weak duality, in two passes over the rows.

For  F(w, b) = sum_i v_i l(w'x_i + b, y_i) / V + R(w)  with  R(w) = l2/2 |w|^2 + l1 |w|_1,  V = sum_i v_i  and any
numbers a_i (with sum_i v_i a_i = 0 where there is an intercept)

    min F  >=  - sum_i v_i l*(a_i, y_i) / V - R*(- sum_i v_i a_i x_i / V)

    R*(u) = sum_j max(|u_j| - l1, 0)^2 / (2 l2).

The one-class machine adds nu b to F; its a_i lie in [-1, 0], and sum_i v_i a_i = -nu V takes the place of balance.

Two choices of a are tried and the better bound counts: the derivatives of the losses at the solution, and their means
over all epochs. For steps 1 / (alpha t) on losses with kinks it is the mean that belongs to the coefficients.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.data import Batch, Data
from epicycle.linear.online._learner import Rule, row_targets
from epicycle.optim._likelihoods import Logistic
from epicycle.optim._losses import loss_by_name

#: Means of derivatives may leave the domain of l* by rounding, where l* is infinite; any multiple of a in [0, 1] is
#: as good a dual point.
INSIDE = 1 - 1e-12


@np.errstate(over="ignore", invalid="ignore")  # what overflows bounds nothing
def suboptimality(
    data: Data,
    rule: Rule,
    W: np.ndarray,
    b: np.ndarray,
    positive: np.ndarray | None,
    factors: np.ndarray | None,
    dual: np.ndarray | None,
) -> tuple[float, float]:
    """(F(W, b) over all models, a bound on how far it is above its minimum; inf without an L2 penalty)."""
    given = partial(_row_terms, rule=rule, W=W, b=b, positive=positive, factors=factors)
    value, lower = math.nan, np.full(len(b), -math.inf)
    for mean in (None,) if dual is None else (None, dual):
        total, losses, above, below = engine.sum(partial(_balance_statistic, terms=given, dual=mean), data)
        value = float(losses.sum() / total + rule.penalty(W, b))
        if not rule.l2 > 0:
            return value, math.inf
        shift = 0.0
        if rule.intercept and rule.pull:  # towards 0 or towards -1, until the sum is right
            wanted = rule.pull * total
            shift = float(np.maximum(wanted - below, 0.0)[0] / max(total - below[0], 1e-300))
            scale = (np.ones(1), np.divide(wanted, below, out=np.ones(1), where=below > wanted))
        elif rule.intercept:  # the heavier side is scaled down until both balance, towards 0, where l* is finite
            balance = np.minimum(above, below)
            scale = tuple(np.divide(balance, side, out=np.zeros_like(side), where=side > 0) for side in (above, below))
        else:
            scale = (np.ones(len(b)), np.ones(len(b)))
        statistic = partial(_dual_statistic, terms=given, dual=mean, scale=scale, shift=shift)
        conjugates, gradient, sums = engine.sum(statistic, data)
        fixed = b * (sums / total + rule.pull)  # of an intercept that is not learnt; zero otherwise
        excess = np.maximum(np.abs(gradient) / total - rule.l1, 0.0)
        bound = fixed - conjugates / total - np.square(excess).sum(axis=0) / (2 * rule.l2)
        lower = np.maximum(lower, bound)
    gap = max(value - float(lower.sum()), 0.0)
    return value, gap if math.isfinite(gap) else math.inf


def _row_terms(
    batch: Batch,
    dual: np.ndarray | None,
    *,
    rule: Rule,
    W: np.ndarray,
    b: np.ndarray,
    positive: np.ndarray | None,
    factors: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weights, targets, losses and the dual candidates of the rows of a batch, (n, 1) and (n, K)."""
    codes = row_targets(batch)
    v = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    if factors is not None:
        v = v * factors[codes.astype(np.intp)]
    loss = loss_by_name(rule.loss, rule.epsilon)
    other = 0.0 if isinstance(loss, Logistic) else -1.0  # the code of the rows that are not positive
    y = codes[:, None] if positive is None else np.where(codes[:, None] == positive, 1.0, other)
    z = np.asarray(batch.X @ W.T, dtype=np.float64) + b
    slopes = loss.gradient(z, y) if dual is None else dual[batch.start : batch.start + batch.n_rows]
    return v[:, None], y, loss.value(z, y), slopes


def _balance_statistic(batch: Batch, terms: Any, dual: np.ndarray | None) -> tuple[float, np.ndarray, Any, Any]:
    v, _, losses, a = terms(batch, dual)
    va = v * a
    return float(v.sum()), (v * losses).sum(axis=0), np.maximum(va, 0).sum(axis=0), np.maximum(-va, 0).sum(axis=0)


def _dual_statistic(
    batch: Batch, terms: Any, dual: np.ndarray | None, scale: tuple[np.ndarray, np.ndarray], shift: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    v, y, _, a = terms(batch, dual)
    rule = terms.keywords["rule"]
    a = np.where(a > 0, a * scale[0], a * scale[1])
    a = np.clip(a - shift * (1.0 + a), -1.0, 0.0) if rule.pull else a * INSIDE
    conjugates = loss_by_name(rule.loss, rule.epsilon).conjugate(a, y)
    return (v * conjugates).sum(axis=0), np.asarray(batch.X.T @ (v * a)), (v * a).sum(axis=0)
