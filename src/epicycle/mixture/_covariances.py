"""Covariances of k normal components: full, tied, diagonal or spherical, in scikit-learn's shapes.

A factor W is a lower triangle with C^-1 = W'W, the inverse of Cholesky's factor of C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import lapack

from epicycle.core._exceptions import DataError
from epicycle.linalg._dependencies import dependencies_of, in_words

#: Variance that other columns leave of one, relative to its own, below which it is rounding.
SINGULAR = 8 * float(np.finfo(np.float64).eps)

_ILL_DEFINED = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance (for instance "
    "caused by singleton or collapsed samples). Try to decrease the number of components, increase reg_covar, or scale "
    "the input data."
)


class DegenerateCovarianceError(DataError):
    """A component has a covariance that is singular: its likelihood grows without bound."""


def shape_of(kind: str, k: int, p: int) -> tuple[int, ...]:
    return {"full": (k, p, p), "tied": (p, p), "diag": (k, p), "spherical": (k,)}[kind]


def n_parameters(kind: str, k: int, p: int) -> int:
    return {"full": k * p * (p + 1) // 2, "tied": p * (p + 1) // 2, "diag": k * p, "spherical": k}[kind]


def factors_of(C: np.ndarray, kind: str, p: int, names: Sequence[str]) -> np.ndarray:
    """W of shape (k, p, p), (1, p, p) for tied components; (k, p) inverse deviations where there are no products."""
    if kind in ("diag", "spherical"):
        variances = np.broadcast_to(C[:, None], (len(C), p)) if kind == "spherical" else C
        for a in np.flatnonzero(~(variances > 0).all(axis=1)):
            raise _degenerate(np.diag(variances[a]), int(a), kind, names)
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / np.sqrt(variances))
    return np.stack([factor_of(c, a, kind, names) for a, c in enumerate(C[None] if kind == "tied" else C)])


def factor_of(C: np.ndarray, component: int, kind: str, names: Sequence[str]) -> np.ndarray:
    """W of one covariance."""
    L, info = lapack.dpotrf(C, lower=1, clean=1)
    diagonal = np.diagonal(L)
    if info != 0 or not (diagonal**2 > SINGULAR * np.diagonal(C)).all():
        raise _degenerate(C, component, kind, names)
    return np.asarray(lapack.dtrtri(L, lower=1)[0])


def log_determinants(W: np.ndarray) -> np.ndarray:
    """log det of the W: half of minus log det C."""
    diagonal = W if W.ndim == 2 else np.diagonal(W, axis1=1, axis2=2)
    return np.asarray(np.log(diagonal).sum(axis=1))


def least_pivot(C: np.ndarray, W: np.ndarray) -> float:
    """The smallest variance that other columns leave of one, relative to its own: about 1 / condition number."""
    if W.ndim == 2:
        return 1.0
    matrices = C[None] if C.ndim == 2 else C
    left = 1.0 / np.diagonal(W, axis1=1, axis2=2) ** 2 / np.diagonal(matrices, axis1=1, axis2=2)
    return float(left.min())


def _degenerate(C: np.ndarray, component: int, kind: str, names: Sequence[str]) -> DegenerateCovarianceError:
    """An error that names the component and its columns."""
    if not np.isfinite(C).all():
        return DegenerateCovarianceError(f"{_ILL_DEFINED} Component {component}: its covariance overflows.")
    lengths = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    scale = np.where(lengths > 0, lengths, 1.0)
    values, vectors = np.linalg.eigh(C / np.outer(scale, scale))
    null = vectors[:, values <= max(1e-12, float(values[-1]) * len(C) * SINGULAR)] / scale[:, None]
    if not null.shape[1]:
        null = vectors[:, :1] / scale[:, None]
    found = dependencies_of(null, lengths).named(names)
    words = in_words(found, dict.fromkeys(names, 0.0), intercept=True)
    who = "All components share a covariance in which" if kind == "tied" else f"In component {component}"
    return DegenerateCovarianceError(f"{_ILL_DEFINED} {who} {words}, about its mean.")


def estimated(scatter: np.ndarray, counts: np.ndarray, shift: np.ndarray, kind: str) -> np.ndarray:
    """Most likely covariances: scatter about old means, which new ones are `shift` away from."""
    n = np.where(counts > 0, counts, 1.0)
    if kind == "full":
        return np.asarray(scatter / n[:, None, None] - shift[:, :, None] * shift[:, None, :])
    if kind == "tied":
        return np.asarray((scatter - (shift.T * counts) @ shift) / counts.sum())
    variances = np.maximum(scatter / n[:, None] - shift**2, 0.0)
    return np.asarray(variances if kind == "diag" else variances.mean(axis=1))


def regularized(C: np.ndarray, reg_covar: float, kind: str) -> np.ndarray:
    """C with reg_covar on the diagonal."""
    if kind in ("diag", "spherical"):
        return C + reg_covar
    out = C.copy()
    at = np.arange(C.shape[-1])
    out[..., at, at] += reg_covar
    return out


def as_matrices(C: np.ndarray, kind: str, k: int, p: int) -> np.ndarray:
    """All covariances as matrices, of shape (k, p, p)."""
    if kind == "full":
        return C
    if kind == "tied":
        return np.broadcast_to(C, (k, p, p))
    variances = C if kind == "diag" else np.repeat(C[:, None], p, axis=1)
    return np.asarray(variances[:, :, None] * np.eye(p))


def precisions_of(W: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(precisions_cholesky_, precisions_) in scikit-learn's shapes: upper triangles U with C^-1 = U U'."""
    if kind == "spherical":
        return W[:, 0].copy(), W[:, 0] ** 2
    if kind == "diag":
        return W, W**2
    U = np.swapaxes(W, 1, 2)
    P = U @ W
    return (U[0].copy(), P[0]) if kind == "tied" else (U.copy(), P)


def factors_of_roots(U: np.ndarray, kind: str, p: int) -> np.ndarray:
    """W from precisions_cholesky_, the inverse of :func:`precisions_of`."""
    if kind == "spherical":
        return np.repeat(U[:, None], p, axis=1)
    return U if kind == "diag" else np.swapaxes(U[None] if kind == "tied" else U, 1, 2).copy()


def covariances_of_precisions(given: Any, kind: str, k: int, p: int) -> np.ndarray:
    """Covariances from precisions that the user brought; errors in scikit-learn's words, which programs match."""
    P = np.array(given, dtype=np.float64)
    shape = shape_of(kind, k, p)
    if P.shape != shape:
        raise DataError(f"The parameter '{kind} precision' should have the shape of {shape}, but got {P.shape}")
    if kind in ("diag", "spherical"):
        if not (P > 0).all():
            raise DataError(f"'{kind} precision' should be positive")
        return np.asarray(1.0 / P)
    matrices = P[None] if kind == "tied" else P
    out = []
    for M in matrices:
        ok = np.isfinite(M).all() and np.allclose(M, M.T)
        L, info = lapack.dpotrf(M, lower=1, clean=1) if ok else (M, 1)
        if info != 0:
            raise DataError(f"'{kind} precision' should be symmetric, positive-definite")
        half = lapack.dtrtri(L, lower=1)[0]
        out.append(half.T @ half)
    return out[0] if kind == "tied" else np.stack(out)
