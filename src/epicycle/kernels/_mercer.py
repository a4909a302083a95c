"""Mercer's condition: every matrix of the values of a kernel is symmetric without negative eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.core._memory import require_memory
from epicycle.kernels._compositions import as_operand
from epicycle.kernels._gram import cross_matrix
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._prepared import as_rows


@dataclass(frozen=True)
class MercerCheck:
    """The result of :func:`is_mercer`; true where the matrix is that of a Mercer kernel, to rounding.

    Attributes
    ----------
    holds : bool
    eigenvalue : float
        The least eigenvalue of the symmetric part of the matrix.
    direction : ndarray of shape (n,)
        Its eigenvector c, of length 1: the sum of c_i c_j k(x_i, x_j) is the eigenvalue.
    tolerance : float
        Eigenvalues above minus this are taken for rounding.
    asymmetry : float
        The largest difference of k(x_i, x_j) and k(x_j, x_i).
    rows : tuple of int
        The two rows with that difference.
    """

    holds: bool
    eigenvalue: float
    direction: np.ndarray
    tolerance: float
    asymmetry: float
    rows: tuple[int, int]

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        if self.holds:
            return f"Mercer on these rows: symmetric, least eigenvalue {self.eigenvalue:.2e}"
        if self.asymmetry > self.tolerance:
            i, j = self.rows
            return f"not Mercer: k(x_{i}, x_{j}) and k(x_{j}, x_{i}) differ by {self.asymmetry:.2e}"
        return f"not Mercer: the sum of c_i c_j k(x_i, x_j) is {self.eigenvalue:.2e} for c = direction"


def is_mercer(kernel: Any, X: Any, *, tol: float | None = None) -> MercerCheck:
    """Whether the matrix of kernel values of the rows of X is symmetric and positive semi-definite.

    A kernel that fails on some rows is no Mercer kernel; one that passes has only not been caught.

    Parameters
    ----------
    kernel : Kernel or callable
        A function f(X, Z) -> matrix is taken as it is.
    X : rows
    tol : float, optional
        What counts as rounding, relative to the largest eigenvalue; default: 10 n times the machine precision.

    Returns
    -------
    MercerCheck
        True or false, with the offending direction.

    Examples
    --------
    >>> from epicycle.kernel import Gaussian, Sigmoid, is_mercer
    >>> X = [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]
    >>> print(is_mercer(Gaussian(), X))
    Mercer on these rows: symmetric, least eigenvalue 5.43e-01
    >>> bool(is_mercer(Sigmoid(gamma=1.0, c=-1.0), X))
    False
    """
    k: Kernel = as_operand(kernel)
    rows = as_rows(X, k, "X")
    A = k.prepare(rows)
    n = A.n_rows
    require_memory(3 * 8.0 * n * n, f"the eigenvalues of a kernel matrix of {n:,} rows", "take fewer rows")
    K = cross_matrix(k, A, A, np.dtype(np.float64), None)  # all of it: a user's function may not be symmetric
    # Both conditions are checked to the rounding of the matrix: 10 n eps of its norm.
    gap = np.abs(K - K.T)
    i, j = np.unravel_index(int(gap.argmax()), gap.shape)
    asymmetry = float(gap[i, j])
    values, vectors = scipy.linalg.eigh((K + K.T) / 2)
    scale = float(np.abs(values).max())
    tolerance = scale * (10 * n * float(np.finfo(np.float64).eps) if tol is None else float(tol))
    holds = bool(values[0] >= -tolerance and asymmetry <= max(tolerance, 1e-12 * float(np.abs(K).max())))
    return MercerCheck(holds, float(values[0]), vectors[:, 0], tolerance, asymmetry, (int(i), int(j)))
