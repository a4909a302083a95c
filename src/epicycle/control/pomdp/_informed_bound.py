"""`fast_informed_bound`, and the bounds that planners start from."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from epicycle._native import control as native
from epicycle.control.mdp._policy_iteration import policy_iteration
from epicycle.control.pomdp._pomdp import POMDP
from epicycle.control.pomdp._pomdp_solution import (
    POMDP_DOCS,
    POMDPSolution,
    UpperBound,
    arguments,
    check,
    rounding,
    scale_of,
)
from epicycle.core._certificate import Certificate
from epicycle.core._history import History
from epicycle.core._threads import n_threads
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_SWEEPS = 100  # of one call of the kernel


def blind_values(pomdp: POMDP) -> Array:
    """Values (A, S) of always the same action: a lower bound, since some policy does that."""
    n = pomdp.n_states
    vectors = np.empty((pomdp.n_actions, n))
    for a in range(pomdp.n_actions):
        P = pomdp.transitions_[a * n : (a + 1) * n]
        system = sp.csc_array(sp.eye_array(n) - pomdp.discount * P)
        vectors[a] = splu(system).solve(pomdp.rewards_[a])
    return vectors - rounding(pomdp, vectors)


def observed_values(pomdp: POMDP) -> Array:
    """Values (A, S) of actions if the state were seen from the next step on: no policy is worth more."""
    best = policy_iteration(pomdp.observed_mdp(), tol=1e-9)
    V = best.upper if best.upper is not None else best.values
    after = (pomdp.transitions_ @ V).reshape(pomdp.n_actions, pomdp.n_states)
    return np.asarray(pomdp.rewards_ + pomdp.discount * after)


def informed_values(pomdp: POMDP, tol: float, max_iter: int, n_jobs: int | None = None) -> tuple[Array, list[float]]:
    """Vectors (A, S) of the fast informed bound, from above, and the changes of the sweeps."""
    vectors = observed_values(pomdp)
    work = float(pomdp.transitions_.nnz) * pomdp.n_observations * pomdp.n_actions
    stop = tol * scale_of(vectors)
    changes: list[float] = []
    while len(changes) < max_iter:
        sweeps = min(_SWEEPS, max_iter - len(changes))
        threads = n_threads(work * sweeps, n_jobs)
        changes += native.informed_bound(*arguments(pomdp), vectors, sweeps, stop, threads).tolist()
        if changes[-1] <= stop:
            break
    return vectors + rounding(pomdp, vectors), changes


def first_bounds(pomdp: POMDP, n_jobs: int | None = None) -> tuple[Array, UpperBound]:
    """A lower bound by vectors and an upper one, to start from."""
    vectors, _ = informed_values(pomdp, 1e-6, 1000, n_jobs)
    n = pomdp.n_states
    return blind_values(pomdp), UpperBound(vectors.max(axis=0), vectors, np.empty((0, n)), np.empty(0))


@in_catalogue("control", "G7", certificate="Bellman residual", docs=POMDP_DOCS)
def fast_informed_bound(
    pomdp: POMDP, *, tol: float = 1e-8, max_iter: int = 10_000, n_jobs: int | None = None
) -> POMDPSolution:
    r"""Act as if the state were seen one step later, after the next observation has been used.

    .. math:: Q(s, a) = R(s, a) + \gamma \sum_o \max_{a'} \sum_{s'} P_{sa}(s')\, O(o \mid s', a)\, Q(s', a')

    An upper bound that is never above that of :func:`qmdp`.

    Parameters
    ----------
    tol : float, default=1e-8
        Change of a sweep, relative to the largest value, at which it ends; every sweep is a bound.

    Returns
    -------
    POMDPSolution
        The lower bound is that of always the same action, which the policy need not attain.

    Examples
    --------
    >>> from epicycle.control import fast_informed_bound, worlds
    >>> tiger = worlds.tiger()
    >>> solution = fast_informed_bound(tiger)
    >>> bool(solution.upper_bound(tiger.start[None])[0] < 189.0)
    True
    """
    check("fast_informed_bound", pomdp=pomdp, tol=tol, max_iter=max_iter, n_jobs=n_jobs)
    vectors, changes = informed_values(pomdp, tol, max_iter, n_jobs)
    return of_upper_bound(pomdp, vectors, changes, tol)


def of_upper_bound(pomdp: POMDP, vectors: Array, changes: list[float], tol: float) -> POMDPSolution:
    """Solution of vectors that are an upper bound, one for each action."""
    low, n = blind_values(pomdp), pomdp.n_states
    bound = UpperBound(vectors.max(axis=0), vectors, np.empty((0, n)), np.empty(0))
    residual = changes[-1] / scale_of(vectors)
    meaning = "no policy is worth more than the vectors say; their equation holds to the residual"
    return POMDPSolution(
        pomdp=pomdp,
        alpha_vectors=vectors,
        alpha_actions=pomdp.actions.copy(),
        lower_vectors=low,
        upper_bound=bound,
        history=History(residual=changes),
        certificate=Certificate("Bellman residual", residual, tol, meaning),
        n_iter=len(changes),
    )
