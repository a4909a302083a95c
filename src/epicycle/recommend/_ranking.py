r"""Bayesian personalised ranking:  maximise  sum log sigma(s_ui - s_uj) - penalty/2 |parameters|^2,

s_ui = x_u'y_i + c_i, over triples of a user, an item that the user has and one that the user has not, which are drawn
at random (Rendle et al. 2009). Steps of stochastic gradients in a fixed order end near a maximum; none is certified.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError
from epicycle.core._monitor import Monitor
from epicycle.core._random import stream
from epicycle.core._solution import Solution
from epicycle.recommend._alternating import Model, _state
from epicycle.recommend._joint_gradient import _PIECE
from epicycle.recommend._ratings import Ratings

Array = np.ndarray

#: Triples on which the loss is monitored, the same after every pass.
_MONITORED = 10_000


def rank(
    ratings: Ratings,
    seen: tuple[Array, Array],
    model: Model,
    *,
    penalty: float,
    rate: float,
    seed: int,
    max_iter: int,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
) -> Solution:
    """As many passes as `max_iter` says; each draws as many triples as there are pairs."""
    n_iter = 0
    if state is not None:
        model.flat[:] = state["flat"]
        n_iter = int(state["n_iter"])
    n = len(ratings.user)
    monitored = _triples(ratings, seen, stream(seed, "watched"), min(_MONITORED, 10 * n))
    reason, value = "converged", _loss(model, monitored)
    while n_iter < max_iter:
        rng = stream(seed, "pass", n_iter)
        n_iter += 1
        used = right = 0
        for lo in range(0, n, _PIECE):
            size = min(_PIECE, n - lo)
            counts = _native.recommend.bpr_pass(
                rng.integers(n, size=size),
                rng.integers(ratings.n_items, size=size, dtype=np.int32),
                ratings.user,
                ratings.item,
                seen[0],
                seen[1],
                penalty,
                rate,
                model.users,
                model.items,
                model.bias,
            )
            used, right = used + counts[0], right + counts[1]
        value = _loss(model, monitored)
        if not (math.isfinite(value) and np.isfinite(model.flat).all()):
            raise ConvergenceError(
                "CollaborativeFiltering(method='bpr'): factors grew beyond floating point; expected a smaller "
                "learning_rate or reg"
            )
        auc = right / used if used else math.nan
        if monitor(n_iter, model.flat, objective=value, auc=auc, state=partial(_state, model.flat.copy(), n_iter)):
            reason = "stopped"
            break
    certificate = Certificate("none", 0.0, 0.0, "stochastic gradients on drawn triples: no optimum is claimed")
    return Solution(model.flat, value, monitor.history(), certificate, n_iter, reason, state=_state(model.flat, n_iter))


def _triples(ratings: Ratings, seen: tuple[Array, Array], rng: np.random.Generator, size: int) -> tuple[Array, ...]:
    """Users, items that they have and items that they have not."""
    start, items = seen
    at = rng.integers(len(ratings.user), size=size)
    user, item = ratings.user[at].astype(np.int64), ratings.item[at]
    other = rng.integers(ratings.n_items, size=size, dtype=np.int32)
    keys = np.repeat(np.arange(ratings.n_users, dtype=np.int64), np.diff(start)) * ratings.n_items + items
    new = ~np.isin(user * ratings.n_items + other, keys)
    return user[new], item[new], other[new]


def _loss(model: Model, triples: tuple[Array, ...]) -> float:
    """The mean of -log sigma(s_ui - s_uj)."""
    user, item, other = triples
    if len(user) == 0:
        return 0.0
    k = model.k
    with np.errstate(over="ignore", invalid="ignore"):  # of steps that are too long
        margin = np.einsum("ij,ij->i", model.users[user, :k], model.items[item, :k] - model.items[other, :k])
        if model.bias:
            margin += model.items[item, k] - model.items[other, k]
        return float(np.mean(np.logaddexp(0.0, -margin)))
