"""Policies evaluated and improved: `policy_iteration` and those between it and value iteration."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from epicycle._native import control as native
from epicycle.control.mdp._absorption import run_length
from epicycle.control.mdp._chain_solver import DENSE
from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._planning_solution import (
    Bounds,
    PlanningSolution,
    arguments,
    backup,
    bounds,
    can_end,
    finish,
    span_of,
)
from epicycle.control.mdp._policy_evaluation import exact_values, values_by_sweeps
from epicycle.control.mdp._value_iteration import PLANNER_DOCS, Plan, Rounds, check, iterate, start_values
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._threads import n_threads
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_DOCS = {**PLANNER_DOCS, "mdp": "mdp : MDP\n    The process, with the discounted or the total criterion."}
#: Improvements below this part of a value are rounding: without it policies of equal value would alternate for ever.
_WORTH = 1e-12
_ROUNDING = 8 * float(np.finfo(float).eps)  # span of a change, of the largest value, that is nothing but rounding
_SETTLED = 0.1  # of the residual: sweeps of evaluation that take its span below are not worth their time
_ROUGH = 1e-5  # the same while large systems are solved roughly, until nothing improves by more


@in_catalogue("control", "G1", certificate="loss of the policy", docs=_DOCS)
def policy_iteration(
    mdp: MDP, *, tol: float = 1e-8, max_iter: int = 1000, initial_policy: Any = None, n_jobs: int | None = None
) -> PlanningSolution:
    r"""Best policy by Howard's policy iteration: evaluate exactly, act greedily, until nothing improves.

    .. math:: V = (I - \gamma P^\pi)^{-1} R^\pi, \qquad
              \pi(s) = \arg\max_a \Big\{ R(s, a) + \gamma \sum_{s'} P_{sa}(s') V(s') \Big\}

    Parameters
    ----------
    tol : float, default=1e-8
        Loss of the policy, relative to the largest value, at which the certificate holds.
    max_iter : int, default=1000
        Largest number of policies.
    initial_policy : array (S,), optional
        Labels of actions to start from; by default the policy that is greedy after as many sweeps of value iteration
        as it takes for it to end, or one sweep.
    n_jobs : int, optional
        Threads of the improvement.

    Examples
    --------
    >>> from epicycle.control import policy_iteration, worlds
    >>> solution = policy_iteration(worlds.random_mdp(200, 4, random_state=0))
    >>> bool(solution.n_iter < 20), solution.certificate.holds
    (True, True)
    """
    check("policy_iteration", mdp=mdp, tol=tol, max_iter=max_iter, n_jobs=n_jobs)
    if mdp.criterion == "average":
        raise ParameterError("policy_iteration: expected a discounted or total criterion; use value_iteration")
    choice = _ending_policy(mdp, n_jobs) if initial_policy is None else mdp.pair_index(initial_policy)
    if mdp.criterion == "total" and run_length(mdp, choice) is None:
        raise DataError("initial_policy: the process goes on for ever under it; expected one that ends")
    history: dict[str, list[float]] = {"residual": [], "changed": [], "seconds": []}
    began = perf_counter()
    # Large systems are solved roughly at first; a policy that goes on for ever has none, so that total rewards are not.
    rough, values = mdp.criterion == "discounted" and mdp.n_states > DENSE, start_values(mdp, None)
    by_sweeps, stop = rough, np.inf
    for n_iter in range(1, max_iter + 1):  # noqa: B007
        if by_sweeps:
            values, by_sweeps = values_by_sweeps(mdp, choice, values, stop, n_jobs)
        if not by_sweeps:
            values = exact_values(mdp, choice, start=values, rough=rough)
        after, greedy, low, high = backup(mdp, values, n_jobs)
        gain, size = after - values, np.maximum(np.abs(values), np.abs(after))
        better = gain > _WORTH * size
        history["residual"].append(span_of(mdp, low, high))
        history["changed"].append(int(better.sum()))
        history["seconds"].append(perf_counter() - began)
        if not rough and not better.any():
            break
        rough = rough and bool((gain > _ROUGH * size).any())
        stop = _SETTLED * history["residual"][-1] if rough else _ROUNDING * float(size.max(initial=0.0))
        choice = np.where(better, greedy, choice)
        # Where a policy that ends is improved into one that does not, the latter gains something in every round.
        if mdp.criterion == "total" and run_length(mdp, choice) is None:
            s = mdp.states[np.flatnonzero(better)[0]]
            raise DataError(
                f"rewards: the total reward has no upper bound: a policy that goes on for ever, with action "
                f"{mdp.action_labels(choice)[better][0]!r} in state {s!r}, gains more the longer it goes on; expected "
                "rewards that do not add up to more than zero in rounds, or discount < 1"
            )
    return finish(mdp, _about(mdp, values, choice, n_jobs), tol, history, n_iter, f"after {n_iter} policies")


@in_catalogue("control", "G1", certificate="loss of the policy", docs=_DOCS)
def modified_policy_iteration(
    mdp: MDP,
    *,
    sweeps: int = 20,
    tol: float = 1e-8,
    max_iter: int = 100_000,
    initial_values: Any = None,
    n_jobs: int | None = None,
) -> PlanningSolution:
    """Best policy by improvements with a few sweeps of evaluation after each (Puterman, Shin).

    No sweep is value iteration, infinitely many are policy iteration. A sweep of evaluation looks at one action in each
    state where an improvement looks at all, so that with many actions this is the fastest of the three.

    Parameters
    ----------
    sweeps : int, default=20
        Largest number of sweeps of evaluation after each improvement; fewer where the values have settled to a tenth
        of the residual.

    Examples
    --------
    >>> from epicycle.control import modified_policy_iteration, worlds
    >>> modified_policy_iteration(worlds.random_mdp(500, 10, random_state=0)).certificate.holds
    True
    """
    check("modified_policy_iteration", mdp=mdp, sweeps=sweeps, tol=tol, max_iter=max_iter, n_jobs=n_jobs)
    return _general(mdp, sweeps, 1.0, tol, max_iter, initial_values, None, n_jobs)


@in_catalogue("control", "G1", certificate="loss of the policy", docs=_DOCS)
def generalized_policy_iteration(
    mdp: MDP,
    *,
    sweeps: int = 3,
    share: float = 0.5,
    tol: float = 1e-8,
    max_iter: int = 100_000,
    initial_values: Any = None,
    random_state: Seed = 0,
    n_jobs: int | None = None,
) -> PlanningSolution:
    """Best policy by improving a random part of the states in each round, with some sweeps of evaluation between.

    Whatever the interplay of evaluation and improvement, values and policy settle only where both are satisfied.

    Parameters
    ----------
    sweeps : int, default=3
        Largest number of sweeps of evaluation after each improvement.
    share : float, default=0.5
        Part of the states, drawn at random, whose action is improved in a round.
    random_state : int, Generator, RandomState or None, default=0
        Which states are improved.

    Examples
    --------
    >>> from epicycle.control import generalized_policy_iteration, worlds
    >>> generalized_policy_iteration(worlds.russell_norvig_grid()).certificate.holds
    True
    """
    given = {"mdp": mdp, "sweeps": sweeps, "share": share, "tol": tol, "max_iter": max_iter, "n_jobs": n_jobs}
    check("generalized_policy_iteration", **given, random_state=random_state)
    if share == 0:
        raise ParameterError("share=0; expected a part of the states above 0")
    return _general(mdp, sweeps, share, tol, max_iter, initial_values, seed_of(random_state), n_jobs)


def _general(
    mdp: MDP,
    sweeps: int,
    share: float,
    tol: float,
    max_iter: int,
    initial_values: Any,
    seed: int | None,
    n_jobs: int | None,
) -> PlanningSolution:
    if mdp.criterion == "average":
        raise ParameterError("policy iteration: expected a discounted or total criterion; use value_iteration")

    def rounds(mdp: MDP, values: Array, plan: Plan) -> Rounds:
        threads = n_threads(1.0 * mdp.transitions_.nnz * max(sweeps, 1), plan.n_jobs)
        drifts = not can_end(mdp)  # then a change of all values by one number changes nothing else
        choice, number = backup(mdp, values, plan.n_jobs)[1], 0
        while True:
            after, greedy, low, high = backup(mdp, values, plan.n_jobs)
            if share < 1:
                picked = stream(seed, "improve", number).random(mdp.n_states) < share
                choice, number = np.where(picked, greedy, choice), number + 1
            else:
                values, choice = after, greedy  # the backup is the first sweep of the new policy
            yield values, low, high
            values = values.copy()
            if sweeps or share < 1:
                stop = _SETTLED * (high - low) if drifts else -1.0
                native.evaluate(*arguments(mdp), choice, values, max(sweeps, 1), threads, stop, not drifts)

    return iterate(mdp, rounds, start_values(mdp, initial_values), tol, max_iter, n_jobs)


def _about(mdp: MDP, values: Array, choice: Array, n_jobs: int | None) -> Bounds:
    """Bounds around the exact values of a policy that no greedy one improves."""
    found = bounds(mdp, values, n_jobs)
    return Bounds(values, choice, found.lower, found.upper, None, found.loss, found.meaning)


def _ending_policy(mdp: MDP, n_jobs: int | None) -> Array:
    """A policy to begin with: greedy for the rewards, or one that comes nearer to the end with every step."""
    choice = backup(mdp, start_values(mdp, None), n_jobs)[1]
    if mdp.criterion != "total" or run_length(mdp, choice) is not None:
        return choice
    # Among states already known to end, each further one takes an action that can lead there.
    ends, owner, stops = mdp.is_terminal.copy(), mdp._pair_state(), mdp._stops()
    choice = np.full(mdp.n_states, -1, dtype=np.int64)
    while not ends.all():
        leads = (np.asarray(mdp.transitions_ @ ends.astype(float)).ravel() > 0) | stops
        for k in np.flatnonzero(leads & ~ends[owner])[::-1]:
            choice[owner[k]] = k
        ends = ends | (choice >= 0)
    return choice
