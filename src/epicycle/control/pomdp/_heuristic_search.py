"""`heuristic_search_value_iteration`: trials that close the gap between two bounds."""

from __future__ import annotations

import numpy as np

from epicycle._native import control as native
from epicycle.control.pomdp._informed_bound import first_bounds
from epicycle.control.pomdp._pomdp import POMDP
from epicycle.control.pomdp._pomdp_solution import (
    POMDP_DOCS,
    POMDPSolution,
    UpperBound,
    arguments,
    check,
    of_bounds,
    scale_of,
)
from epicycle.core._history import History
from epicycle.core.estimator import in_catalogue

#: Share of the present gap that a trial aims at: the ends of deep trials are wasted while the gap is wide.
_SHARE = 0.5


@in_catalogue("control", "G7", certificate="distance of the bounds", docs=POMDP_DOCS)
def heuristic_search_value_iteration(
    pomdp: POMDP,
    *,
    tol: float = 1e-3,
    max_iter: int = 500,
    max_depth: int = 500,
    time_limit: float | None = None,
) -> POMDPSolution:
    r"""Trials that close the gap between a lower and an upper bound where it matters (HSVI; SARSOP is of this kind).

    A trial goes from the start along the action that promises most by the upper bound and the observation with the
    widest gap, until the gap is below :math:`\epsilon \gamma^{-t}` after t steps. On its way back it adds a vector to
    the lower bound :math:`\max_k \alpha_k' b` and a point to the upper one, a sawtooth that hangs from the corners
    of the simplex, both by Bellman's equation. Vectors and points that others make superfluous are dropped. The lower
    bound starts from always the same action, the upper one from :func:`fast_informed_bound`.

    Parameters
    ----------
    max_depth : int, default=500
        Most steps of a trial.
    time_limit : float, optional
        Seconds after which no further trial begins.

    Examples
    --------
    >>> from epicycle.control import heuristic_search_value_iteration, worlds
    >>> tiger = worlds.tiger()
    >>> solution = heuristic_search_value_iteration(tiger, tol=1e-6)
    >>> round(solution.bounds(tiger.start)[0], 2), solution.certificate.holds
    (19.37, True)
    """
    check(
        "heuristic_search_value_iteration",
        pomdp=pomdp,
        tol=tol,
        max_iter=max_iter,
        max_depth=max_depth,
        time_limit=time_limit,
    )
    low, high = first_bounds(pomdp)
    actions = np.arange(pomdp.n_actions, dtype=np.int64)
    floor = scale_of(pomdp.rewards_)
    bounds = (pomdp.start, low, actions, high.corner, high.vectors)
    seconds = np.inf if time_limit is None else float(time_limit)
    limits = native.SearchLimits(
        tolerance=tol, floor=floor, share=_SHARE, trials=max_iter, depth=max_depth, seconds=seconds
    )
    found = native.belief_search(*arguments(pomdp), *bounds, limits)
    vectors, chosen, corner, points, values, trace = found
    lower, upper, count, kept, seconds = trace.T
    history = History(lower=lower, upper=upper, n_vectors=count, n_points=kept, seconds=seconds)
    bound = UpperBound(corner, high.vectors, points, values)
    return of_bounds("heuristic_search_value_iteration", pomdp, vectors, chosen, bound, history, tol)
