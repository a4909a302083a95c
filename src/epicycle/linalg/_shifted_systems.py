"""Linear systems (K + D) C = Y with a kernel matrix K and a positive diagonal D, solved and proven.

A factor in float32 costs half of one in float64. As the preconditioner of conjugate gradients in float64 it gives the
digits of float64 wherever the condition of the system leaves it any; what is reported is the residual in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.core._exceptions import ConvergenceError, DataError
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linalg._cholesky import Factor, NotPositiveError, factor
from epicycle.linalg._spectra import one_eigenvalue

_ROWS = 512  # of a block that a thread takes at a time
_SINGLE_CONDITION = 3e5  # up to which a factor in float32 leaves refinement some digits: eps = 6e-8
_SMALL_ROWS = 256  # up to which float64 costs nothing


def matrix_product(K: np.ndarray, C: np.ndarray, threads: int) -> np.ndarray:
    """K C, rows of K shared by the threads."""
    n = len(K)
    out = np.empty((n, C.shape[1]))

    def work(start: int) -> None:
        np.matmul(K[start : start + _ROWS], C, out=out[start : start + _ROWS])

    in_order(range(0, n, _ROWS), work, None, threads)
    return out


@dataclass(frozen=True)
class SolvedSystem:
    """C with (K + D + jitter I) C = Y, what is left over, and the factor that it came from."""

    C: np.ndarray
    residual: np.ndarray
    jitter: float
    factor: Factor
    precision: str


def solve_shifted(
    K: np.ndarray, diagonal: np.ndarray, Y: np.ndarray, *, n_jobs: int | None = None, steps: int = 8
) -> SolvedSystem:
    """Solve (K + diag(diagonal)) C = Y for symmetric positive semi-definite K and Y of shape (n, t).

    Where rounding (or a kernel that is none) makes the matrix indefinite, the smallest jitter on the diagonal that
    helps is added; it is part of the result.
    """
    n = len(K)
    threads = n_threads(float(n) ** 3 / 3, n_jobs)
    least = float(diagonal.min())
    mean = float(np.diagonal(K).mean())
    mean = mean if mean > 0 or np.isnan(mean) else 1.0  # of a kernel that is zero everywhere
    jitter = 0.0
    # No eigenvalue is larger than the trace, which is at hand, or than a sum of absolute values of a row.
    single = n > _SMALL_ROWS and least > 0
    if single and float(np.trace(K)) + float(diagonal.max()) >= _SINGLE_CONDITION * least:
        single = _bound(K, threads) + float(diagonal.max()) < _SINGLE_CONDITION * least
    while True:
        try:
            found = _factored(K, diagonal + jitter, np.float32 if single else np.float64, threads)
        except NotPositiveError:
            if single:
                single = False
                continue
            jitter = mean * 1e-15 * n if jitter == 0.0 else 10 * jitter
            if not jitter <= mean < np.inf:  # a mean that overflowed is never reached
                raise ConvergenceError(
                    "the kernel matrix is not positive semi-definite, not even with its own mean on the diagonal; "
                    "is_mercer(kernel, X) shows where"
                ) from None
            continue
        C, residual, good = _refine(K, diagonal + jitter, Y, found, threads, steps)
        if single and not good:
            single = False
            continue
        if not np.isfinite(C).all():
            raise DataError("alpha, sample_weight: coefficients of kernel values this small overflow; raise alpha")
        return SolvedSystem(C, residual, jitter, found, "float32" if single else "float64")


def least_eigenvalue(K: np.ndarray, n_jobs: int | None = None) -> float:
    """0 where K is positive semi-definite to rounding, which a Cholesky factor proves, else its least eigenvalue."""
    n = len(K)
    threads = n_threads(float(n) ** 3 / 3, n_jobs)
    slack = 10 * n * float(np.finfo(np.float64).eps) * _bound(K, threads)
    if slack == 0.0:
        return 0.0
    try:
        _factored(K, np.full(n, slack), np.float64, threads)
    except NotPositiveError:
        least = one_eigenvalue(K, 0)
        return least if least < -slack else 0.0
    return 0.0


def _bound(K: np.ndarray, threads: int) -> float:
    """The largest sum of absolute values of a row, which bounds the largest eigenvalue."""
    sums: list[float] = []

    def work(start: int) -> float:
        return float(np.abs(K[start : start + _ROWS]).sum(axis=1).max())

    in_order(range(0, len(K), _ROWS), work, sums.append, threads)
    return max(sums)


def _factored(K: np.ndarray, diagonal: np.ndarray, dtype: type, threads: int) -> Factor:
    S: np.ndarray = np.empty(K.shape, dtype=dtype)

    def copy(start: int) -> None:
        stop = min(start + _ROWS, len(K))
        S[start:stop, :stop] = K[start:stop, :stop]

    in_order(range(0, len(K), _ROWS), copy, None, threads)
    index = np.arange(len(K))
    S[index, index] += diagonal.astype(dtype)
    return factor(S, threads)


def _refine(
    K: np.ndarray, diagonal: np.ndarray, Y: np.ndarray, found: Factor, threads: int, steps: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Conjugate gradients preconditioned by the factor, every column by itself, until only rounding is left."""
    D = diagonal[:, None]
    size = np.linalg.norm(Y, axis=0)
    enough = 1e-14 * size
    C = found.solve(Y)
    R = Y - (matrix_product(K, C, threads) + D * C)
    P, rz = np.zeros_like(Y), np.ones(Y.shape[1])
    left = np.linalg.norm(R, axis=0)
    for step in range(steps):
        if (left <= enough).all():
            break
        Z = found.solve(R)
        before, rz = rz, np.einsum("ij,ij->j", R, Z)
        P = Z + (np.divide(rz, before, out=np.zeros_like(rz), where=before != 0) if step else 0.0) * P
        SP = matrix_product(K, P, threads) + D * P
        curvature = np.einsum("ij,ij->j", P, SP)
        length = np.divide(rz, curvature, out=np.zeros_like(rz), where=curvature > 0)
        R_next = R - length * SP
        better = np.linalg.norm(R_next, axis=0) < left
        if not better.any():
            break
        C, R = np.where(better, C + length * P, C), np.where(better, R_next, R)
        left, earlier = np.linalg.norm(R, axis=0), left
        if step and (left > 0.5 * earlier).all():
            break
    return C, R, bool((left <= 1e-11 * size).all())
