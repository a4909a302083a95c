"""Which kernels are Mercer kernels by construction, and what can be seen of the others."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from epicycle.kernels._compositions import Normalized, Power, Product, Scaled, Sum
from epicycle.kernels._given import FunctionKernel, Precomputed
from epicycle.kernels._inner_products import Polynomial, Sigmoid
from epicycle.kernels._kernel import Kernel

__all__ = ["known_mercer", "least_eigenvalue", "never_negative"]


def known_mercer(kernel: Kernel) -> bool:
    """Whether the kernel is positive semi-definite by construction."""
    if isinstance(kernel, Sum | Product):
        return known_mercer(kernel.left) and known_mercer(kernel.right)
    if isinstance(kernel, Scaled | Power | Normalized):
        return known_mercer(kernel.kernel)
    if isinstance(kernel, Polynomial):
        return bool(kernel.c >= 0)
    return not isinstance(kernel, Sigmoid | FunctionKernel | Precomputed)


def least_eigenvalue(K: np.ndarray) -> float:
    """The least eigenvalue of a symmetric matrix if it is negative beyond rounding, otherwise 0."""
    scale = float(np.abs(K).max())
    rounding = 10 * len(K) * np.finfo(np.float64).eps * max(scale, float(np.abs(np.diagonal(K)).sum()))
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += max(rounding, 1e-300)
    _, failed = scipy.linalg.lapack.dpotrf(shifted, overwrite_a=1, clean=0)
    if not failed:
        return 0.0
    least = float(scipy.linalg.eigh(K, eigvals_only=True, subset_by_index=[0, 0])[0])
    return min(least, 0.0) if least < -rounding else 0.0


def never_negative(curvature: float, scale: float) -> float:
    """A curvature that was seen if it is negative beyond rounding, otherwise 0."""
    return curvature if curvature < -1e-6 * max(scale, 1e-300) else 0.0
