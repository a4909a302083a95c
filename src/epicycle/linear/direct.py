"""Least squares and ridge in closed form, as accurate as the data allows.

One pass gives the second moments. If they are well conditioned, Cholesky's factor of them is enough. If they are not,
the factor is kept and the residuals are taken from the rows once or twice more (corrected seminormal equations),
which gives what QR would. Beyond that, or when columns depend on each other, the rows are factorised themselves (QR
block by block).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.data import Data
from epicycle.linear.moments import Moments, gradient_at, moments_of, refuse_non_finite, shift_of, triangular_factor_of
from epicycle.linear.quadratic_objective import excess_of
from epicycle.optim.least_squares import LeastSquares, solve_normal_equations, solve_triangular_factor

__all__ = ["LeastSquaresFit", "fit_direct", "settled_moments", "solve_moments"]

EPS = float(np.finfo(np.float64).eps)
#: Condition of X up to which the normal equations lose nothing that shows, and up to which refinement mends them.
PLAIN, REFINABLE = 1e2, 1e6


@dataclass(frozen=True)
class LeastSquaresFit:
    """A solution and what is known about it.

    coef : array of shape (p, k).
    intercept : array of shape (k,); zeros without one.
    excess : the objective's distance from its minimum, summed over targets.
    objective : the minimum found.
    total : half the weighted sum of squares of y about its mean (about zero without an intercept).
    residual_squares : weighted sums of squares of the residuals, of shape (k,).
    gram_inverse : (X'WX)^-1 about the mean, where it was asked for and exists.
    """

    coef: np.ndarray
    intercept: np.ndarray
    rank: int
    excess: float
    objective: float
    total: float
    residual_squares: np.ndarray
    gram_inverse: np.ndarray | None
    mean: np.ndarray
    weight: float
    n_rows: int
    moments: Moments | None
    method: str


def settled_moments(data: Data, intercept: bool, n_jobs: int | None) -> Moments:
    """Moments around a point near the mean; once more where the first rows did not tell where that is."""
    shift = shift_of(data) if intercept else np.zeros(data.n_features + data.n_targets)
    moments = moments_of(data, shift, n_jobs)
    if intercept and not data.sparse and moments.weight > 0:
        about_mean, about_shift = np.diagonal(moments.about_mean()), np.diagonal(moments.M)[:-1]
        if (about_mean < 1e-6 * about_shift).any() and not np.array_equal(moments.mean, shift):
            moments = moments_of(data, moments.mean, n_jobs)
    return moments


def _constant(moments: Moments) -> np.ndarray:
    """Features whose spread is nothing but rounding."""
    p = moments.p
    spread = np.diagonal(moments.about_mean())[:p]
    shifted = np.diagonal(moments.M)[:p]
    resolution = (4 * EPS * moments.mean[:p]) ** 2 * moments.weight
    return (spread <= 32 * EPS * shifted) | (spread <= resolution)


def solve_moments(
    moments: Moments, alpha: np.ndarray, intercept: bool
) -> tuple[np.ndarray, np.ndarray, list[LeastSquares]]:
    """(gradient at the solution, coef, one solution for each target) of the penalised normal equations."""
    p = moments.p
    S = moments.about_mean() if intercept else moments.about_zero()
    G, c = S[:p, :p].copy(), S[:p, p:].copy()
    if intercept:
        flat = _constant(moments)
        G[flat], G[:, flat], c[flat] = 0.0, 0.0, 0.0
    solved = [solve_normal_equations(_penalised(G, a), c[:, alpha == a]) for a in np.unique(alpha)]
    coef = np.empty((p, len(alpha)))
    for a, solution in zip(np.unique(alpha), solved, strict=True):
        coef[:, alpha == a] = solution.x
    return c - G @ coef - coef * alpha, coef, solved


def _penalised(G: np.ndarray, alpha: float) -> np.ndarray:
    if alpha == 0:
        return G
    G = G.copy()
    G[np.diag_indices_from(G)] += alpha
    return G


def fit_direct(
    data: Data, alpha: np.ndarray, *, intercept: bool, solver: str, inverse: bool, n_jobs: int | None
) -> LeastSquaresFit:
    """Fit by "cholesky", "qr", or whichever the condition asks for ("auto")."""
    wide = data.n_rows is not None and data.n_features >= data.n_rows
    if solver == "qr" or (solver == "auto" and wide and not data.sparse):
        return _by_qr(data, None, alpha, intercept, inverse, n_jobs)
    moments = settled_moments(data, intercept, n_jobs)
    gradient, coef, solved = solve_moments(moments, alpha, intercept)
    condition = max(s.condition for s in solved)
    if solver == "auto" and condition > REFINABLE:
        return _by_qr(data, moments, alpha, intercept, inverse, n_jobs)
    refined = condition > PLAIN
    if refined:
        gradient, coef = _refine(data, moments, alpha, intercept, gradient, coef, n_jobs)
    return conclude(
        moments, alpha, intercept, coef, gradient, solved, inverse=inverse, method="cholesky", refined=refined
    )


def conclude(
    moments: Moments,
    alpha: np.ndarray,
    intercept: bool,
    coef: np.ndarray,
    gradient: np.ndarray,
    solved: list[LeastSquares],
    *,
    inverse: bool,
    method: str,
    refined: bool = False,
) -> LeastSquaresFit:
    """Put a solution of the normal equations together with its excess; `refined`: its gradient is from the rows."""
    p = moments.p
    S = moments.about_mean() if intercept else moments.about_zero()
    G, c, yy = S[:p, :p], S[:p, p:], np.maximum(np.diagonal(S)[p:], 0.0)
    excess = excess_of(G, c, yy, alpha, coef, gradient, None if refined else moments.lengths)
    rss = np.maximum(yy - 2 * np.einsum("ij,ij->j", coef, c) + np.einsum("ij,ij->j", coef, G @ coef), 0.0)
    rank = min(s.rank for s in solved)
    gram_inverse = _inverse(G) if inverse else None
    mean = moments.mean
    b = mean[p:] - mean[:p] @ coef if intercept else np.zeros(coef.shape[1])
    objective = float(rss.sum() + (alpha * (coef**2).sum(axis=0)).sum()) / 2
    return LeastSquaresFit(
        coef, b, rank, excess, objective, float(yy.sum()) / 2, rss, gram_inverse,
        mean, moments.weight, moments.n_rows, moments, method,
    )  # fmt: skip


def _inverse(G: np.ndarray) -> np.ndarray | None:
    scale = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    if not (scale > 0).all():
        return None
    try:
        L = scipy.linalg.cholesky(G / scale / scale[:, None], lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    half = scipy.linalg.solve_triangular(L, np.diag(1 / scale), lower=True, check_finite=False)
    return half.T @ half


def _refine(
    data: Data,
    moments: Moments,
    alpha: np.ndarray,
    intercept: bool,
    gradient: np.ndarray,
    coef: np.ndarray,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Newton steps with gradients taken from the rows: each gains as many digits as the factor is good for."""
    p = moments.p
    S = moments.about_mean() if intercept else moments.about_zero()
    G, centre = S[:p, :p], (moments.mean - moments.shift if intercept else np.zeros(len(moments.shift)))
    best, last = (gradient, coef), np.inf
    for _ in range(3):
        offset = centre[p:] - centre[:p] @ coef
        g, in_b = gradient_at(data, moments.shift, coef, offset, n_jobs)
        if intercept:
            g = g - np.outer(centre[:p], in_b)
        g = g - alpha * coef
        step = np.column_stack(
            [solve_normal_equations(_penalised(G, a), col).x for a, col in zip(alpha, g.T, strict=True)]
        )
        size = float(np.abs(np.vdot(g, step)))
        if not size < last:
            break
        best, last, coef = (g, coef), size, coef + step
        if np.linalg.norm(step) <= 4 * EPS * np.linalg.norm(coef):
            break
    return best


def _by_qr(
    data: Data, moments: Moments | None, alpha: np.ndarray, intercept: bool, inverse: bool, n_jobs: int | None
) -> LeastSquaresFit:
    p, k = data.n_features, data.n_targets
    if moments is None:
        refuse_non_finite(data)
    shift = moments.shift if moments is not None else shift_of(data) if intercept else np.zeros(p + k)
    factor = triangular_factor_of(data, shift, intercept=intercept, n_jobs=n_jobs)
    R, Q = factor.R_x, factor.R_xy
    coef, rank = np.empty((p, k)), p
    steps, gradient = np.zeros((p, k)), np.zeros((p, k))
    for a in np.unique(alpha):
        columns = alpha == a
        A, q = R, Q[:, columns]
        if a > 0:
            A, q = np.vstack([R, np.sqrt(a) * np.eye(p)]), np.vstack([Q[:, columns], np.zeros((p, columns.sum()))])
        x, found = _solve_rows(A, q)
        g = A.T @ (q - A @ x)
        coef[:, columns], gradient[:, columns] = x, g
        steps[:, columns] = _solve_rows(A, q - A @ x)[0]
        rank = min(rank, found)
    rss = ((Q - R @ coef) ** 2).sum(axis=0) + (factor.R_y**2).sum(axis=0)
    yy = (Q**2).sum(axis=0) + (factor.R_y**2).sum(axis=0)
    gram_inverse = None
    if inverse and rank == p and len(R) >= p:
        half = scipy.linalg.solve_triangular(R[:p], np.eye(p), check_finite=False)
        gram_inverse = half @ half.T
    b = factor.mean[p:] - factor.mean[:p] @ coef if intercept else np.zeros(k)
    return LeastSquaresFit(
        coef, b, rank, float(np.abs(np.vdot(gradient, steps))) / 2,
        float(rss.sum() + (alpha * (coef**2).sum(axis=0)).sum()) / 2, float(yy.sum()) / 2, rss, gram_inverse,
        factor.mean, factor.weight, factor.n_rows, moments, "qr",
    )  # fmt: skip


def _solve_rows(A: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, int]:
    """(solution of minimum norm, rank) of min |A x - q|."""
    if len(A) < A.shape[1] or not np.array_equal(A, np.triu(A)):
        x, _, rank, _ = scipy.linalg.lstsq(A, q, cond=EPS * max(A.shape), lapack_driver="gelsd", check_finite=False)
        return x, int(rank)
    solution = solve_triangular_factor(A, q)
    return solution.x, solution.rank
