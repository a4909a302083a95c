"""Best constants of leaves: quantiles of residuals, and minima of the loss by Newton's method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epicycle.tree._ensemble import GrownTree
from epicycle.tree.boosting._losses import BoostingLoss
from epicycle.tree.boosting._sums import weighted_quantile

# Derivatives of leaves are zero to this share of the sum of |gradients|, which are in single precision (eps 1.2e-7).
_DERIVATIVE_TOLERANCE = 1e-6
# Largest leaf value where scores are logarithms: a leaf of one class has its optimum at infinity, and beyond e^4 : 1
# there is little to gain in a step that the learning rate shortens anyway.
_LARGEST_LOG_VALUE = 4.0
_MAX_NEWTON_STEPS = 100


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
    loss: BoostingLoss,
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

    `derivatives` maps values of all leaves to the sums of gradients, of curvatures and of |gradients|.
    """
    v = np.zeros(n_leaves)
    bound = _LARGEST_LOG_VALUE if bounded else np.finfo(float).max / 4
    low, high = np.full(n_leaves, -bound), np.full(n_leaves, bound)
    reach = 1.0  # length of a step where the curvature is zero; doubled every time
    G, H, scale = derivatives(v)
    for _ in range(_MAX_NEWTON_STEPS):
        # The derivative G rises with v: its sign tells on which side of v the minimum lies.
        low, high = np.where(G < 0, v, low), np.where(G > 0, v, high)
        done = (np.abs(G) <= _DERIVATIVE_TOLERANCE * scale) | (high - low <= 1e-12 * np.abs(v))
        if done.all():
            break
        step = np.divide(-G, H, out=np.where(G < 0, reach, -reach), where=H > 0)
        tried = v + step
        tried = np.where((tried <= low) | (tried >= high), (low + high) / 2, tried)
        before, v, reach = np.abs(G), np.where(done, v, tried), 2 * reach
        G, H, _ = derivatives(v)
        # A curvature that is only an upper bound makes short steps: bisect where the leaf has a bracket.
        low, high = np.where(G < 0, v, low), np.where(G > 0, v, high)
        slow = ~done & (np.abs(G) > before / 2) & (high - low < bound)
        if slow.any():
            v = np.where(slow, (low + high) / 2, v)
            G, H, _ = derivatives(v)
    return v
