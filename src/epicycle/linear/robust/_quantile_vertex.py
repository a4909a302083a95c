"""From a point near the optimum to an optimal vertex: a hyperplane through as many rows as it has parameters.

The rows with the largest weights on the central path, independent of each other, are the first guess of the rows that
the optimal hyperplane passes through. Simplex pivots make the guess right; usually there are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, inv, qr

from epicycle.linear.robust._quantile_problem import Programme

__all__ = ["Vertex", "find_vertex", "first_basis"]

#: Pivots between fresh factorisations of the basis (and looks at callbacks).
BURST = 64
#: Rows that are looked at for a basis, in multiples of its size.
CANDIDATES = 4

#: Called with (beta, pivots so far); True asks to stop.
Report = Callable[[np.ndarray, int], bool]


@dataclass(frozen=True)
class Vertex:
    """A solution of the linear programme.

    residual : y - A beta over the rows of X, exactly zero on the basis.
    dual : over the rows of X and then all coordinates; within its bounds.
    basis : the rows that the hyperplane passes through; n + j is the unit row of coordinate j.
    optimal : whether the pivots came to their end.
    """

    beta: np.ndarray
    residual: np.ndarray
    dual: np.ndarray
    basis: np.ndarray
    pivots: int
    optimal: bool
    stopped: bool


def first_basis(problem: Programme, theta: np.ndarray) -> np.ndarray | None:
    """Independent rows of the largest weights; None where no d rows are independent."""
    n, d = len(problem.y), problem.frame.size
    held = n + np.flatnonzero(np.isinf(problem.frame.penalty))
    index = np.concatenate([np.arange(n), n + problem.penalised])
    weight = np.append(theta[:n], theta[n:])
    wanted = CANDIDATES * d + 32
    while True:
        chosen = index[np.argpartition(-weight, wanted)[:wanted]] if wanted < len(index) else index
        position = {int(i): k for k, i in enumerate(index[n:])} if len(index) > n else {}
        lengths = np.array([weight[i] if i < n else weight[n + position[int(i)]] for i in chosen])
        A = problem.rows(chosen)
        if len(held):
            A[:, held - n] = 0.0
        # Rows scaled by their weights: pivoting takes the heavy ones first. Squared so that near ties matter less.
        scaled = A * (np.sqrt(lengths / lengths.max()) + 1e-12)[:, None]
        R, order = qr(scaled.T, mode="r", pivoting=True, check_finite=False)
        need = d - len(held)
        diagonal = np.abs(np.diagonal(R))
        if need == 0:
            return held
        if len(diagonal) >= need:
            basis = np.concatenate([chosen[order[:need]], held])
            if _inverse(problem, basis) is not None:
                return basis
        if wanted >= len(index):
            return None
        wanted *= 8


def _inverse(problem: Programme, basis: np.ndarray) -> np.ndarray | None:
    B = problem.rows(basis)
    try:
        inverse = inv(B, check_finite=False)
    except (LinAlgError, ValueError):
        return None
    if not np.isfinite(inverse).all() or np.abs(inverse).max() * np.abs(B).max() > 1e13:
        return None
    return np.ascontiguousarray(inverse)


def find_vertex(problem: Programme, basis: np.ndarray, *, max_pivots: int, report: Report) -> Vertex | None:
    """Pivot from the given basis to the optimum; None where the programme has none (or the basis broke down)."""
    basis = np.ascontiguousarray(basis, dtype=np.int64)
    done = 0
    while True:
        inverse = _inverse(problem, basis)
        if inverse is None:
            return None
        state, pivots, beta, residual, dual = problem.pivots(basis, inverse, min(BURST, max(1, max_pivots - done)))
        done += pivots
        beta[basis[basis >= len(problem.y)] - len(problem.y)] = 0.0
        if state >= 2:
            return None
        stop = report(beta, done) if pivots or state == 0 else False
        # An optimum is taken from a fresh factorisation.
        if (state == 0 and pivots == 0) or stop or done >= max_pivots:
            return Vertex(beta, residual, dual, basis, done, state == 0, stop)
