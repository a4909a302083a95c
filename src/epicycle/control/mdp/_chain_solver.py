"""Values of a Markov chain: (I - discount P) v = r, to the accuracy of the arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from epicycle.core._threads import single_threaded_blas

Array = np.ndarray
_DENSE = 600  # states up to which a dense factorisation takes milliseconds
_NEAR = 1 / 50  # of the states, within which the successors of one lie after reordering when factors stay sparse
_ROUNDS = 6  # of refinement
_GAIN = 1e-6  # by which a round of Krylov iterations shrinks the residual; more would stagnate at the rounding


def solve_chain(P: sp.csr_array, r: Array, discount: float) -> Array:
    """Solution by a dense or sparse factorisation, or by Krylov iterations where factors would fill up; refined."""
    with single_threaded_blas():
        A = sp.csc_array(sp.eye_array(P.shape[0], format="csc") - discount * P)
        solve = _solver(A)
        v = solve(r)
        size = np.abs(r) + discount * abs(P) @ np.abs(v)
        for _ in range(_ROUNDS):
            residual = r - A @ v
            if not (np.abs(residual) > 2 * np.finfo(float).eps * size).any():
                break
            v = v + solve(residual)
        return np.asarray(v)


def _solver(A: sp.csc_array) -> Callable[[Array], Any]:
    n = A.shape[0]
    if n <= _DENSE:
        factor = scipy.linalg.lu_factor(A.toarray())
        return lambda b: scipy.linalg.lu_solve(factor, b)
    if _local(A):
        factors = spl.splu(A)
        return lambda b: factors.solve(b)
    diagonal = A.diagonal()
    scale = spl.LinearOperator((n, n), matvec=lambda x: x / diagonal)

    def iterate(b: Array) -> Any:
        if not b.any():
            return b
        x, failed = spl.bicgstab(A, b, rtol=_GAIN, atol=0.0, maxiter=500, M=scale)
        # A chain that mixes slowly: the factorisation is then the lesser evil.
        return spl.splu(A).solve(b) if failed else x

    return iterate


def _local(A: sp.csc_array) -> bool:
    """Whether states lead to near ones only, so that a factor stays sparse: by the profile of a reordering."""
    order = sp.csgraph.reverse_cuthill_mckee(sp.csr_array(A), symmetric_mode=False)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    entries = A.tocoo()
    width = np.abs(place[entries.row] - place[entries.col]).max(initial=0)
    return bool(width <= _NEAR * len(order))
