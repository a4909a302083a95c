r"""Bounds on a policy from counts: values of the best and of the worst process that agree with them.

After n visits of a pair the frequencies :math:`\hat p` of K successors satisfy
:math:`\|\hat p - p\|_1 \le \sqrt{2 (K \log 2 + \log(1/\delta)) / n}` (Weissman and others), and the mean of rewards in
an interval of length b is within :math:`b \sqrt{\log(2/\delta) / 2n}` of its expectation (Hoeffding), each with
probability :math:`1 - \delta`.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
_ROUNDS = 400  # of value iteration; the bounds are true after any number


def radii(visits: Array, n_outcomes: int, span: float, steps: int, n_pairs: int, delta: float) -> tuple[Array, Array]:
    """Radii of probabilities (L1) and rewards that hold for all pairs and numbers of visits together."""
    share = delta / (2 * n_pairs * max(steps, 1))
    n = np.maximum(visits, 1)
    around_p = np.minimum(np.sqrt(2 * (n_outcomes * np.log(2) + np.log(1 / share)) / n), 2.0)
    around_r = np.minimum(span * np.sqrt(np.log(2 / share) / (2 * n)), span)
    return np.where(visits > 0, around_p, 2.0), np.where(visits > 0, around_r, span)


def best_expectation(P: Array, radius: Array, values: Array) -> Array:
    """Largest expectation of values over all probabilities within an L1 distance of each row."""
    order = np.argsort(values, kind="stable")
    Q, v = P[:, order], values[order]
    moved = np.minimum(radius / 2, 1 - Q[:, -1])  # to the best outcome, away from the worst
    left = np.maximum(np.cumsum(Q[:, :-1], axis=1) - moved[:, None], 0.0)
    kept = np.diff(left, axis=1, prepend=0.0)
    return np.asarray(kept @ v[:-1] + (1 - left[:, -1] if left.shape[1] else 1.0) * v[-1])


def value_bounds(
    P: Array,
    rewards: Array,
    around_p: Array,
    around_r: Array,
    reward_range: tuple[float, float],
    owner: Array,
    chosen: Array,
    n_states: int,
    discount: float,
) -> tuple[Array, Array]:
    """Upper bounds of the best values and lower bounds of those of a policy; the last outcome of P is the end.

    Both iterations begin at values that no process exceeds, so that every iterate is a bound.
    """
    low, high = reward_range
    upper = np.append(np.full(n_states, max(high / (1 - discount), 0.0)), 0.0)
    lower = np.append(np.full(n_states, min(low / (1 - discount), 0.0)), 0.0)
    most, least = np.minimum(rewards + around_r, high), np.maximum(rewards - around_r, low)[chosen]
    for _ in range(_ROUNDS):
        q = most + discount * best_expectation(P, around_p, upper)
        after = np.full(n_states, -np.inf)
        np.maximum.at(after, owner, q)
        under = least - discount * best_expectation(P[chosen], around_p[chosen], -lower)
        change = max(np.abs(after - upper[:-1]).max(), np.abs(under - lower[:-1]).max())
        upper[:-1], lower[:-1] = np.minimum(after, upper[:-1]), np.maximum(under, lower[:-1])
        if change <= 1e-3 * (1 - discount) * max(high - low, 1e-300):
            break
    return upper[:-1], lower[:-1]
