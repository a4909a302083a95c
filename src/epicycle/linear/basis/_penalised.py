"""Least squares in a basis, with a penalty on some of its functions:

    minimise  1/2 sum_i w_i (y_i - b - beta'phi(x_i))^2 + 1/2 sum_j d_j beta_j^2.

One pass over the rows gives the triangular factor of (1, phi(x), y), which adds up over batches and loses no digits to
the condition of the basis; everything else follows from that factor, for any penalty and any leading part of the basis.
With the constant eliminated, R'R = Phi'W Phi about the mean, and beta solves min |A beta - q|^2 for A = (R; sqrt(D)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dgeqrf, dgeqrf_lwork

from epicycle import engine
from epicycle.core._memory import require_memory
from epicycle.data import Batch, Data
from epicycle.linalg._least_squares import EPS, solve_triangular_factor
from epicycle.linalg._spectra import singular_vectors
from epicycle.linear.basis._bases import Basis, expanded_pieces
from epicycle.stats._moments import CentredFactor, TriangularFactor, centred_factor, target_columns


def _triangle_in_place(A: np.ndarray) -> np.ndarray:
    """R of a tall A in Fortran order, which is overwritten."""
    work = int(dgeqrf_lwork(*A.shape)[0])
    return np.triu(dgeqrf(A, lwork=work, overwrite_a=True)[0][: min(A.shape)])


def basis_statistic(batch: Batch, basis: Basis, shift: np.ndarray) -> tuple[TriangularFactor, float, int]:
    """(factor of the rows sqrt(w) (1, phi - s, y - s), total weight, rows of positive weight)."""
    d, Y = basis.n_functions, target_columns(batch.y)
    factor: Any = None  # a batch has rows, so that there is a first piece
    for part, phi in expanded_pieces(batch, basis):
        A = np.empty((len(phi), 1 + d + Y.shape[1]), order="F")
        A[:, 0] = 1.0
        np.subtract(phi, shift[:d], out=A[:, 1 : d + 1])
        np.subtract(Y[part], shift[d:], out=A[:, d + 1 :])
        if batch.weight is not None:
            A *= np.sqrt(batch.weight[part])[:, None]
        piece = TriangularFactor(_triangle_in_place(A))
        factor = piece if factor is None else factor + piece
    if batch.weight is None:
        return factor, float(batch.n_rows), batch.n_rows
    return factor, float(batch.weight.sum()), int(np.count_nonzero(batch.weight))


def factor_of(data: Data, basis: Basis, n_jobs: int | None) -> CentredFactor:
    """The factor of all rows about their mean: one pass."""
    d, k = basis.n_functions, data.n_targets
    size = d + k + 1
    require_memory(8.0 * size * size * 6, f"the factor of {d} basis functions", "lower the degree or use fewer knots")
    head = data.head()
    phi = basis.expand(np.asarray(head.X, dtype=np.float64))
    shift = np.concatenate([phi.mean(axis=0), target_columns(head.y).mean(axis=0)])
    factor, weight, n = engine.sum(basis_statistic, data, basis, shift, n_jobs=n_jobs)
    return centred_factor(factor.R, shift, d, weight, n)


@dataclass(frozen=True)
class PenalisedFit:
    """The solution for one penalty.

    coef, intercept : of shape (m, k) and (k,), for the first m functions.
    half : of shape (m, rank), with half half' = (Phi'W Phi + D)^-1 about the mean (its pseudo-inverse).
    effective_dof : trace of the matrix that maps y to its fit, the constant included.
    excess : distance of the objective from its minimum.
    """

    coef: np.ndarray
    intercept: np.ndarray
    half: np.ndarray
    rank: int
    effective_dof: float
    objective: float
    excess: float
    residual_squares: np.ndarray
    total_squares: np.ndarray


def solve_penalised(factor: CentredFactor, penalty: np.ndarray) -> PenalisedFit:
    """Solve for the first len(penalty) functions of the basis, with the penalties d_j.

    A penalty below the rounding of its column of R does not decide between solutions: 1 / d_j would only blow up that
    rounding. It counts as zero, and the solution of minimum norm, its limit for D -> 0, is the one that is found.
    """
    m, d = len(penalty), factor.R_x.shape[1]
    R, Q = factor.R_x[:, :m], factor.R_xy
    length = np.linalg.norm(R, axis=0)
    penalty = np.where(np.sqrt(penalty) < EPS * np.where(length > 0, length, length.max(initial=0.0)), 0.0, penalty)
    A = np.vstack([R, np.diag(np.sqrt(penalty))[penalty > 0]])
    q = np.vstack([Q, np.zeros((len(A) - len(R), Q.shape[1]))])
    left, triangle = scipy.linalg.qr(A, mode="economic", check_finite=False)
    solution = solve_triangular_factor(triangle, left.T @ q)
    coef = solution.x
    if solution.rank == m:
        half = scipy.linalg.solve_triangular(triangle[:m], np.eye(m), check_finite=False)
        hat = left
    else:
        half, hat = _pseudo_inverse_half(A, solution.rank)
    residual = q - A @ coef
    gradient = A.T @ residual
    excess = float(np.sum((half.T @ gradient) ** 2)) / 2
    rest = (factor.R_y**2).sum(axis=0)
    rss = ((Q - R @ coef) ** 2).sum(axis=0) + rest
    mean = factor.mean
    return PenalisedFit(
        coef,
        mean[d:] - mean[:m] @ coef,
        half,
        solution.rank,
        1 + float((hat[: len(R)] ** 2).sum()),
        float((residual**2).sum() + rest.sum()) / 2,
        excess,
        rss,
        (Q**2).sum(axis=0) + rest,
    )


def _pseudo_inverse_half(A: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """(half, left): half half' inverts A'A on the range of its scaled columns, left spans the range of A."""
    lengths = np.linalg.norm(A, axis=0)
    scale = np.where(lengths > 0, 1 / np.where(lengths > 0, lengths, 1.0), 0.0)
    U, s, Vt = singular_vectors(A * scale)
    return (scale[:, None] * Vt[:rank].T) / s[:rank], U[:, :rank]


def loo_statistic(
    batch: Batch, basis: Basis, mean: np.ndarray, weight: float, fits: list[PenalisedFit]
) -> tuple[np.ndarray, float]:
    """(sums of squares of the errors w_i (y_i - f without row i)^2 for every fit, total weight)."""
    d, Y = basis.n_functions, target_columns(batch.y)
    out = np.zeros(len(fits))
    for part, phi in expanded_pieces(batch, basis):
        phi -= mean[:d]
        w = np.ones(len(phi)) if batch.weight is None else batch.weight[part]
        for i, fit in enumerate(fits):
            own = phi[:, : len(fit.coef)]
            left = 1 - w * (1 / weight + ((own @ fit.half) ** 2).sum(axis=1))
            residual = Y[part] - mean[d:] - own @ fit.coef
            # A row that decides its own fit alone tells nothing about it: its error counts as infinite.
            with np.errstate(divide="ignore", invalid="ignore"):
                error = np.where((left > 1e-10)[:, None], residual / left[:, None], np.inf)
            out[i] += float(w[w > 0] @ (error[w > 0] ** 2).sum(axis=1))
    return out, float(batch.total_weight)


def leave_one_out(
    data: Data, basis: Basis, factor: CentredFactor, fits: list[PenalisedFit], n_jobs: int | None
) -> np.ndarray:
    """Mean squared error of every fit on rows that it did not see, exactly and without refitting: one pass.

    Without row i the fit misses y_i by r_i / (1 - h_i), with h_i its leverage.
    """
    sums, weight = engine.sum(loo_statistic, data, basis, factor.mean, factor.weight, fits, n_jobs=n_jobs)
    return np.asarray(sums / weight)
