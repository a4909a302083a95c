"""The multiclass machine of Crammer and Singer, by descent on its dual, row by row, for rows in memory.

    P(theta) = sum_k |theta_k|^2 / 2 + C sum_i v_i max_k ([k != y_i] + z_ik - z_iy),   z_ik = theta_k'(x_i, s),
    D(alpha) = -sum_k |theta_k(alpha)|^2 / 2 + sum_i alpha_iy,   theta_k(alpha) = sum_i alpha_ik (x_i, s),

with alpha_iy <= C v_i, alpha_ik <= 0 for the other classes, and sum_k alpha_ik = 0. All classes are fitted together: a
row counts by how far the best of the other classes comes within a margin of one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicycle import _native, engine
from epicycle.core._monitor import Monitor
from epicycle.data import ArrayData, Batch
from epicycle.svm.linear._dual_descent import ACTIVE, DUAL, GAP, KEPT, VALUE, WORST
from epicycle.svm.linear._problem import MarginProblem, Optimum

#: Passes over the rows in one iteration: a pass is short, and some thousands of them are usual.
PASSES = 20


def joint_loss_statistic(batch: Batch, problem: MarginProblem, theta: np.ndarray) -> tuple[float]:
    """The sum of max_k ([k != y] + z_k) - z_y over the rows, without C."""
    W, b = problem.split(theta)
    G = np.asarray(batch.X @ W.T, dtype=np.float64) + b
    rows, y = np.arange(len(G)), np.asarray(batch.y).astype(np.intp)
    own = G[rows, y].copy()
    G += 1.0
    G[rows, y] = own
    losses = G.max(axis=1, initial=-np.inf) - own
    weight = problem.weights(batch)
    return (float(losses.sum() if weight is None else weight @ losses),)


def joint_optimum(data: ArrayData, problem: MarginProblem, theta: np.ndarray, dual: float) -> Optimum:
    """P at theta (K, p + 1), and its distance from a dual value."""
    (loss,) = engine.sum(joint_loss_statistic, data, problem, theta, n_jobs=1)
    primal = 0.5 * float(np.vdot(theta, theta)) + problem.C * loss
    return Optimum(theta, primal, max(primal - dual, 0.0))


def joint_descent(
    data: ArrayData,
    problem: MarginProblem,
    *,
    tol: float,
    max_iter: int,
    seed: int,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
) -> tuple[Optimum, str, dict[str, Any]]:
    """Descend until the relative gap is at most tol: (optimum, why it ended, state to go on from)."""
    X: Any = data.X
    n, p, K, s = data.n_rows, data.n_features, problem.n_problems, problem.scale
    weight = problem.weights(data.rows(0, n))
    bound = np.full(n, problem.C) if weight is None else problem.C * weight
    square = _native.core.row_squares(X) + s**2
    y = np.asarray(data.y).astype(np.int64)
    alpha = np.zeros((n, K))
    flat = (square <= 0) & (bound > 0)  # a row of zeros has a margin of zero whatever theta is
    alpha[flat, y[flat]] = bound[flat]
    alpha[flat, (y[flat] + 1) % K] = -bound[flat]
    W = np.zeros((p + 1, K))
    order = np.flatnonzero((bound > 0) & ~flat).astype(np.int64)
    number = np.array([float(len(order)), np.inf, float(bound[flat].sum())])
    passes, target = 0, tol
    if state is not None:
        alpha[:], W[:], order[:], number[:] = state["alpha"], state["W"], state["order"], state["number"]
        passes, target, seed = int(state["passes"]), float(state["target"]), int(state["seed"])

    def snapshot() -> dict[str, Any]:
        arrays = {"alpha": alpha.copy(), "W": W.copy(), "order": order.copy(), "number": number.copy()}
        return {**arrays, "passes": passes, "target": target, "seed": seed}

    def measured() -> Optimum:
        W[:p], W[p] = np.asarray(X.T @ alpha), s * alpha.sum(axis=0)
        number[DUAL] = float(alpha[np.arange(n), y].sum()) - 0.5 * float(np.vdot(W, W))
        number[ACTIVE], number[WORST] = float(len(order)), np.inf  # all rows are visited again
        return joint_optimum(data, problem, np.ascontiguousarray(W.T), float(number[DUAL]))

    optimum, stopped, done, report = None, False, passes // PASSES, np.zeros((PASSES, 4))
    while done < max_iter and not stopped:
        ahead = _native.svm.Passes(seed, passes, target, report)
        made = _native.svm.crammer_singer_passes(X, y, bound, square, s, alpha, W, order, number, ahead)
        passes += PASSES  # the streams of random numbers go by iterations, whole or not
        done += 1
        gap, value, kept = report[made - 1, [GAP, VALUE, KEPT]]
        ratio = gap / max(value + gap, 1e-300)
        if ratio <= target or number[ACTIVE] == 0:
            optimum = measured()
            gap, value = optimum.gap, optimum.primal - optimum.gap
            target = 0.7 * min(target, ratio)
        facts = {"gap": gap / max(value + gap, 1e-300), "rows": float(kept)}
        stopped = monitor(done, W.T.ravel(), objective=value + gap, state=snapshot, **facts)
        if optimum is not None and optimum.relative <= tol:
            return optimum, "stopped" if stopped else "converged", snapshot()
    return measured(), "stopped" if stopped else "max_iter", snapshot()
