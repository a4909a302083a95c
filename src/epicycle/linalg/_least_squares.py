"""Least squares  min_x |A x - b|^2  from what is left of A after one pass over its rows.

From G = A'A and c = A'b: Cholesky with iterative refinement, as good as cond(A)^2 allows. From a triangular factor,
A = Q R and q = Q'b: back substitution, as good as cond(A) allows. If A has dependent columns, both give the solution
of minimum norm.

Columns are scaled to about unit length first: neither the rank nor the condition then depends on
the units in which the columns are measured. (Unit columns nearly minimise the condition: van der Sluis 1969.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, qr, solve_triangular
from scipy.linalg.lapack import dpocon

from epicycle.core._exceptions import DataError
from epicycle.linalg._spectra import singular_vectors

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
#: Refinement keeps residuals in extended precision up to this size; beyond it the products would dominate the cost.
EXTENDED = 1_500


@dataclass(frozen=True)
class LeastSquares:
    """A solution.

    x : array of shape (d,) or (d, k).
    rank : number of independent columns.
    condition : condition number of A with its columns scaled to about unit length; from G an estimate of it. inf when
        the rank is not full.
    null_space : orthonormal columns that A maps to zero; of shape (d, d - rank).
    """

    x: Array
    rank: int
    condition: float
    null_space: Array


def solve_normal_equations(G: Array, c: Array, *, rank_tol: float | None = None) -> LeastSquares:
    """Solve G x = c for G = A'A and c = A'b.

    Parameters
    ----------
    G : array of shape (d, d)
        Symmetric, positive semi-definite.
    c : array of shape (d,) or (d, k)
        One right-hand side or several.
    rank_tol : float, optional
        Eigenvalues of the scaled G below `rank_tol` times the largest count as zero. Default: 8 d times the machine
        precision.

    Returns
    -------
    LeastSquares
    """
    G, c = _checked("G", G, c, square=True)
    d = len(G)
    tol = 8 * d * EPS if rank_tol is None else rank_tol
    scale = _unit_scale(np.sqrt(np.maximum(np.diagonal(G), 0.0)))
    S = G * scale * scale[:, None]
    try:
        factor = cho_factor(S, lower=True, check_finite=False)
    except LinAlgError:
        return _minimum_norm_from_gram(S, c, scale, tol)
    rcond, _ = dpocon(factor[0], np.abs(S).sum(axis=0).max(initial=0.0), uplo="L")
    if rcond <= tol:
        return _minimum_norm_from_gram(S, c, scale, tol)
    rhs = _scaled(c, scale)
    x = _scaled(_refined(S, factor, rhs), scale)
    return LeastSquares(x, d, float(1 / np.sqrt(rcond)), np.zeros((d, 0)))


def solve_triangular_factor(R: Array, q: Array, *, rank_tol: float | None = None) -> LeastSquares:
    """Solve min |R x - q| for the factor of A = Q R and q = Q'b.

    Parameters
    ----------
    R : array of shape (m, d)
        Upper triangular, or trapezoidal when A has fewer rows than columns.
    q : array of shape (m,) or (m, k)
        One right-hand side or several.
    rank_tol : float, optional
        Singular values of the scaled R below `rank_tol` times the largest count as zero. Default: 4 max(m, d) times the
        machine precision.

    Returns
    -------
    LeastSquares
    """
    R, q = _checked("R", R, q, square=False)
    m, d = R.shape
    tol = 4 * max(m, d) * EPS if rank_tol is None else rank_tol
    scale = _unit_scale(np.linalg.norm(R, axis=0))
    U, s, Vt = singular_vectors(R * scale, full_matrices=True)
    rank = int(np.count_nonzero(s > tol * s.max(initial=0.0)))
    if rank == d:
        x = np.asarray(solve_triangular(R[:d], q[:d], check_finite=False))
        return LeastSquares(x, d, float(s[0] / s[-1]) if d else 1.0, np.zeros((d, 0)))
    particular = Vt[:rank].T @ _scaled(U[:, :rank].T @ q, 1 / s[:rank])
    return _minimum_norm(_scaled(particular, scale), Vt[rank:].T, scale, rank)


def _refined(S: Array, factor: tuple[Array, bool], rhs: Array) -> Array:
    """S^-1 rhs; each sweep solves for the residual and stops once that no longer shrinks."""
    wide = np.longdouble if len(S) <= EXTENDED else np.float64
    S_wide, rhs_wide = S.astype(wide), rhs.astype(wide)
    x = np.asarray(cho_solve(factor, rhs, check_finite=False))
    last = np.inf
    for _ in range(5):
        residual = (rhs_wide - S_wide @ x.astype(wide)).astype(np.float64)
        correction = np.asarray(cho_solve(factor, residual, check_finite=False))
        size = float(np.abs(correction).max(initial=0.0))
        if not size < 0.5 * last:
            break
        x, last = x + correction, size
        if size <= EPS * float(np.abs(x).max(initial=0.0)):
            break
    return x


def _minimum_norm_from_gram(S: Array, c: Array, scale: Array, tol: float) -> LeastSquares:
    eigenvalues, V = eigh(S, check_finite=False)
    kept = eigenvalues > tol * max(float(eigenvalues.max(initial=0.0)), 0.0)
    V_kept = V[:, kept]
    particular = V_kept @ _scaled(V_kept.T @ _scaled(c, scale), 1 / eigenvalues[kept])
    if kept.all():
        condition = float(np.sqrt(eigenvalues[-1] / eigenvalues[0])) if len(c) else 1.0
        return LeastSquares(_scaled(particular, scale), len(c), condition, np.zeros((len(c), 0)))
    return _minimum_norm(_scaled(particular, scale), V[:, ~kept], scale, int(kept.sum()))


def _minimum_norm(x: Array, null_scaled: Array, scale: Array, rank: int) -> LeastSquares:
    """Take out of x what A does not see. The null space was found for scaled columns, so it is scaled back first.

    A column of zeros has scale 0 and a null direction of its own.
    """
    null = np.where((scale > 0)[:, None], null_scaled * scale[:, None], null_scaled)
    lengths = np.linalg.norm(null, axis=0)
    basis = qr(null / np.where(lengths > 0, lengths, 1.0), mode="economic", check_finite=False)[0]
    x = x - basis @ (basis.T @ x)
    return LeastSquares(x, rank, np.inf, basis)


def _unit_scale(lengths: Array) -> Array:
    """Powers of two, which scale without rounding, that bring lengths to within a factor of sqrt(2) of one."""
    exponents = np.round(np.log2(np.where(lengths > 0, lengths, 1.0)))
    return np.where(lengths > 0, np.exp2(-exponents), 0.0)


def _scaled(c: Array, scale: Array) -> Array:
    return c * scale if c.ndim == 1 else c * scale[:, None]


def _checked(name: str, M: Array, rhs: Array, *, square: bool) -> tuple[Array, Array]:
    M, rhs = np.asarray(M, dtype=np.float64), np.asarray(rhs, dtype=np.float64)
    if M.ndim != 2 or (square and M.shape[0] != M.shape[1]):
        raise DataError(f"{name} must be a {'square ' if square else ''}matrix, got shape {M.shape}")
    if rhs.ndim not in (1, 2) or len(rhs) != len(M):
        raise DataError(f"the right-hand side must have {len(M)} rows as {name} has, got shape {rhs.shape}")
    if not (np.isfinite(M).all() and np.isfinite(rhs).all()):
        raise DataError(f"{name} and its right-hand side must be finite; the sums over the rows overflowed or hold nan")
    return M, rhs
