"""`incremental_pruning`: the exact value function of a partially observed process, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from epicycle._native import control as native
from epicycle.control.pomdp._pomdp import POMDP
from epicycle.control.pomdp._pomdp_solution import (
    POMDP_DOCS,
    POMDPSolution,
    UpperBound,
    arguments,
    bound_gap,
    check,
    scale_of,
)
from epicycle.core._exceptions import ConvergenceError
from epicycle.core._history import History
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
#: Margin, relative to the largest value, by which a vector has to be best somewhere: the precision of the programs.
_MARGIN = 1e-11


@dataclass
class Stage:
    """Vectors and actions of a stage, and the bounds that the change from the one before puts on all that follows.

    `precision` is the part of their distance that comes from the margin of pruning and does not fall.
    """

    vectors: Array
    actions: Array
    below: float
    above: float
    precision: float = 0.0


@in_catalogue("control", "G7", certificate="distance of the bounds", docs=POMDP_DOCS)
def incremental_pruning(
    pomdp: POMDP,
    horizon: int | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    max_vectors: int = 200_000,
) -> POMDPSolution:
    r"""Exact values as the maximum of vectors, :math:`V(b) = \max_k \alpha_k' b`.

    One more step turns a set :math:`\Gamma` into

    .. math:: \mathrm{prune}\Big( \bigcup_a \Big\{ R_a + \bigoplus_o
              \mathrm{prune}\big\{ \gamma P_a (O_{ao} \cdot \alpha) : \alpha \in \Gamma \big\} \Big\} \Big) ,

    where sums over observations are pruned one after the other. Whether a vector is best at some belief is a linear
    program, the value of a matrix game, and is solved in as many rows as there are states.

    Parameters
    ----------
    horizon : int, optional
        Number of steps; None means that the discounted process goes on for ever.
    tol : float, default=1e-6
        Distance of the bounds, at the worst belief and relative to the largest value, that is good enough.
    max_vectors : int, default=200000
        Most vectors that may be compared at once; beyond it an error says so.

    Examples
    --------
    >>> from epicycle.control import incremental_pruning, worlds
    >>> tiger = worlds.tiger()
    >>> solution = incremental_pruning(tiger)
    >>> round(solution.value(tiger.start), 2)
    19.37
    >>> incremental_pruning(tiger, horizon=2).action([0.5, 0.5], steps_left=2)
    'listen'
    """
    check("incremental_pruning", pomdp=pomdp, horizon=horizon, tol=tol, max_iter=max_iter, max_vectors=max_vectors)
    began = perf_counter()
    # Nothing is earned after the last step; what terminal states are worth is part of it.
    vectors = pomdp.terminal_values_[None].copy()
    stages: list[tuple[Array, Array]] = []
    rows: list[tuple[float, float, float, float]] = []
    found = Stage(vectors, np.zeros(1, dtype=np.int64), -np.inf, np.inf)
    for _ in range(max_iter if horizon is None else horizon):
        found = _next(pomdp, found.vectors, max_vectors, horizon is None)
        if horizon is not None:
            stages.append((found.vectors, pomdp.actions[found.actions]))
        value = float((found.vectors @ pomdp.start).max())
        rows.append((value + found.below, value + found.above, float(len(found.vectors)), perf_counter() - began))
        wanted = max(tol * scale_of(found.vectors.max(axis=0)), 1.1 * found.precision)
        if horizon is None and found.above - found.below <= wanted:
            break
    return _solution(pomdp, found, stages or None, rows, tol)


def _next(pomdp: POMDP, vectors: Array, most: int, goes_on: bool) -> Stage:
    margin = _MARGIN * max(scale_of(vectors), scale_of(pomdp.rewards_))
    after, actions = native.incremental_pruning(*arguments(pomdp), vectors, margin, most)
    if len(after) == 0:
        raise ConvergenceError(
            f"incremental_pruning: more than max_vectors={most} vectors from {len(vectors)} of the stage before; use "
            "heuristic_search_value_iteration or point_based_value_iteration"
        )
    # Each of O + 1 prunings in a row loses at most the margin.
    lost = margin * (pomdp.n_observations + 2)
    if not goes_on:
        return Stage(after, actions, 0.0, lost)
    rise, fall = native.largest_excess(after, vectors), native.largest_excess(vectors, after)
    if pomdp.is_terminal.any():
        rise, fall = max(rise, 0.0), max(fall, 0.0)
    factor = pomdp.discount / (1 - pomdp.discount)
    below, above = -factor * (fall + margin), factor * (rise + margin) + lost / (1 - pomdp.discount)
    return Stage(after, actions, below, above, 2 * factor * margin + lost / (1 - pomdp.discount))


def _solution(
    pomdp: POMDP,
    found: Stage,
    stages: list[tuple[Array, Array]] | None,
    rows: list[tuple[float, float, float, float]],
    tol: float,
) -> POMDPSolution:
    size, n = scale_of(found.vectors.max(axis=0)), pomdp.n_states
    lost = found.above if stages is None else found.above * len(stages)
    high = found.vectors + np.where(pomdp.is_terminal, 0.0, lost)
    low = found.vectors + np.where(pomdp.is_terminal, 0.0, found.below)
    lower, upper, count, seconds = zip(*rows, strict=True)
    return POMDPSolution(
        pomdp=pomdp,
        alpha_vectors=found.vectors,
        alpha_actions=pomdp.actions[found.actions],
        lower_vectors=low,
        upper_bound=UpperBound(np.full(n, high.max()), high, np.empty((0, n)), np.empty(0)),
        history=History(lower=lower, upper=upper, n_vectors=count, seconds=seconds),
        certificate=bound_gap("incremental_pruning", found.below, lost, size, tol, "at every belief"),
        n_iter=len(rows),
        stages=stages,
    )
