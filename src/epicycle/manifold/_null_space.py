"""The least eigenvectors of a sparse M >= 0 with M 1 = 0, constants left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh, splu

from epicycle.core._exceptions import ConvergenceError
from epicycle.linalg._signs import oriented
from epicycle.linalg._spectra import some_eigenvectors

_DENSE = 200  # rows up to which LAPACK is used with "auto"
_SHIFT = 1e-13  # of the norm of M, which makes it regular


@dataclass(frozen=True)
class NullSpace:
    """Eigenvalues, rising, one more than vectors where there is one; the largest residual relative to the norm of M."""

    values: np.ndarray
    vectors: np.ndarray
    residual: float


def null_space(M: sp.csr_array, d: int, solver: str, tol: float, max_iter: int, rng: np.random.Generator) -> NullSpace:
    """The d least eigenvectors orthogonal to constants."""
    n = int(M.shape[0])
    wanted = min(d + 1, n - 1)
    norm = max(float(abs(M).sum(axis=0).max()), np.finfo(np.float64).tiny)
    if solver == "dense" or (solver == "auto" and (n <= _DENSE or wanted > n // 4)) or wanted >= n - 1:
        # constants get the largest eigenvalue there is
        values, vectors = some_eigenvectors(M.toarray() + 2 * norm / n, 0, wanted - 1)
    else:
        values, vectors = _by_inverse(M, wanted, norm, tol, max_iter, rng)
    order = np.argsort(values, kind="stable")
    values, vectors = values[order], vectors[:, order][:, :d]
    vectors = vectors - vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=0)
    left = M @ vectors - vectors * values[: vectors.shape[1]]
    residual = float(np.linalg.norm(left, axis=0).max(initial=0.0)) / norm
    return NullSpace(values.clip(min=0.0), oriented(vectors), residual)


def _by_inverse(
    M: sp.csr_array, k: int, norm: float, tol: float, max_iter: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos' method with the inverse of M + shift on the complement of constants."""
    n, shift = int(M.shape[0]), _SHIFT * norm
    shifted = sp.csc_array(M + sp.diags_array(np.full(n, shift)))
    try:
        factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # a pivot that is zero to rounding
        factor = splu(shifted)

    def inverse(x: np.ndarray) -> np.ndarray:
        y = factor.solve(x - x.mean())
        return np.asarray(y - y.mean())

    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)
    try:
        vectors = eigsh(operator, k, which="LA", v0=rng.uniform(-1, 1, n), tol=tol, maxiter=max_iter)[1]
    except (ArpackNoConvergence, ArpackError) as error:
        raise ConvergenceError(
            f"max_iter={max_iter}: Error in determining null-space with ARPACK, which did not find {k} eigenvectors; "
            "raise max_iter, or take eigen_solver='dense'"
        ) from error
    # quotients of Rayleigh are as accurate as M; the reciprocal of a large number is not
    return np.asarray(np.einsum("ij,ij->j", vectors, M @ vectors)), vectors
