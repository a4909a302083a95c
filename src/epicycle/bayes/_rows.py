"""Rows of a regression in compact form: at most p rows that stand for all of them.

With X = Q R about the mean (or zero) and q = Q'y, |y - Xw|^2 = |q - Rw|^2 + rest for every w. R, q and rest come from
one pass of second moments; where these lose digits (columns nearly dependent, or next to no residual) from the
triangular factor of the rows, in one pass more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import DataError
from epicycle.data import Data
from epicycle.stats._moments import moments_about, shift_of, triangular_factor_of

#: Smallest pivot of the scaled moments, and smallest share of y'y left over, with which the moments are used.
_PIVOT, _SHARE = 1e-8, 1e-7


@dataclass(frozen=True)
class CompactRows:
    """|y - Xw|^2 = |q - Rw|^2 + rest, about the means, for rows of total weight `weight`."""

    R: np.ndarray
    q: np.ndarray
    rest: float
    x_mean: np.ndarray
    y_mean: float
    weight: float
    y_variance: float  # about the mean, also where nothing is centred


def compact_rows(data: Data, *, intercept: bool, n_jobs: int | None) -> CompactRows:
    """The compact form of all rows."""
    p = data.n_features
    shift = shift_of(data) if intercept else np.zeros(p + 1)
    moments = moments_about(data, shift, n_jobs)
    M = moments.about_mean() if intercept else moments.about_zero()
    mean = moments.mean if intercept else np.zeros(p + 1)
    found = _from_moments(M[:p, :p], M[:p, p], float(M[p, p]))
    if found is None:
        factor = triangular_factor_of(data, shift, intercept=intercept, n_jobs=n_jobs)
        mean = factor.mean if intercept else mean
        found = factor.R_x, factor.R_xy[:, 0], float(np.sum(factor.R_y**2))
    R, q, rest = found
    centred = M if intercept else moments.about_mean()
    variance = max(float(centred[p, p]), 0.0) / moments.weight
    return CompactRows(np.ascontiguousarray(R), q, rest, mean[:p], float(mean[p]), moments.weight, variance)


def _from_moments(G: np.ndarray, c: np.ndarray, yy: float) -> tuple[np.ndarray, np.ndarray, float] | None:
    if not (np.isfinite(G).all() and np.isfinite(c).all() and np.isfinite(yy)):
        raise DataError("X, y, sample_weight: sums of weighted squares overflow; scale them down")
    scale = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    if not (scale > 0).all():
        return None
    try:
        L = np.linalg.cholesky(G / np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return None
    if np.diagonal(L).min() ** 2 < _PIVOT:
        return None
    q = scipy.linalg.solve_triangular(L, c / scale, lower=True)
    rest = yy - float(q @ q)
    return None if rest < _SHARE * yy else (L.T * scale, q, rest)
