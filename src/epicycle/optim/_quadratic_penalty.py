"""The quadratic penalty  alpha_t w_t'D w_t / 2  of every target t, for a symmetric D >= 0 shared by all.

D is the identity, a diagonal (a factor for each feature) or any matrix. Where it is positive definite its smallest
eigenvalue is the curvature that the penalty adds in every direction, on which bounds of the distance to the minimum
rest; `floor` is that number, or 0 where D leaves some direction free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from epicycle.core._checks import as_floats
from epicycle.core._exceptions import ParameterError

#: Largest D of which all eigenvalues are computed; a larger one has to be sparse.
MAX_DENSE = 5000


@dataclass(frozen=True)
class QuadraticPenalty:
    """alpha of shape (k,) and D: None for the identity, a vector for a diagonal, or a matrix (sparse where p is large).

    floor : the smallest eigenvalue of D, or a lower bound of it; 0 where D is singular.
    """

    alpha: np.ndarray
    p: int
    D: Any = None
    floor: float = 1.0

    @classmethod
    def none(cls, n_targets: int, p: int) -> QuadraticPenalty:
        """No penalty at all."""
        return cls(np.zeros(n_targets), p)

    @property
    def is_diagonal(self) -> bool:
        return self.D is None or self.D.ndim == 1

    @property
    def diagonal(self) -> np.ndarray:
        """The diagonal of D."""
        if self.D is None:
            return np.ones(self.p)
        return np.asarray(self.D if self.D.ndim == 1 else self.D.diagonal(), dtype=np.float64)

    def with_alpha(self, alpha: np.ndarray) -> QuadraticPenalty:
        """The same D with other strengths."""
        return QuadraticPenalty(np.asarray(alpha, dtype=np.float64), self.p, self.D, self.floor)

    def times(self, W: np.ndarray) -> np.ndarray:
        """D W."""
        if self.D is None:
            return W
        return self.D[:, None] * W if self.D.ndim == 1 else np.asarray(self.D @ W)

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """alpha_t D w_t, for W of shape (p, k)."""
        return np.asarray(self.times(W) * self.alpha)

    def value(self, W: np.ndarray) -> float:
        """sum_t alpha_t w_t'D w_t / 2."""
        return float(self.alpha @ (W * self.times(W)).sum(axis=0)) / 2

    def added_to(self, G: np.ndarray, alpha: float) -> np.ndarray:
        """G + alpha D; G itself where alpha is zero."""
        if alpha == 0:
            return G
        if self.is_diagonal:
            G = G.copy()
            G[np.diag_indices_from(G)] += alpha if self.D is None else alpha * self.D
            return G
        return G + alpha * self.dense()

    def dense(self) -> np.ndarray:
        """D as a full matrix."""
        if self.is_diagonal:
            return np.diag(self.diagonal)
        return np.asarray(self.D.toarray() if sp.issparse(self.D) else self.D)

    def rows(self, alpha: float) -> np.ndarray:
        """A with A'A = alpha D, to be put below the rows of X; of as many rows as D has rank."""
        if self.is_diagonal:
            root = np.sqrt(alpha * self.diagonal)
            return np.diag(root)[root > 0]
        values, V = scipy.linalg.eigh(self.dense(), check_finite=False)
        kept = values > 8 * len(values) * float(np.finfo(float).eps) * float(np.abs(values).max(initial=0.0))
        return np.asarray(np.sqrt(alpha * values[kept])[:, None] * V[:, kept].T)

    def bound(self, gradient: np.ndarray) -> float:
        """sum_t g_t'(alpha_t D)^-1 g_t / 2, or more: how far the objective is above its minimum at most."""
        if self.is_diagonal and self.D is not None:
            squares = (gradient**2 / self.D[:, None]).sum(axis=0)
        else:
            squares = (gradient**2).sum(axis=0) / self.floor
        return float((squares / (2 * self.alpha)).sum())


def checked_alpha(alpha: Any, n_targets: int) -> np.ndarray:
    """alpha as one number for each target."""
    values = as_floats(alpha, ParameterError(f"alpha={alpha!r}; expected a number or one for each target"))
    if values.ndim > 1 or values.size not in (1, n_targets):
        raise ParameterError(
            f"Number of targets and number of penalties do not correspond: {values.size} != {n_targets}. "
            f"alpha has shape {values.shape}; expected a number or one for each of {n_targets} target(s); factors for "
            "each feature are penalty_weights"
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ParameterError(f"alpha={alpha!r}; expected finite numbers >= 0")
    return np.broadcast_to(values.ravel(), (n_targets,)).astype(np.float64)


def quadratic_penalty(alpha: np.ndarray, p: int, weights: Any, matrix: Any) -> QuadraticPenalty:
    """The penalty as users give it: at most one of `weights` (a diagonal) and `matrix`, both checked here."""
    if weights is not None and matrix is not None:
        raise ParameterError(
            "penalty_weights and penalty_matrix: expected one of them; a diagonal can stand in D itself"
        )
    if weights is not None:
        factors = _checked_weights(weights, p)
        return QuadraticPenalty(alpha, p, factors, float(factors.min()))
    if matrix is not None:
        D, floor = _checked_matrix(matrix, p)
        return QuadraticPenalty(alpha, p, D, floor)
    return QuadraticPenalty(alpha, p)


def _checked_weights(weights: Any, p: int) -> np.ndarray:
    factors = np.array(as_floats(weights, ParameterError("penalty_weights: expected one number for each feature")))
    if factors.shape != (p,):
        raise ParameterError(f"penalty_weights has shape {factors.shape}; expected one number for each of {p} features")
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ParameterError("penalty_weights: expected finite numbers >= 0")
    return factors


def _checked_matrix(matrix: Any, p: int) -> tuple[Any, float]:
    """(D, its smallest eigenvalue or a bound of it)."""
    sparse = sp.issparse(matrix)
    if p > MAX_DENSE and not sparse:
        raise ParameterError(f"penalty_matrix: for more than {MAX_DENSE} features expected a sparse matrix")
    try:
        D = sp.csr_array(matrix, dtype=np.float64) if sparse else np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("penalty_matrix: expected a matrix of numbers") from None
    if D.shape != (p, p):
        raise ParameterError(f"penalty_matrix has shape {D.shape}; expected ({p}, {p}), a row for each feature")
    if not np.isfinite(D.data if sparse else D).all():
        raise ParameterError("penalty_matrix: expected finite numbers")
    if p <= MAX_DENSE and sparse:
        D = sp.csr_array(D).toarray()
    off = abs(D - D.T)
    largest = float(np.abs(D.data if sp.issparse(D) else D).max(initial=0.0))
    if float(off.max() if sp.issparse(off) else off.max(initial=0.0)) > 1e-10 * largest:
        raise ParameterError("penalty_matrix: is not symmetric; expected D = D' (only its symmetric part would count)")
    D = (D + D.T) / 2
    floor, scale = _smallest_eigenvalue(D)
    if floor < -1e-10 * scale:
        raise ParameterError(
            "penalty_matrix: has a negative eigenvalue; expected w'Dw >= 0 for every w, or there is no minimum"
        )
    return D, floor if floor > 8 * p * np.finfo(float).eps * scale else 0.0


def _smallest_eigenvalue(D: Any) -> tuple[float, float]:
    """(the smallest eigenvalue of D, the scale of D); for a sparse D a lower bound, or 0 if it is not negative."""
    if not sp.issparse(D):
        values = scipy.linalg.eigvalsh(D, check_finite=False)
        return float(values[0]), float(np.abs(values).max())
    diagonal = D.diagonal()
    sums = np.asarray(abs(D).sum(axis=1)).ravel()
    scale = float(sums.max())
    discs = diagonal - (sums - np.abs(diagonal))  # Gershgorin
    if discs.min() >= 0:
        return float(discs.min()), scale
    return (0.0 if _has_no_negative_eigenvalue(D, 1e-10 * scale) else -scale), scale


def _has_no_negative_eigenvalue(D: Any, tolerance: float) -> bool:
    """Whether D + tolerance I is positive definite: elimination along the diagonal then meets positive pivots only."""
    shifted = sp.csc_array(D + tolerance * sp.eye_array(D.shape[0]))
    try:
        factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # a pivot of exactly zero
        return False
    return bool(np.array_equal(factor.perm_r, factor.perm_c) and (factor.U.diagonal() > 0).all())
