"""Least squares and ridge in closed form, as accurate as the data allows.

One pass gives the second moments. If they are well conditioned, Cholesky's factor of them is enough. If they are not,
the factor is kept and the residuals are taken from the rows once or twice more (corrected seminormal equations),
which gives what QR would. Beyond that, or when columns depend on each other, the rows are factorised themselves (QR
block by block).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from epicycle.data import Data
from epicycle.linalg._dependencies import Dependencies, dependencies_of
from epicycle.linalg._least_squares import LeastSquares, solve_normal_equations, solve_triangular_factor
from epicycle.linalg._spectra import singular_vectors
from epicycle.linear.least_squares._objective import excess_of
from epicycle.optim._quadratic_penalty import QuadraticPenalty
from epicycle.stats._moments import (
    CentredFactor,
    Moments,
    gradient_at,
    moments_of,
    refuse_non_finite,
    shift_of,
    triangular_factor_of,
)

EPS = float(np.finfo(np.float64).eps)
#: Condition of X up to which the normal equations lose nothing that shows, and up to which refinement mends them.
PLAIN_CONDITION, REFINABLE_CONDITION = 1e2, 1e6
#: Features up to which dependent ones are looked for.
MAX_NAMED = 2000


@dataclass(frozen=True)
class LeastSquaresFit:
    """A solution and what is known about it.

    coef : array of shape (p, k).
    intercept : array of shape (k,); zeros without one.
    excess : the objective's distance from its minimum, summed over targets.
    objective : the minimum found.
    squares : weighted sums of squares of y about its mean (about zero without an intercept), of shape (k,).
    residual_squares : weighted sums of squares of the residuals, of shape (k,).
    root : A with A A' a generalised inverse of X'WX about the mean, of shape (p, rank), where it was asked for. Rows of
        dependent features are zero.
    dependencies : which features depend on which, where the rank is not full.
    lengths : of the columns of x about their mean, of shape (p,).
    dof : effective degrees of freedom of each target without the intercept, where the fit knows them.
    """

    coef: np.ndarray
    intercept: np.ndarray
    rank: int
    excess: float
    objective: float
    squares: np.ndarray
    residual_squares: np.ndarray
    root: np.ndarray | None
    dependencies: Dependencies | None
    mean: np.ndarray
    weight: float
    n_rows: int
    log_weight: float
    moments: Moments | None
    method: str
    lengths: np.ndarray
    dof: np.ndarray | None = field(default=None)

    @property
    def total(self) -> float:
        """Half the sum of squares of y, over all targets."""
        return float(self.squares.sum()) / 2


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


def normal_equations(moments: Moments, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    """(X'WX, X'WY) about the mean (about zero without an intercept); constant features are exactly zero."""
    p = moments.p
    S = moments.about_mean() if intercept else moments.about_zero()
    G, c = S[:p, :p].copy(), S[:p, p:].copy()
    if intercept:
        flat = _constant(moments)
        G[flat], G[:, flat], c[flat] = 0.0, 0.0, 0.0
    return G, c


def solve_moments(
    moments: Moments, penalty: QuadraticPenalty, intercept: bool
) -> tuple[np.ndarray, np.ndarray, list[LeastSquares]]:
    """(gradient at the solution, coef, one solution for each distinct alpha) of the penalised normal equations."""
    G, c = normal_equations(moments, intercept)
    alpha = penalty.alpha
    distinct = np.unique(alpha)
    solved = [solve_normal_equations(penalty.added_to(G, float(a)), c[:, alpha == a]) for a in distinct]
    coef = np.empty(c.shape)
    for a, solution in zip(distinct, solved, strict=True):
        coef[:, alpha == a] = solution.x
    return c - G @ coef - penalty.gradient(coef), coef, solved


def fit_direct(
    data: Data,
    penalty: QuadraticPenalty,
    *,
    intercept: bool,
    solver: str,
    inverse: bool,
    n_jobs: int | None,
    moments: Moments | None = None,
) -> LeastSquaresFit:
    """Fit by "cholesky", "qr", or whichever the condition asks for ("auto"); `moments` where they are known already."""
    wide = data.n_rows is not None and data.n_features >= data.n_rows
    if solver == "qr" or (solver == "auto" and wide and not data.sparse):
        return _by_qr(data, moments, penalty, intercept, inverse, n_jobs)
    if moments is None:
        moments = settled_moments(data, intercept, n_jobs)
    gradient, coef, solved = solve_moments(moments, penalty, intercept)
    condition = max(s.condition for s in solved)
    if solver == "auto" and condition > REFINABLE_CONDITION:
        return _by_qr(data, moments, penalty, intercept, inverse, n_jobs)
    refined = condition > PLAIN_CONDITION
    if refined:
        gradient, coef = _refine(data, moments, penalty, intercept, gradient, coef, n_jobs)
    return conclude(
        moments, penalty, intercept, coef, gradient, solved, inverse=inverse, method="cholesky", refined=refined
    )


def conclude(
    moments: Moments,
    penalty: QuadraticPenalty,
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
    excess = excess_of(G, c, yy, penalty, coef, gradient, None if refined else moments.lengths)
    rss = np.maximum(yy - 2 * np.einsum("ij,ij->j", coef, c) + np.einsum("ij,ij->j", coef, G @ coef), 0.0)
    worst = min(solved, key=lambda s: s.rank)
    dependencies = None
    if worst.null_space.shape[1] and p <= MAX_NAMED:
        lengths = np.sqrt(np.maximum(np.diagonal(normal_equations(moments, intercept)[0]), 0.0))
        dependencies = dependencies_of(worst.null_space, lengths)
    mean = moments.mean
    b = mean[p:] - mean[:p] @ coef if intercept else np.zeros(coef.shape[1])
    return LeastSquaresFit(
        coef,
        b,
        worst.rank,
        excess,
        float(rss.sum()) / 2 + penalty.value(coef),
        yy,
        rss,
        _root_of(G, dependencies) if inverse else None,
        dependencies,
        mean,
        moments.weight,
        moments.n_rows,
        moments.log_weight,
        moments,
        method,
        np.sqrt(np.maximum(np.diagonal(G), 0.0)),
    )


def _root_of(G: np.ndarray, dependencies: Dependencies | None) -> np.ndarray | None:
    """A with A A' a generalised inverse of G: that of the independent features, and zeros."""
    if dependencies is None:
        return gram_root(G)
    kept = dependencies.independent
    part = gram_root(G[np.ix_(kept, kept)])
    if part is None:
        return None
    root = np.zeros((len(G), len(kept)))
    root[kept] = part
    return root


def gram_root(G: np.ndarray) -> np.ndarray | None:
    """A with A A' = G^-1, upper triangular; None where G is not positive definite."""
    scale = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    if not (scale > 0).all():
        return None
    try:
        L = scipy.linalg.cholesky(G / scale / scale[:, None], lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    return np.asarray(scipy.linalg.solve_triangular(L, np.diag(1 / scale), lower=True, check_finite=False).T)


def _refine(
    data: Data,
    moments: Moments,
    penalty: QuadraticPenalty,
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
        g = g - penalty.gradient(coef)
        step = np.empty(g.shape)
        for a in np.unique(penalty.alpha):
            of_a = penalty.alpha == a
            step[:, of_a] = solve_normal_equations(penalty.added_to(G, float(a)), g[:, of_a]).x
        size = float(np.abs(np.vdot(g, step)))
        if not size < last:
            break
        best, last, coef = (g, coef), size, coef + step
        if np.linalg.norm(step) <= 4 * EPS * np.linalg.norm(coef):
            break
    return best


# ------------------------------------------------------------------------------------------------ from the rows


def _by_qr(
    data: Data,
    moments: Moments | None,
    penalty: QuadraticPenalty,
    intercept: bool,
    inverse: bool,
    n_jobs: int | None,
) -> LeastSquaresFit:
    p, k = data.n_features, data.n_targets
    if moments is None:
        refuse_non_finite(data)
    shift = moments.shift if moments is not None else shift_of(data) if intercept else np.zeros(p + k)
    factor = triangular_factor_of(data, shift, intercept=intercept, n_jobs=n_jobs)
    return fit_from_factor(factor, penalty, intercept, inverse=inverse, moments=moments)


def fit_from_factor(
    factor: CentredFactor, penalty: QuadraticPenalty, intercept: bool, *, inverse: bool, moments: Moments | None = None
) -> LeastSquaresFit:
    """Fit from the triangular factor of the rows."""
    R, Q = factor.R_x, factor.R_xy
    p, k = R.shape[1], Q.shape[1]
    alpha = penalty.alpha
    coef, rank, excess, dof = np.empty((p, k)), p, 0.0, None
    if (alpha > 0).all() and penalty.is_diagonal and penalty.floor > 0:
        coef, rank, excess, dof = _by_singular_values(R, Q, penalty)
    else:
        for a in np.unique(alpha):
            columns = alpha == a
            A, q = R, Q[:, columns]
            if a > 0:
                below = penalty.rows(float(a))
                A, q = np.vstack([R, below]), np.vstack([q, np.zeros((len(below), columns.sum()))])
            x, found = _solve_rows(A, q)
            excess += float(np.abs(np.vdot(A.T @ (q - A @ x), _solve_rows(A, q - A @ x)[0]))) / 2
            coef[:, columns], rank = x, min(rank, found)
    rss = ((Q - R @ coef) ** 2).sum(axis=0) + (factor.R_y**2).sum(axis=0)
    yy = (Q**2).sum(axis=0) + (factor.R_y**2).sum(axis=0)
    dependencies = None
    if rank < p <= MAX_NAMED:
        a = float(alpha.min())
        dependencies = _dependencies(np.vstack([R, penalty.rows(a)]) if a > 0 else R, rank)
    root = _root_of_factor(R, dependencies) if inverse and (rank == p or dependencies is not None) else None
    b = factor.mean[p:] - factor.mean[:p] @ coef if intercept else np.zeros(k)
    return LeastSquaresFit(
        coef,
        b,
        rank,
        excess,
        float(rss.sum()) / 2 + penalty.value(coef),
        yy,
        rss,
        root,
        dependencies,
        factor.mean,
        factor.weight,
        factor.n_rows,
        factor.log_weight,
        moments,
        "qr",
        np.linalg.norm(R, axis=0),
        dof,
    )


def _by_singular_values(
    R: np.ndarray, Q: np.ndarray, penalty: QuadraticPenalty
) -> tuple[np.ndarray, int, float, np.ndarray]:
    """(coef, rank, excess, degrees of freedom) of ridge from R D^-1/2 = U S V', one factorisation for all alphas."""
    p = R.shape[1]
    scale = 1 / np.sqrt(penalty.diagonal)
    A = R * scale
    U, s, Vt = singular_vectors(A)
    alpha = penalty.alpha
    filters = 1 / (s[:, None] ** 2 + alpha)  # (r, k)
    x = Vt.T @ (s[:, None] * filters * (U.T @ Q))
    g = A.T @ (Q - A @ x) - alpha * x
    inside = Vt @ g
    outside = np.maximum((g**2).sum(axis=0) - (inside**2).sum(axis=0), 0.0) if len(s) < p else np.zeros(len(alpha))
    excess = float((inside**2 * filters).sum() + (outside / alpha).sum()) / 2
    least = np.sqrt(float(alpha.min()))
    largest = np.hypot(s.max(initial=0.0), least)
    kept = np.hypot(s, least) > EPS * (len(R) + p) * largest
    rank = int(kept.sum()) + (p - len(s) if least > EPS * (len(R) + p) * largest else 0)
    return x * scale[:, None], rank, excess, (s[:, None] ** 2 * filters).sum(axis=0)


def _solve_rows(A: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, int]:
    """(solution of minimum norm, rank) of min |A x - q|."""
    if len(A) < A.shape[1] or not np.array_equal(A, np.triu(A)):
        x, _, rank, _ = scipy.linalg.lstsq(A, q, cond=EPS * max(A.shape), lapack_driver="gelsd", check_finite=False)
        return x, int(rank)
    solution = solve_triangular_factor(A, q)
    return solution.x, solution.rank


def _dependencies(A: np.ndarray, rank: int) -> Dependencies:
    lengths = np.linalg.norm(A, axis=0)
    Vt = singular_vectors(A / np.where(lengths > 0, lengths, 1.0), full_matrices=True)[2]
    # Columns of unit length here; `dependencies_of` brings the null space of A itself back to them.
    return dependencies_of(Vt[rank:].T / np.where(lengths > 0, lengths, 1.0)[:, None], lengths)


def _root_of_factor(R: np.ndarray, dependencies: Dependencies | None) -> np.ndarray | None:
    if dependencies is None:
        return np.asarray(scipy.linalg.solve_triangular(R[: R.shape[1]], np.eye(R.shape[1]), check_finite=False))
    kept = dependencies.independent
    # Columns of lengths between one half and one: those of very different units keep their pivots.
    exponent = np.frexp(np.abs(R[:, kept]).max(axis=0, initial=0.0))[1]
    T = scipy.linalg.qr(np.ldexp(R[:, kept], -exponent), mode="r", check_finite=False)[0][: len(kept)]
    root = np.zeros((R.shape[1], len(kept)))
    try:
        inverse = scipy.linalg.solve_triangular(T, np.eye(len(kept)), check_finite=False)
    except scipy.linalg.LinAlgError:  # dependent but for rounding, which the elimination of the others did not see
        return None
    with np.errstate(over="ignore"):
        root[kept] = np.ldexp(inverse, -exponent[:, None])
    return root
