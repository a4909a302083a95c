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
DENSE = 600  # states up to which a dense factorisation takes milliseconds
_NEAR = 1 / 50  # of the states, within which the successors of one lie after reordering when factors stay sparse
_BAND_WORK = 5e10  # operations of a band factorisation that are still a matter of seconds
_ROUNDS = 6  # of refinement
_GAIN = 1e-6  # by which a round of Krylov iterations shrinks the residual; more would stagnate at the rounding
_ROUGH_GAIN = 1e-3
_KRYLOV = 100  # iterations after which a factorisation is looked into


def solve_chain(
    P: sp.csr_array, r: Array, discount: float, *, start: Array | None = None, rough: bool = False
) -> Array:
    """Solution by a dense factorisation, Krylov iterations, or a sparse factorisation where these are slow; refined.

    From `start`, if given. A rough solution, for large chains only, is that of a single round.
    """
    with single_threaded_blas():
        A = sp.csr_array(sp.eye_array(P.shape[0], format="csr") - discount * P)
        rough = rough and len(r) > DENSE
        solve = _solver(A, _ROUGH_GAIN if rough else _GAIN)
        v = solve(r) if start is None else start + solve(r - A @ start)
        if rough or not np.isfinite(v).all():  # a chain that all but never ends has no values in double precision
            return np.asarray(v)
        size = np.abs(r) + discount * abs(P) @ np.abs(v)
        least = np.maximum(size, np.finfo(float).tiny)
        before = np.inf
        for _ in range(_ROUNDS):
            residual = r - A @ v
            worst = float((np.abs(residual) / least).max(initial=0.0))
            if worst <= 2 * np.finfo(float).eps or worst > 0.5 * before:  # what is left is rounding
                break
            v, before = v + solve(residual), worst
        return np.asarray(v)


def _solver(A: sp.csr_array, gain: float) -> Callable[[Array], Any]:
    n = A.shape[0]
    if n <= DENSE:
        factor = scipy.linalg.lu_factor(A.toarray())
        return lambda b: scipy.linalg.lu_solve(factor, b)
    diagonal = A.diagonal()
    scale = spl.LinearOperator((n, n), matvec=lambda x: x / diagonal)
    factors: list[Any] = []

    def iterate(b: Array) -> Any:
        size = np.linalg.norm(b)
        if size == 0:
            return b
        if factors:
            return factors[0].solve(b)
        # Of length one: what the iterations take for a breakdown is an absolute number.
        x, failed = spl.bicgstab(A, b / size, rtol=gain, atol=0.0, maxiter=_KRYLOV, M=scale)
        if failed and _local(A):
            factors.append(spl.splu(sp.csc_array(A)))
            return factors[0].solve(b)
        if failed:  # a chain that mixes slowly and whose factors would fill up
            x, failed = spl.gmres(A, b / size, x0=x, rtol=gain, atol=0.0, restart=60, maxiter=30, M=scale)
        return size * x

    return iterate


def _local(A: sp.csr_array) -> bool:
    """Whether a factor stays sparse or small, because states lead to near ones: by the width after a reordering."""
    order = sp.csgraph.reverse_cuthill_mckee(A, symmetric_mode=False)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    entries = A.tocoo()
    width = float(np.abs(place[entries.row] - place[entries.col]).max(initial=0))
    return bool(width <= _NEAR * len(order) or len(order) * width**2 <= _BAND_WORK)
