"""Covariance matrices by their factors: S = F F', of full rank, singular, by a precision, or low rank plus diagonal.

Each kind gives what a normal density needs without ever inverting S: Mahalanobis distances r'S^-1 r, log det S,
products F z, rows of a factor, and the distance of a vector from the range of S, outside of which there is no density.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, qr, solve_triangular

from epicycle.core._exceptions import ParameterError
from epicycle.linalg._spectra import singular_vectors

Array = np.ndarray

#: Of a matrix with a unit diagonal: eigenvalues below p times this many roundings are zero.
_ROUNDINGS = 8.0
#: Relative asymmetry, or negative eigenvalue, that is rounding and not a mistake.
_SLACK = 1e-8


class CovarianceFactor(ABC):
    """A covariance matrix of `size` rows and of `rank`, as a factor of it."""

    size: int
    rank: int
    #: log det S, of a singular S that on its range.
    log_det: float

    @abstractmethod
    def half_solve(self, r: Array) -> Array:
        """z of shape (m, n) with |z_j|^2 = r_j'S^-1 r_j for the columns r_j of an array of shape (p, n)."""

    @abstractmethod
    def columns(self) -> Array:
        """F of shape (p, m) with S = F F'."""

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n rows of N(0, S)."""

    def diagonal(self) -> Array:
        """The variances."""
        return np.asarray((self.columns() ** 2).sum(axis=1))

    def marginal(self, keep: Array) -> CovarianceFactor:
        """The covariance of some of the coordinates."""
        return factor_of_columns(self.columns()[keep])

    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """The diagonal of S^-1; of a singular S that of its pseudo-inverse."""

    def dense(self) -> Array:
        """S itself."""
        F = self.columns()
        return np.asarray(F @ F.T)

    def outside(self, r: Array) -> Array:
        """Distances of the columns of r from the range of S."""
        return np.zeros(r.shape[1])

    def trace_of_solved(self, other: CovarianceFactor) -> float:
        """trace(S^-1 T) for the matrix T of another factor."""
        if isinstance(other, LowRankFactor):
            return float((self.half_solve(other.W) ** 2).sum() + self.inverse_diagonal() @ other.d)
        return float((self.half_solve(other.columns()) ** 2).sum())


class TriangularFactor(CovarianceFactor):
    """S = L L' with L lower triangular."""

    def __init__(self, L: Array) -> None:
        self.L = L
        self.size = self.rank = len(L)
        self.log_det = 2 * float(np.log(np.diagonal(L)).sum())

    def half_solve(self, r: Array) -> Array:
        return np.asarray(solve_triangular(self.L, r, lower=True, check_finite=False))

    def columns(self) -> Array:
        return self.L

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(rng.standard_normal((n, self.size)) @ self.L.T)

    def inverse_diagonal(self) -> Array:
        return np.asarray((self.half_solve(np.eye(self.size)) ** 2).sum(axis=0))


class PrecisionFactor(CovarianceFactor):
    """S^-1 = R R' with R lower triangular."""

    def __init__(self, R: Array) -> None:
        self.R = R
        self.size = self.rank = len(R)
        self.log_det = -2 * float(np.log(np.diagonal(R)).sum())

    def half_solve(self, r: Array) -> Array:
        return np.asarray(self.R.T @ r)

    def columns(self) -> Array:
        return np.asarray(solve_triangular(self.R, np.eye(self.size), lower=True, trans=1, check_finite=False))

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        z = rng.standard_normal((n, self.size)).T
        return np.asarray(solve_triangular(self.R, z, lower=True, trans=1, check_finite=False).T)

    def inverse_diagonal(self) -> Array:
        return np.asarray((self.R**2).sum(axis=1))


class SingularFactor(CovarianceFactor):
    """S = Q R R'Q' with Q of orthonormal columns, a basis of the range, and R lower triangular."""

    def __init__(self, Q: Array, R: Array) -> None:
        self.Q, self.R = Q, R
        self.size, self.rank = Q.shape
        self.log_det = 2 * float(np.log(np.abs(np.diagonal(R))).sum())
        self._largest = float(np.sqrt(np.max((R**2).sum(axis=1), initial=0.0)))

    def half_solve(self, r: Array) -> Array:
        return np.asarray(solve_triangular(self.R, self.Q.T @ r, lower=True, check_finite=False))

    def columns(self) -> Array:
        return np.asarray(self.Q @ self.R)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(rng.standard_normal((n, self.rank)) @ self.columns().T)

    def inverse_diagonal(self) -> Array:
        half = solve_triangular(self.R, self.Q.T, lower=True, check_finite=False)
        return np.asarray((half**2).sum(axis=0))

    def outside(self, r: Array) -> Array:
        return np.asarray(np.linalg.norm(r - self.Q @ (self.Q.T @ r), axis=0))


class LowRankFactor(CovarianceFactor):
    """S = W W' + diag(d) with W of shape (p, k): everything in time p k^2, no matrix of p by p.

    With V = d^(-1/2) W and M = I + V'V: det S = det M prod d, and the Mahalanobis distance of r is the least
    |d^(-1/2) r - V z|^2 + |z|^2 over z, a sum of squares without cancellation.
    """

    def __init__(self, W: Array, d: Array) -> None:
        self.W, self.d = W, d
        self.size = self.rank = len(d)
        self._V = W / np.sqrt(d)[:, None]
        self._M = cholesky(np.eye(W.shape[1]) + self._V.T @ self._V, lower=True, check_finite=False)
        self.log_det = float(np.log(d).sum()) + 2 * float(np.log(np.diagonal(self._M)).sum())

    def latent(self, r: Array) -> Array:
        """The mean of z given W z + e = r, with z ~ N(0, I) and e ~ N(0, diag(d)); its precision is M."""
        half = solve_triangular(self._M, self._V.T @ (r / np.sqrt(self.d)[:, None]), lower=True, check_finite=False)
        return np.asarray(solve_triangular(self._M, half, lower=True, trans=1, check_finite=False))

    def latent_columns(self) -> Array:
        """A factor of the covariance of z given r."""
        k = self.W.shape[1]
        return np.asarray(solve_triangular(self._M, np.eye(k), lower=True, trans=1, check_finite=False))

    def half_solve(self, r: Array) -> Array:
        z = self.latent(r)
        return np.concatenate([r / np.sqrt(self.d)[:, None] - self._V @ z, z])

    def columns(self) -> Array:
        return np.concatenate([self.W, np.diag(np.sqrt(self.d))], axis=1)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        common, own = rng.standard_normal((n, self.W.shape[1])), rng.standard_normal((n, self.size))
        return np.asarray(common @ self.W.T + own * np.sqrt(self.d))

    def diagonal(self) -> Array:
        return np.asarray((self.W**2).sum(axis=1) + self.d)

    def marginal(self, keep: Array) -> CovarianceFactor:
        return LowRankFactor(self.W[keep], self.d[keep])

    def inverse_diagonal(self) -> Array:
        half = solve_triangular(self._M, self._V.T, lower=True, check_finite=False)
        return np.asarray((1 - (half**2).sum(axis=0)) / self.d)


def factor_of_columns(F: Array, lengths: Array | None = None) -> CovarianceFactor:
    """The factor of S = F F' for any F of shape (p, m).

    Ranks are those of F with rows of unit length: they do not depend on the units of the coordinates. Where the rows
    are what is left of longer ones, those lengths are given: what is rounding against them is zero.
    """
    p, m = F.shape
    if not m:
        return _on_range(F)
    scale = np.linalg.norm(F, axis=1) if lengths is None else lengths
    scale = np.where(scale > 0, scale, 1.0)
    U, s, _ = singular_vectors(F / scale[:, None])
    cut = _ROUNDINGS * max(p, m) * np.finfo(float).eps * max(float(s[0]), 0.0 if lengths is None else 1.0)
    rank = int((s > cut).sum())
    if rank == p:
        (R,) = qr(F.T, mode="r", check_finite=False)
        L = R[:p].T
        return TriangularFactor(L * np.where(np.diagonal(L) < 0, -1.0, 1.0))
    return _on_range((U[:, :rank] * s[:rank]) * scale[:, None])


def _on_range(F: Array) -> SingularFactor:
    """Of independent columns: an orthonormal basis of their span, and a triangle in it."""
    if not F.shape[1]:
        return SingularFactor(F, np.zeros((0, 0)))
    Q, T = qr(F, mode="economic", check_finite=False)
    # F F' = Q T T'Q', and T T' = R R' with R lower triangular, from the factorisation of T'.
    (R,) = qr(T.T, mode="r", check_finite=False)
    return SingularFactor(np.asarray(Q), np.asarray(R.T))


def factor_of_covariance(S: Array, name: str = "covariance") -> CovarianceFactor:
    """The factor of a positive semi-definite matrix, refused by name where it is none."""
    p = len(S)
    require_symmetric(S, name)
    scale = np.sqrt(np.where(np.diagonal(S) > 0, np.diagonal(S), 1.0))
    C = (S + S.T) / 2 / scale / scale[:, None]  # of unit diagonal: what is zero does not depend on units
    cut = _ROUNDINGS * p * np.finfo(float).eps
    if (np.diagonal(S) > 0).all():
        try:
            L = cholesky(C, lower=True, check_finite=False)
            if np.diagonal(L).min(initial=1.0) ** 2 > cut:
                return TriangularFactor(L * scale[:, None])
        except LinAlgError:
            pass
    values, U = eigh(C, check_finite=False)
    if values[0] < -_SLACK * max(values[-1], 1.0) or (np.diagonal(S) < 0).any():
        least = float(np.linalg.eigvalsh((S + S.T) / 2)[0])
        raise ParameterError(f"{name}: is not positive semi-definite (smallest eigenvalue {least:.3g})")
    kept = values > cut * max(values[-1], 0.0)
    if kept.all():
        return factor_of_columns(U * np.sqrt(values) * scale[:, None])
    return _on_range(U[:, kept] * np.sqrt(values[kept]) * scale[:, None])


def factor_of_precision(P: Array) -> PrecisionFactor:
    """The factor of an inverse covariance, which has to be positive definite."""
    require_symmetric(P, "precision")
    try:
        return PrecisionFactor(cholesky((P + P.T) / 2, lower=True, check_finite=False))
    except LinAlgError:
        least = float(np.linalg.eigvalsh((P + P.T) / 2)[0])
        raise ParameterError(f"precision: is not positive definite (smallest eigenvalue {least:.3g})") from None


def require_symmetric(S: Array, name: str) -> None:
    """Raise for a matrix that differs from its transpose by more than rounding."""
    if np.abs(S - S.T).max(initial=0.0) > _SLACK * np.abs(S).max(initial=0.0):
        raise ParameterError(f"{name}: is not symmetric")
