"""`policy_evaluation`: the values of a given policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle._native import control as native
from epicycle.control.mdp._absorption import run_length
from epicycle.control.mdp._chain_solver import solve_chain
from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._planning_solution import arguments, can_end
from epicycle.control.mdp._value_iteration import check
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, check_parameter
from epicycle.core._threads import n_threads
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_SWEEPS = 64  # of evaluation that still cost less than Krylov iterations to the same accuracy
_FEW = 6  # of them, from which to see how fast the span falls


@in_catalogue("control", "G1", certificate="loss of the policy")
def policy_evaluation(
    mdp: MDP, policy: Any, *, method: str = "exact", sweeps: int = 1000, n_jobs: int | None = None
) -> Array:
    r"""Values of a policy, :math:`V^\pi = R^\pi + \gamma P^\pi V^\pi`.

    Parameters
    ----------
    mdp : MDP
        The process, with the discounted or the total criterion.
    policy : array (S,)
        Labels of actions.
    method : {"exact", "iterative"}, default="exact"
        Solve the linear system, or apply the policy's operator `sweeps` times from zero: the values of the first
        `sweeps` steps.
    sweeps : int, default=1000
        Number of sweeps of the iterative method.
    n_jobs : int, optional
        Threads of the iterative method.

    Returns
    -------
    array (S,)

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import MDP, policy_evaluation
    >>> mdp = MDP(np.array([[[0.0, 1.0]], [[0.0, 1.0]]]), [1.0, 2.0], discount=0.5)
    >>> policy_evaluation(mdp, [0, 0])
    array([3., 4.])
    """
    check("policy_evaluation", mdp=mdp, sweeps=sweeps, n_jobs=n_jobs)
    check_parameter("policy_evaluation", "method", method, Choice("exact", "iterative"))
    if mdp.criterion == "average":
        raise ParameterError("policy_evaluation: expected a discounted or total criterion, got 'average'")
    choice = mdp.pair_index(policy)
    if method == "iterative":
        values = mdp.terminal_values_.copy()
        native.evaluate(*arguments(mdp), choice, values, sweeps, n_threads(1.0 * mdp.transitions_.nnz * sweeps, n_jobs))
        return values
    if mdp.criterion == "total" and run_length(mdp, choice) is None:
        raise DataError("policy: the process goes on for ever under it, so that its total reward does not exist")
    return exact_values(mdp, choice)


def values_by_sweeps(mdp: MDP, choice: Array, start: Array, stop: float, n_jobs: int | None) -> tuple[Array, bool]:
    r"""Values of a policy from `start` by sweeps, for chains that forget fast, and whether they settled.

    They settled when the change of a sweep has a span of at most `stop`: then it is one constant, but for `stop`, and
    what all sweeps to come would add, :math:`\gamma / (1 - \gamma)` times that, is added at once. Twice a few sweeps
    show how fast the span falls; where more than `_SWEEPS` would be needed, they are left at that.
    """
    values, ends = start.copy(), can_end(mdp)
    threads = n_threads(1.0 * mdp.n_states * _SWEEPS, n_jobs)

    def span_after(sweeps: int) -> tuple[float, float]:
        low, high = native.evaluate(*arguments(mdp), choice, values, sweeps, threads, stop, ends)
        return float(high - low), float(0.5 * (low + high))

    before, change = span_after(_FEW)
    span = before
    if span > stop:
        span, change = span_after(_FEW)
    if before * (span / before) ** (_SWEEPS / _FEW) <= stop < span:
        span, change = span_after(_SWEEPS)
    if span <= stop and not ends:
        values += mdp.discount / (1 - mdp.discount) * change
    return values, span <= stop


def exact_values(mdp: MDP, choice: Array, *, start: Array | None = None, rough: bool = False) -> Array:
    """Solution of the linear system of a policy, given by its pairs; `start` and `rough` as in `solve_chain`."""
    P, r = mdp.policy_chain(choice)
    right = np.where(choice >= 0, r, mdp.terminal_values_)
    return solve_chain(P, right, mdp.discount, start=start, rough=rough)
