"""`value_iteration`: Bellman's operator again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle._native import control as native
from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._planning_solution import (
    PlanningSolution,
    arguments,
    backup,
    bounds,
    can_end,
    finish,
    scale_of,
    span_of,
)
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import SHARED_PARAMETERS, Choice, InstanceOf, Integer, Real, check_parameter
from epicycle.core._threads import n_threads
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
METHODS = ("synchronous", "gauss-seidel", "prioritized")
DOMAINS = {
    "mdp": InstanceOf(MDP),
    "tol": Real(0, inclusive=False),
    "max_iter": Integer(minimum=1),
    "sweeps": Integer(minimum=0),
    "share": Real(0, 1),
    "random_state": SHARED_PARAMETERS["random_state"],
    "n_jobs": SHARED_PARAMETERS["n_jobs"],
}
#: Entries of docstrings that planners share.
PLANNER_DOCS = {
    "mdp": "mdp : MDP\n    The process.",
    "tol": "tol : float, default={default}\n"
    "    Loss of the policy at its worst state, relative to the largest value, that is good enough.",
    "max_iter": "max_iter : int, default={default}\n    Largest number of iterations.",
    "initial_values": "initial_values : array of shape (S,), optional\n    Start; by default zero.",
}
_SWEEPS = 50  # of one call of the kernel, between two looks at the certificate
# Half a step towards the new values: chains that alternate between two sets of states converge, and the gain is theirs.
_LAZY = 0.5

Rounds = Iterator[tuple[Array, float, float]]


@dataclass
class Plan:
    """Settings of the rounds: the residual at which the certificate is asked for, and how many are left."""

    stop: float
    left: int
    n_jobs: int | None


@in_catalogue("control", "G1", certificate="loss of the policy", docs=PLANNER_DOCS)
def value_iteration(
    mdp: MDP,
    *,
    method: str = "synchronous",
    tol: float = 1e-8,
    max_iter: int = 100_000,
    initial_values: Any = None,
    n_jobs: int | None = None,
) -> PlanningSolution:
    r"""Best policy of a decision process by value iteration, :math:`V \leftarrow TV`.

    .. math:: (TV)(s) = \max_a \Big\{ R(s, a) + \gamma \sum_{s'} P_{sa}(s') V(s') \Big\}

    It ends when the span of the residual :math:`TV - V` proves that the greedy policy loses at most `tol`, which comes
    long before the values themselves have converged.

    Parameters
    ----------
    method : {"synchronous", "gauss-seidel", "prioritized"}, default="synchronous"
        All states at once; one after the other, each seeing the new values of those before it; or the state with the
        largest residual first (prioritised sweeping). The average criterion runs synchronously.

    Examples
    --------
    >>> from epicycle.control import value_iteration, worlds
    >>> solution = value_iteration(worlds.russell_norvig_grid())
    >>> solution.certificate.holds
    True
    """
    check("value_iteration", mdp=mdp, tol=tol, max_iter=max_iter, n_jobs=n_jobs)
    check_parameter("value_iteration", "method", method, Choice(*METHODS))
    rounds = {"synchronous": _synchronous, "gauss-seidel": _gauss_seidel, "prioritized": _prioritized}[
        "synchronous" if mdp.criterion == "average" else method
    ]
    return iterate(mdp, rounds, start_values(mdp, initial_values), tol, max_iter, n_jobs)


def check(planner: str, **given: Any) -> None:
    """Raise if an argument of a planner is not what it should be."""
    for name, value in given.items():
        check_parameter(planner, name, value, DOMAINS[name])


def iterate(mdp: MDP, rounds: Any, start: Array, tol: float, max_iter: int, n_jobs: int | None) -> PlanningSolution:
    """Rounds until the certificate holds; it is asked for when the residual says that it may."""
    history: dict[str, list[float]] = {"residual": [], "seconds": []}
    began, found = perf_counter(), None
    plan = Plan(_first_stop(mdp, start, tol), max_iter, n_jobs)
    for values, low, high in rounds(mdp, start.copy(), plan):
        residual = span_of(mdp, low, high)
        history["residual"].append(residual)
        history["seconds"].append(perf_counter() - began)
        plan.left -= 1
        if residual > plan.stop and plan.left > 0:
            continue
        found = bounds(mdp, values, n_jobs)
        loss = found.loss / scale_of(mdp, found.values)
        # Rounding is what is left when the residual cannot fall: a smaller one is not to be had.
        if loss <= tol or plan.left <= 0 or residual <= np.finfo(float).eps * scale_of(mdp, values):
            break
        plan.stop = min(plan.stop, residual) * max(min(0.5, tol / loss), 1e-3)
    assert found is not None
    n_iter = len(history["residual"])
    advice = f"after {n_iter} sweeps; raise max_iter, or tol where rounding is the limit, or use policy_iteration"
    return finish(mdp, found, tol, history, n_iter, advice)


def start_values(mdp: MDP, given: Any) -> Array:
    """Values to start from, those of terminal states in their places."""
    values = np.zeros(mdp.n_states) if given is None else np.array(given, dtype=np.float64)
    if values.shape != (mdp.n_states,) or not np.isfinite(values).all():
        raise DataError(f"initial_values: got shape {values.shape}; expected {mdp.n_states} finite numbers")
    return np.where(mdp.is_terminal, mdp.terminal_values_, values)


def _first_stop(mdp: MDP, values: Array, tol: float) -> float:
    """Residual at which the certificate may hold, if the values are of the size of rewards over 1 - discount."""
    size = np.abs(mdp.rewards_).max(initial=0.0) + np.abs(values).max(initial=0.0)
    if mdp.criterion == "discounted":
        return float(tol * size / max(mdp.discount, 1e-300))
    return float(tol * size)


def _synchronous(mdp: MDP, values: Array, plan: Plan) -> Rounds:
    threads = n_threads(4.0 * mdp.transitions_.nnz * _SWEEPS, plan.n_jobs)
    choice = np.empty(mdp.n_states, dtype=np.int64)
    average = mdp.criterion == "average"
    relax = _LAZY if average else 1.0
    while True:
        sweeps = min(_SWEEPS, plan.left)
        changes = native.iterate(*arguments(mdp), values, choice, sweeps, relax, plan.stop, can_end(mdp), threads)
        if average:
            values -= values[0]  # they would grow by the gain in every sweep
        for low, high in changes:
            yield values, float(low), float(high)


def _gauss_seidel(mdp: MDP, values: Array, _: Plan) -> Rounds:
    choice = np.empty(mdp.n_states, dtype=np.int64)
    while True:
        low, high = native.improve_in_place(*arguments(mdp), values, choice)
        # The change of a sweep in place is no Bellman residual: with zero at one end its size counts, not its span.
        yield values, min(low, 0.0), max(high, 0.0)


def _prioritized(mdp: MDP, values: Array, plan: Plan) -> Rounds:
    P = mdp.transitions_
    leads = sp.csr_array(P.T)
    leads.indices, leads.indptr = leads.indices.astype(P.indices.dtype), leads.indptr.astype(P.indptr.dtype)
    while True:
        # A tenth of what is asked: smaller differences stay in the states where they arose.
        native.sweep_by_priority(*arguments(mdp), leads, mdp._pair_state(), values, plan.stop / 10, mdp.n_states)
        _, _, low, high = backup(mdp, values, plan.n_jobs)
        yield values, min(low, 0.0), max(high, 0.0)
