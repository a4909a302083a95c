"""`point_based_value_iteration`: values at a set of beliefs that can be reached."""

from __future__ import annotations

from time import perf_counter

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
    rounding,
    start_size,
)
from epicycle.core._history import History
from epicycle.core._threads import n_threads
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_SWEEPS = 100  # most backups of all beliefs between two growths of their set


@in_catalogue("control", "G7", certificate="distance of the bounds", docs=POMDP_DOCS)
def point_based_value_iteration(
    pomdp: POMDP,
    *,
    n_beliefs: int = 200,
    tol: float = 1e-2,
    max_iter: int = 1000,
    n_jobs: int | None = None,
) -> POMDPSolution:
    r"""Backups at a set of beliefs that grows by those that can be reached and are far from the others (PBVI).

    Every backup gives the vector of the best action at its belief,

    .. math:: \alpha_b = \arg\max_a\, b' \Big( R_a + \gamma \sum_o P_a \big(O_{ao} \cdot
              \arg\max_{\alpha} b' P_a (O_{ao} \cdot \alpha)\big) \Big) ,

    a lower bound everywhere. The same beliefs carry an upper bound, a sawtooth that hangs from the corners.

    Parameters
    ----------
    n_beliefs : int, default=200
        Largest number of beliefs.
    tol : float, default=1e-2
        Distance of the bounds at the start, relative to its value or the largest reward, that is good enough.
    max_iter : int, default=1000
        Largest number of sweeps over the beliefs.

    Examples
    --------
    >>> from epicycle.control import point_based_value_iteration, worlds
    >>> tiger = worlds.tiger()
    >>> solution = point_based_value_iteration(tiger)
    >>> lower, upper = solution.bounds(tiger.start)
    >>> bool(lower <= 19.3714 <= upper)
    True
    """
    check(
        "point_based_value_iteration",
        pomdp=pomdp,
        n_beliefs=n_beliefs,
        tol=tol,
        max_iter=max_iter,
        n_jobs=n_jobs,
    )
    began = perf_counter()
    vectors, high = first_bounds(pomdp, n_jobs)
    actions = np.arange(pomdp.n_actions, dtype=np.int64)
    beliefs, rows = pomdp.start[None].copy(), []
    done = settled = False
    while not done:
        before = (vectors @ beliefs.T).max(axis=0) - high(beliefs)
        for _ in range(_SWEEPS):
            vectors, actions, high = _sweep(pomdp, vectors, actions, high, beliefs, n_jobs)
            lower, upper = float((vectors @ pomdp.start).max()), float(high(pomdp.start[None])[0])
            rows.append((lower, upper, len(vectors), len(beliefs), perf_counter() - began))
            size = start_size(pomdp, lower, upper)
            done = len(rows) >= max_iter or upper - lower <= tol * size
            now = (vectors @ beliefs.T).max(axis=0) - high(beliefs)
            settled, before = bool((now - before).max() <= 0.01 * tol * size), now
            if done or settled:
                break
        grown = _grow(pomdp, beliefs, n_beliefs)
        done = done or (settled and len(grown) == len(beliefs))
        beliefs = grown
    names = ("lower", "upper", "n_vectors", "n_beliefs", "seconds")
    history = History(**dict(zip(names, np.array(rows, dtype=np.float64).T, strict=True)))
    return of_bounds("point_based_value_iteration", pomdp, vectors, actions, high, history, tol)


def _sweep(
    pomdp: POMDP, vectors: Array, actions: Array, high: UpperBound, beliefs: Array, n_jobs: int | None
) -> tuple[Array, Array, UpperBound]:
    """Backups of both bounds at all beliefs; a bound never gets worse."""
    work = float(len(beliefs)) * pomdp.n_actions * pomdp.n_observations * len(vectors) * pomdp.n_states
    threads = n_threads(work, n_jobs)
    new, chosen, values = native.belief_backup(*arguments(pomdp), vectors, beliefs, threads)
    better = values > (vectors @ beliefs.T).max(axis=0)
    vectors, actions = np.vstack([vectors, new[better]]), np.concatenate([actions, chosen[better]])
    needed = np.unique(np.argmax(vectors @ beliefs.T, axis=0))
    vectors, actions = np.ascontiguousarray(vectors[needed]), actions[needed]
    bound = (high.corner, high.vectors, high.points, high.values)
    known = np.eye(pomdp.n_states)  # the sawtooth hangs from the corners: they take part in every sweep
    q = native.belief_upper_backup(*arguments(pomdp), *bound, np.vstack([beliefs, known]), threads).max(axis=1)
    q += rounding(pomdp, q)
    corner = np.minimum(high.corner, q[len(beliefs) :])
    inside = beliefs.max(axis=1) < 1.0
    value = np.minimum(q[: len(beliefs)], high(beliefs))
    points = np.ascontiguousarray(beliefs[inside])
    return vectors, actions, UpperBound(corner, high.vectors, points, value[inside])


def _grow(pomdp: POMDP, beliefs: Array, most: int) -> Array:
    """Of the beliefs that can follow each, the one that is furthest from all others joins."""
    found, n = list(beliefs), pomdp.n_states
    P = [pomdp.transitions_[a * n : (a + 1) * n] for a in range(pomdp.n_actions)]
    for b in beliefs:
        if len(found) >= most:
            break
        moved = np.array([b @ M for M in P])
        joint = (moved[:, :, None] * pomdp.observations_).transpose(0, 2, 1).reshape(-1, n)
        mass = joint.sum(axis=1)
        after = joint[mass > 0] / mass[mass > 0, None]
        if len(after) == 0:
            continue
        far = np.min([np.abs(after - other).sum(axis=1) for other in found], axis=0)
        if far.max() > 1e-6:
            found.append(after[int(np.argmax(far))])
    return np.array(found)
