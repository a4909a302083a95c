"""The distance |v|^2 = v'S^-1 v as an ordinary one, in the coordinates L^-1 v for S = L L'."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import ParameterError

__all__ = ["in_coordinates", "root_of_metric"]


def root_of_metric(metric: Any, p: int) -> np.ndarray | None:
    """L, from a symmetric positive definite matrix S or its diagonal; None for the identity."""
    if metric is None:
        return None
    try:
        S = np.asarray(metric, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"metric={metric!r:.80}; expected numbers") from None
    if S.shape == (p,):
        S = np.diag(S)
    if S.shape != (p, p) or not np.isfinite(S).all() or not np.allclose(S, S.T, rtol=1e-10, atol=0):
        raise ParameterError(
            f"metric has shape {S.shape}; expected {p} positive numbers or a symmetric {p} x {p} matrix"
        )
    try:
        return np.asarray(scipy.linalg.cholesky(S, lower=True))
    except scipy.linalg.LinAlgError:
        raise ParameterError("metric is not positive definite: it gives no distance") from None


def in_coordinates(X: np.ndarray, root: np.ndarray | None) -> np.ndarray:
    """Rows of X in these coordinates, contiguous and in float64."""
    X = np.asarray(X, dtype=np.float64)
    if root is not None:
        X = scipy.linalg.solve_triangular(root, X.T, lower=True, check_finite=False).T
    return np.ascontiguousarray(X)
