"""Singular values and eigenvalues that LAPACK finds: the fast algorithm first, the safe one where it gives up."""

from __future__ import annotations

import numpy as np
import scipy.linalg


def singular_vectors(A: np.ndarray, *, full_matrices: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(U, s, V') with A = U diag(s) V' and s falling, for a finite A.

    Divide and conquer is the fast algorithm, and on a few ordinary matrices (many equal singular values) it does not
    converge. QR iterations, which are some times slower, do.
    """
    try:
        U, s, Vt = scipy.linalg.svd(A, full_matrices=full_matrices, check_finite=False)
    except (np.linalg.LinAlgError, ValueError):
        if not np.isfinite(A).all():
            raise np.linalg.LinAlgError("the matrix holds NaN or infinity") from None
        U, s, Vt = scipy.linalg.svd(A, full_matrices=full_matrices, check_finite=False, lapack_driver="gesvd")
    return U, s, Vt


def some_eigenvectors(S: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """(values, rising; vectors as columns) of the eigenvalues of a symmetric S with the numbers first..last.

    Bisection for some of them can miss some of many equal ones and says "Internal Error": then all are computed.
    """
    try:
        values, vectors = scipy.linalg.eigh(S, subset_by_index=(first, last), check_finite=False)
    except np.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(S, check_finite=False, driver="evd")
        values, vectors = values[first : last + 1], vectors[:, first : last + 1]
    return values, vectors


def one_eigenvalue(S: np.ndarray, number: int) -> float:
    """The eigenvalue of a symmetric S that `number` others precede."""
    try:
        return float(scipy.linalg.eigvalsh(S, subset_by_index=(number, number), check_finite=False)[0])
    except np.linalg.LinAlgError:
        return float(scipy.linalg.eigvalsh(S, check_finite=False, driver="evd")[number])
