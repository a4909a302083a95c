"""How low J can be over all clusterings, from below.

N = T T' is positive semi-definite with a unit diagonal, and v'N v is bounded by the balance. Without the rest of what N
is (its rank, and entries of only two values) this is a semi-definite programme,

    min <A, N>   over   N >= 0,  diag N = 1,  v'N v <= l ,

whose dual proves a bound for any g >= 0 and d:  sum_i d_i - g l + n min(0, smallest eigenvalue of A + g v v' - diag d).
It is solved by N = R R' with rows of length one, of as many columns as make every local minimum global (Barvinok 1995,
Burer and Monteiro 2003); d is read off R, and the bound from eigenvalues. For many rows the bound with all d_i in
proportion to v_i needs no programme.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.optimize import minimize

from epicycle.cluster.max_margin._descent import Balance
from epicycle.cluster.max_margin._separability import Separability

__all__ = ["Relaxed", "relax", "spectral_bound"]

#: Values of g that are tried.
TRIES = 10


@dataclass(frozen=True)
class Relaxed:
    """A lower bound on J, and the rows R that it came from."""

    bound: float
    R: np.ndarray


def spectral_bound(problem: Separability, balance: Balance) -> float:
    """C (1 - D_1) (W - l / W): the labels have the length W^1/2, and at most l / W of it along the mean."""
    W = problem.total
    rest = 1 - float(problem.shrinkage.max(initial=0.0))
    return max(problem.C * rest * (W - balance.spread / W), 0.0)


def relax(problem: Separability, balance: Balance, rng: np.random.Generator) -> Relaxed:
    """Solve the programme for the best g found."""
    A, v, limit = problem.matrix(), problem.weight, balance.spread
    n = len(A)
    columns = min(n, int(np.ceil(np.sqrt(2 * (n + 1)))) + 1)
    R = rng.standard_normal((n, columns))
    low, high = 0.0, np.inf
    g = problem.C / problem.total
    best = Relaxed(-np.inf, R)
    for _ in range(TRIES):
        R = _minimise(A, v, g, R)
        found = _bound(A, v, g, R, limit)
        if found > best.bound:
            best = Relaxed(found, R)
        # The bound is concave in g, with the slope v'N v - l.
        if float(np.sum((v @ R) ** 2)) > limit:
            low, g = g, 4 * g if np.isinf(high) else np.sqrt(max(g, 1e-12 * high) * high)
        else:
            high, g = g, np.sqrt(max(low, 1e-3 * g) * g)
    return best


def _minimise(A: np.ndarray, v: np.ndarray, g: float, start: np.ndarray) -> np.ndarray:
    """R with rows of length one that makes tr(R'(A + g v v')R) least."""
    shape = start.shape
    scale = max(float(np.abs(np.diagonal(A)).max()), 1e-300)

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        Y = x.reshape(shape)
        length = np.linalg.norm(Y, axis=1, keepdims=True)
        R = Y / length
        P = (A @ R + g * np.outer(v, v @ R)) / scale
        inner = np.sum(P * R, axis=1, keepdims=True)
        return float(inner.sum()), (2 * (P - inner * R) / length).ravel()

    found = minimize(value, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 400, "ftol": 1e-13})
    Y = found.x.reshape(shape)
    return np.asarray(Y / np.linalg.norm(Y, axis=1, keepdims=True))


def _bound(A: np.ndarray, v: np.ndarray, g: float, R: np.ndarray, limit: float) -> float:
    S = A + g * np.outer(v, v)
    d = np.sum((S @ R) * R, axis=1)
    S[np.diag_indices(len(S))] -= d
    values = scipy.linalg.eigvalsh(S, check_finite=False)
    rounding = 4 * len(S) * np.finfo(float).eps * float(np.abs(values).max())
    return float(d.sum()) - g * limit + len(S) * min(float(values[0]) - rounding, 0.0)
