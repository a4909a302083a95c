"""The best constant of every leaf for the loss itself, as first-order boosting asks for.

A leaf takes the v that minimises sum_i w_i L(y_i, s_i + v) + l2/2 v^2 over its rows. All leaves are solved at once by
Newton's method between bounds that the sign of the derivative tightens; where Newton would leave them, or has not
halved the derivative, the middle is taken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epicycle.tree._ensemble import GrownTree
from epicycle.tree.boosting._losses import Loss, UserLoss, weighted_quantile

__all__ = ["newton_values", "optimal_values", "quantile_values"]

TOLERANCE = 1e-6  # of the sum of |gradients|, which are in single precision
FARTHEST = 4.0  # a leaf of one class has its optimum at infinity, and beyond this nothing is left to gain
STEPS = 100


def quantile_values(
    tree: GrownTree, order: np.ndarray, residual: np.ndarray, weight: np.ndarray | None, tau: float
) -> np.ndarray:
    """The quantile of the residuals in every leaf."""
    value = tree.value.copy()
    for leaf in tree.leaves:
        rows = order[tree.begin[leaf] : tree.end[leaf]]
        value[leaf] = weighted_quantile(residual[rows], None if weight is None else weight[rows], tau)
    return value


def optimal_values(
    tree: GrownTree,
    order: np.ndarray,
    loss: Loss | UserLoss,
    y: np.ndarray,
    weight: np.ndarray | None,
    score: np.ndarray,
    k: int,
    l2: float,
    threads: int,
) -> np.ndarray:
    """Values of the nodes for output k of scores (K, n); rows of leaf l are order[begin[l]:end[l]]."""
    leaves = tree.leaves
    which = np.empty(len(order), np.intp)
    for number, leaf in enumerate(leaves):
        which[tree.begin[leaf] : tree.end[leaf]] = number
    y, weight = y[order], None if weight is None else weight[order]
    at = np.ascontiguousarray(score[:, order])
    start = at[k].copy()
    gh = np.empty((len(at), len(order), 2), np.float32)

    def derivatives(v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        at[k] = start + v[which]
        loss.evaluate(y, weight, at, gh, threads)
        g, h = gh[k, :, 0].astype(np.float64), gh[k, :, 1].astype(np.float64)
        total = [np.bincount(which, part, minlength=len(leaves)) for part in (g, h, np.abs(g))]
        return total[0] + l2 * v, total[1] + l2, total[2]

    value = np.zeros(len(tree.left))
    value[leaves] = newton_values(derivatives, len(leaves), bounded=loss.bounded_steps)
    return value


def newton_values(
    derivatives: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]], n_leaves: int, *, bounded: bool
) -> np.ndarray:
    """The values at which the first derivative of every leaf is zero.

    `derivatives` gives for values of all leaves the sums of gradients and curvatures, and of the |gradients|.
    """
    v = np.zeros(n_leaves)
    bound = FARTHEST if bounded else np.finfo(float).max / 4
    low, high = np.full(n_leaves, -bound), np.full(n_leaves, bound)
    reach = 1.0  # of a step where there is no curvature to tell
    G, H, scale = derivatives(v)
    for _ in range(STEPS):
        low, high = np.where(G < 0, v, low), np.where(G > 0, v, high)
        done = (np.abs(G) <= TOLERANCE * scale) | (high - low <= 1e-12 * np.abs(v))
        if done.all():
            break
        step = np.divide(-G, H, out=np.where(G < 0, reach, -reach), where=H > 0)
        tried = v + step
        tried = np.where((tried <= low) | (tried >= high), (low + high) / 2, tried)
        before, v, reach = np.abs(G), np.where(done, v, tried), 2 * reach
        G, H, _ = derivatives(v)
        # A curvature that only bounds the true one makes short steps: the middle of the bracket, where there is one.
        low, high = np.where(G < 0, v, low), np.where(G > 0, v, high)
        slow = ~done & (np.abs(G) > before / 2) & (high - low < bound)
        if slow.any():
            v = np.where(slow, (low + high) / 2, v)
            G, H, _ = derivatives(v)
    return v
