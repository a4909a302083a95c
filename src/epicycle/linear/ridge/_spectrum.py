"""One factorisation for ridge regression with every alpha.

Both X'WX (about the mean) and D are diagonal in suitable directions q = B'(x - mean), scaled so that sum_i w_i q_ij^2
is 1. With g and h their diagonals there, least squares along direction j is multiplied by g_j / (g_j + alpha h_j), and

    s_j = alpha h_j / (g_j + alpha h_j),  fitted values sum_j q_ij (1 - s_j) c_j,  leverages w_i sum_j q_ij^2 (1 - s_j),

where c_j = sum_i w_i q_ij y_i: all alphas cost products with one table of q. (For splines: Demmler and Reinsch 1975.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._memory import require_memory
from epicycle.data import ArrayData, Data
from epicycle.linalg._spectra import singular_vectors
from epicycle.linear.least_squares._direct import LeastSquaresFit, normal_equations, settled_moments
from epicycle.linear.least_squares._objective import scale_statistic
from epicycle.optim._quadratic_penalty import QuadraticPenalty
from epicycle.stats._moments import (
    CentredFactor,
    Moments,
    refuse_non_finite,
    shift_of,
    target_columns,
    triangular_factor_of,
)

EPS = float(np.finfo(np.float64).eps)
#: Condition of X'WX + alpha D up to which its eigenvalues are taken from the second moments: half of the digits.
MAX_CONDITION = 1e8
#: Sparse features up to which rows are made dense, block by block, where second moments are not accurate enough.
MAX_DENSE_SPARSE = 500


@dataclass(frozen=True)
class Spectrum(ABC):
    """The factorisation that all alphas share.

    g, h : of shape (r,), the diagonals of X'WX and D in r directions; g > 0.
    c : of shape (r, k), the targets along them.
    rest : of shape (k,), the weighted sum of squares of the targets that no direction explains.
    mean : of (x, y); zeros without an intercept.
    weight : total weight, n_rows : rows of positive weight.
    spans : whether the directions, and the intercept, span all rows: then least squares fits every row exactly.
    """

    g: np.ndarray
    h: np.ndarray
    c: np.ndarray
    rest: np.ndarray
    mean: np.ndarray
    weight: float
    n_rows: int
    intercept: bool

    @property
    def spans(self) -> bool:
        return len(self.g) + int(self.intercept) >= self.n_rows

    @property
    def share(self) -> float:
        """The share of the intercept in a leverage, without the weight of the row."""
        return 1 / self.weight if self.intercept else 0.0

    def shrinkage(self, alphas: np.ndarray) -> np.ndarray:
        """s of shape (r, n_alphas)."""
        penalty = self.h[:, None] * alphas
        return np.asarray(penalty / (self.g[:, None] + penalty))

    def degrees_of_freedom(self, alphas: np.ndarray) -> np.ndarray:
        """Traces of the hat matrices, the intercept among them."""
        return np.asarray((1 - self.shrinkage(alphas)).sum(axis=0) + int(self.intercept))

    def residual_squares(self, alphas: np.ndarray) -> np.ndarray:
        """Weighted sums of squares of the residuals, of shape (k, n_alphas)."""
        return np.asarray(self.rest[:, None] + (self.c**2).T @ self.shrinkage(alphas) ** 2)

    def grid(self, n_alphas: int) -> np.ndarray:
        """From an alpha that leaves every direction nearly alone to one that shrinks all of them to nearly nothing."""
        ratios = self.g[self.h > 0] / self.h[self.h > 0]
        if not len(ratios):
            return np.ones(1)
        return np.geomspace(max(ratios.min() * 1e-3, ratios.max() * 1e-10), ratios.max() * 1e3, n_alphas)

    @abstractmethod
    def coefficients(self, kept: np.ndarray) -> np.ndarray:
        """Coefficients of shape (p, m) that fit sum_j q_ij kept_jm, for kept of shape (r, m)."""

    def along_path(self, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(coef, intercept) of every target and alpha, of shapes (p, k, n_alphas) and (k, n_alphas)."""
        kept = self.c[:, :, None] * (1 - self.shrinkage(alphas))[:, None, :]
        r, k, a = kept.shape
        coef = self.coefficients(kept.reshape(r, k * a)).reshape(-1, k, a)
        p = len(coef)
        level = self.mean[p:, None] if self.intercept else np.zeros((k, 1))
        return coef, level - np.einsum("j,jka->ka", self.mean[:p], coef)


@dataclass(frozen=True)
class RowSpectrum(Spectrum):
    """q = basis'(x - mean), for any row wherever it is; basis of shape (p, r)."""

    basis: np.ndarray

    def coefficients(self, kept: np.ndarray) -> np.ndarray:
        return np.asarray(self.basis @ kept)


@dataclass(frozen=True)
class KernelSpectrum(Spectrum):
    """For fewer rows than features: q of every row, of shape (n, r), from the kernel matrix X D^-1 X'."""

    q: np.ndarray
    data: ArrayData
    factors: np.ndarray

    def coefficients(self, kept: np.ndarray) -> np.ndarray:
        # D^-1 X'W q diag(1/g) fits q
        rows = self.q @ (kept / self.g[:, None])
        if self.data.weight is not None:
            rows *= self.data.weight[:, None]
        coef = np.asarray(self.data.X.T @ rows)
        if self.intercept:
            coef -= np.outer(self.mean[: len(coef)], rows.sum(axis=0))
        return np.asarray(coef / self.factors[:, None])


def spectrum_of(
    data: Data,
    penalty: QuadraticPenalty,
    least_alpha: float | None,
    *,
    intercept: bool,
    n_jobs: int | None,
    moments: Moments | None = None,
) -> tuple[Spectrum, Moments | None]:
    """The spectrum by the cheapest way that is accurate down to `least_alpha`, and the second moments if it took them.

    Without `least_alpha`, down to the smallest that a grid would have.
    """
    p, n = data.n_features, data.n_rows
    plain = penalty.is_diagonal and penalty.floor > 0
    wide = n is not None and p >= n
    spectrum: Spectrum
    if wide and plain and isinstance(data, ArrayData):
        refuse_non_finite(data)
        spectrum = _from_kernel(data, penalty, intercept)
        if _accurate(spectrum, least_alpha) or data.sparse:
            return spectrum, None
    elif not (wide and plain):
        if moments is None:
            moments = settled_moments(data, intercept, n_jobs)
        spectrum = spectrum_of_moments(moments, penalty, intercept)
        if _accurate(spectrum, least_alpha) or (data.sparse and p > MAX_DENSE_SPARSE):
            return spectrum, moments
    shift = moments.shift if moments is not None else shift_of(data) if intercept else np.zeros(p + data.n_targets)
    factor = triangular_factor_of(data, shift, intercept=intercept, n_jobs=n_jobs)
    return _from_factor(factor, penalty, intercept), moments


def _accurate(spectrum: Spectrum, least_alpha: float | None) -> bool:
    """Whether rounding of the largest direction is far below the smallest penalised one."""
    if not len(spectrum.g):
        return True
    alpha = float(spectrum.grid(2)[0]) if least_alpha is None else least_alpha
    curvature = spectrum.g + alpha * spectrum.h
    return float(curvature.max()) <= MAX_CONDITION * float(curvature.min())


def _kept(values: np.ndarray) -> np.ndarray:
    """Directions that are more than rounding."""
    return np.asarray(values > 8 * max(len(values), 1) * EPS * values.max(initial=0.0))


def spectrum_of_moments(moments: Moments, penalty: QuadraticPenalty, intercept: bool) -> RowSpectrum:
    G, c = normal_equations(moments, intercept)
    require_memory(8.0 * len(G) ** 2 * 4, f"eigenvectors of {len(G)} features", "choose alpha with Ridge and few folds")
    if penalty.is_diagonal and penalty.floor > 0:
        scale = 1 / np.sqrt(penalty.diagonal)
        values, V = scipy.linalg.eigh(G * scale * scale[:, None], check_finite=False)
        kept = _kept(values)
        g, h = values[kept], np.ones(int(kept.sum()))
        basis = scale[:, None] * V[:, kept] / np.sqrt(g)
    else:
        basis, g, h = _of_pencil(G, penalty.dense())
    p = moments.p
    S = moments.about_mean() if intercept else moments.about_zero()
    yy, along = np.maximum(np.diagonal(S)[p:], 0.0), basis.T @ c
    rest = np.maximum(yy - (along**2).sum(axis=0), 0.0)
    mean = moments.mean if intercept else np.zeros(len(moments.mean))
    return RowSpectrum(g, h, along, rest, mean, moments.weight, moments.n_rows, intercept, basis)


def _of_pencil(G: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(basis, g, h) that make G and D diagonal together, with basis'G basis = I; D may be singular.

    G + t D is whitened; then the eigenvalues m of the whitened G lie between 0 (no rows) and 1 (no penalty).
    """
    trace = float(np.trace(D))
    t = float(np.trace(G)) / trace if trace > 0 else 1.0
    C = G + t * D
    lengths = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    scale = np.where(lengths > 0, 1 / np.where(lengths > 0, lengths, 1.0), 0.0)
    values, V = scipy.linalg.eigh(C * scale * scale[:, None], check_finite=False)
    kept = _kept(values)
    white = scale[:, None] * V[:, kept] / np.sqrt(values[kept])
    m, U = scipy.linalg.eigh(white.T @ G @ white, check_finite=False)
    return _of_shares(white @ U, np.minimum(m, 1.0), t)


def _of_shares(V: np.ndarray, m: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tolerance = 8 * max(len(m), 1) * EPS
    kept = m > tolerance
    m, V = m[kept], V[:, kept]
    free = 1 - m
    free[free <= tolerance] = 0.0  # no penalty at all
    return V / np.sqrt(m), m, free / t


def _from_factor(factor: CentredFactor, penalty: QuadraticPenalty, intercept: bool) -> RowSpectrum:
    R, p = factor.R_x, factor.R_x.shape[1]
    if penalty.is_diagonal and penalty.floor > 0:
        scale = 1 / np.sqrt(penalty.diagonal)
        U, s, Vt = singular_vectors(R * scale)
        kept = s > 4 * max(R.shape) * EPS * s.max(initial=0.0)
        g, h = s[kept] ** 2, np.ones(int(kept.sum()))
        basis, along = scale[:, None] * Vt[kept].T / s[kept], U[:, kept].T @ factor.R_xy
    else:
        trace = float(penalty.diagonal.sum())
        t = float((R**2).sum()) / trace if trace > 0 else 1.0
        K = np.vstack([R, penalty.rows(t)])
        U, s, Vt = singular_vectors(K)
        kept = s > 4 * max(K.shape) * EPS * s.max(initial=0.0)
        X, cosines, Wt = singular_vectors(U[: len(R), kept])
        V = (Vt[kept].T / s[kept]) @ Wt.T
        basis, g, h = _of_shares(V, np.minimum(cosines**2, 1.0), t)
        along = X[:, : len(g)].T @ factor.R_xy  # the largest come first
    rest = np.maximum((factor.R_xy**2).sum(axis=0) - (along**2).sum(axis=0), 0.0) + (factor.R_y**2).sum(axis=0)
    mean = factor.mean if intercept else np.zeros(p + factor.R_xy.shape[1])
    return RowSpectrum(g, h, along, rest, mean, factor.weight, factor.n_rows, intercept, basis)


def _from_kernel(data: ArrayData, penalty: QuadraticPenalty, intercept: bool) -> KernelSpectrum:
    n, p = data.n_rows, data.n_features
    require_memory(8.0 * n * n * 4, f"the {n} x {n} kernel matrix", "choose alpha with Ridge and few folds")
    w = np.ones(n) if data.weight is None else data.weight
    y = target_columns(data.y)
    weight = float(w.sum())
    mean = np.zeros(p + y.shape[1])
    if intercept:
        mean = np.concatenate([np.asarray(data.X.T @ w, dtype=np.float64).ravel(), y.T @ w]) / weight
    factors = penalty.diagonal
    K = _kernel(data, mean[:p], factors)
    root = np.sqrt(w)
    values, U = scipy.linalg.eigh(root[:, None] * K * root, check_finite=False)
    kept = _kept(values)
    rows = int(np.count_nonzero(w))
    kept[: max(n - rows + int(intercept), 0)] = False  # rounding: the intercept and rows of weight zero leave nothing
    g, U = values[kept], U[:, kept]
    q = U / np.where(w > 0, root, 1.0)[:, None]
    if rows < n:  # rows of no weight have a place among the directions too
        q[w == 0] = K[w == 0] @ (root[:, None] * U) / g
    centred = y - mean[p:]
    along = (w[:, None] * q).T @ centred
    rest = np.maximum((w[:, None] * centred**2).sum(axis=0) - (along**2).sum(axis=0), 0.0)
    return KernelSpectrum(g, np.ones(len(g)), along, rest, mean, weight, rows, intercept, q, data, factors)


def _kernel(data: ArrayData, mean: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """(X - mean) D^-1 (X - mean)', a few columns at a time."""
    X, n = data.X, data.n_rows
    if sp.issparse(X):
        scaled = (X @ sp.diags_array(1 / factors)).astype(np.float64)
        K = np.asarray((scaled @ X.T.astype(np.float64)).toarray())
        across = np.asarray(scaled @ mean)
        K -= across[:, None] + across
        K += mean @ (mean / factors)
        return K
    K = np.zeros((n, n))
    width = max(64, (1 << 22) // max(8 * n, 1))
    for first in range(0, X.shape[1], width):
        columns = slice(first, first + width)
        A = (X[:, columns] - mean[columns]) / np.sqrt(factors[columns])
        K += A @ A.T
    return K


def fit_from_kernel(spectrum: KernelSpectrum, penalty: QuadraticPenalty) -> LeastSquaresFit:
    """The fit of the chosen alphas from the kernel's eigenvectors, with its duality gap."""
    data = spectrum.data
    p, k = data.n_features, data.n_targets
    coef = np.empty((p, k))
    for a in np.unique(penalty.alpha):
        columns = penalty.alpha == a
        coef[:, columns] = spectrum.along_path(np.array([a]))[0][:, columns, 0]
    y = target_columns(data.y)
    mean = spectrum.mean
    w = np.ones(len(y)) if data.weight is None else data.weight
    r = y - mean[p:] - (np.asarray(data.X @ coef) - mean[:p] @ coef)
    weighted = w[:, None] * r
    gradient = np.asarray(data.X.T @ weighted) - np.outer(mean[:p], weighted.sum(axis=0))
    gradient -= penalty.gradient(coef)
    rss = (weighted * r).sum(axis=0)
    yy = (w[:, None] * (y - mean[p:]) ** 2).sum(axis=0)
    b = mean[p:] - mean[:p] @ coef if spectrum.intercept else np.zeros(k)
    squares = engine.sum(scale_statistic, data)[0] - spectrum.weight * mean[:p] ** 2
    dof = np.array([spectrum.degrees_of_freedom(np.array([a]))[0] for a in penalty.alpha]) - int(spectrum.intercept)
    return LeastSquaresFit(
        coef,
        b,
        p,
        penalty.bound(gradient),
        float(rss.sum()) / 2 + penalty.value(coef),
        yy,
        rss,
        None,
        None,
        mean,
        spectrum.weight,
        spectrum.n_rows,
        0.0,
        None,
        "eigenvectors of the kernel",
        np.sqrt(np.maximum(squares, 0.0)),
        dof,
    )
