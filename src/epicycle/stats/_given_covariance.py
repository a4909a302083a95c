"""Covariances as users give them, checked and factorised."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.stats._covariance_factors import (
    CovarianceFactor,
    LowRankFactor,
    TriangularFactor,
    factor_of_covariance,
    factor_of_precision,
)

Array = np.ndarray


def given_factor(name: str, value: Any, p: int) -> CovarianceFactor:
    """The factor of a covariance that is given by itself, by its inverse or by its Cholesky factor."""
    matrix = np.atleast_2d(numbers(name, value))
    if matrix.shape != (p, p):
        raise ParameterError(f"{name}: shape {matrix.shape}; expected {(p, p)}, as mean has {p} entries")
    if name == "covariance":
        return factor_of_covariance(matrix)
    if name == "precision":
        return factor_of_precision(matrix)
    if np.triu(matrix, 1).any():
        raise ParameterError("cholesky: is not lower triangular")
    if not (np.diagonal(matrix) > 0).all():
        raise ParameterError(f"cholesky: holds {np.diagonal(matrix).min():g} on its diagonal; expected numbers above 0")
    return TriangularFactor(matrix)


def low_rank_factor(low_rank: Any, diagonal: Any, p: int) -> LowRankFactor:
    """The factor of W W' + diag(d)."""
    if diagonal is None:
        raise ParameterError("diagonal: not given; low_rank by itself is singular, use covariance or affine")
    d = numbers("diagonal", diagonal)
    W = np.empty((p, 0)) if low_rank is None else numbers("low_rank", low_rank)
    if W.ndim != 2 or len(W) != p:
        raise ParameterError(f"low_rank: shape {W.shape}; expected ({p}, k), as mean has {p} entries")
    if d.shape != (p,):
        raise ParameterError(f"diagonal: shape {d.shape}; expected ({p},), as mean has {p} entries")
    if not (d > 0).all():
        raise ParameterError(f"diagonal: holds {d.min():g}; expected numbers above 0")
    return LowRankFactor(W, d)


def numbers(name: str, value: Any, *, finite: bool = True) -> Array:
    """An argument as an array of numbers."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterTypeError(f"{name}: expected an array of numbers, got {value!r:.80}") from None
    if finite and not np.isfinite(array).all():
        raise ParameterError(f"{name}: holds NaN or infinity; expected finite numbers")
    return array
