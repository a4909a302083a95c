"""Dissimilarities of all pairs of rows, given or by a metric, or of rows and landmarks alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.kernels._given import asymmetry
from epicycle.manifold._base import to_unit_size
from epicycle.metrics import pairwise_distances
from epicycle.metrics._distances import Distances
from epicycle.spatial._metrics import is_precomputed

_TOLERANCE = 1e-10  # difference of a pair in two places that is rounding, of the largest


def checked_square(D: Any, name: str = "X") -> np.ndarray:
    """Symmetric dissimilarities in float64, the diagonal zero."""
    if sp.issparse(D):
        raise DataError(f"{name}: is sparse; expected all dissimilarities, as an array")
    D = np.asarray(D, dtype=np.float64)
    if D.ndim != 2 or D.shape[0] != D.shape[1]:
        raise DataError(f"{name}: array must be 2-dimensional and square. shape = {D.shape}")
    if not np.isfinite(D).all():
        raise DataError(f"{name}: holds NaN or infinity; expected finite dissimilarities")
    i, j, worst = asymmetry(D)
    if worst > max(_TOLERANCE, _TOLERANCE * float(np.abs(D).max())):
        raise DataError(
            f"{name}: Array must be symmetric: entry ({i}, {j}) is {D[i, j]:g}, entry ({j}, {i}) is {D[j, i]:g}"
        )
    if (D < 0).any():
        raise DataError(f"{name}: Negative values in data; expected dissimilarities >= 0")
    mean = np.asarray((D + D.T) / 2)
    np.fill_diagonal(mean, 0.0)
    return mean


@dataclass(frozen=True)
class Dissimilarities:
    """Input of an embedding: n rows, a function that gives their dissimilarities to all, its cost for one."""

    n: int
    block: Callable[[Any], np.ndarray]
    width: int
    whole: Callable[[], np.ndarray]


def dissimilarities(X: Any, metric: Any, params: dict[str, Any] | None, n_jobs: int | None) -> Dissimilarities:
    """Of rows X, by a metric, or given."""
    if is_precomputed(metric):
        D = checked_square(X)
        return Dissimilarities(len(D), D.__getitem__, 1, lambda: D)
    n = int(X.shape[0])
    if n == X.shape[1]:
        warnings.warn(
            "The provided input is a square matrix. Its rows are taken as samples and its columns as features; for "
            "dissimilarities set metric='precomputed'.",
            stacklevel=5,
        )
    options = params or {}
    try:
        block = Distances(X, X, metric, options).block
    except TypeError as error:
        raise ParameterError(f"metric_params={params!r:.80}: {error}") from None
    return Dissimilarities(
        n, block, int(X.shape[1]), lambda: np.asarray(pairwise_distances(X, metric=metric, n_jobs=n_jobs, **options))
    )


def matrix_of(given: Dissimilarities, name: str) -> tuple[np.ndarray, float]:
    """(all of them, of a size whose squares are numbers, and the scale they were divided by)."""
    require_memory(
        32.0 * given.n**2, f"{name} on {given.n:,} rows", "take n_landmarks, which needs no pairs of all rows"
    )
    D = given.whole()
    if not np.isfinite(D).all():
        raise DataError("X: dissimilarities are not finite; scale the rows down")
    return to_unit_size(D)


def farthest_first(given: Dissimilarities, m: int) -> tuple[np.ndarray, np.ndarray]:
    """(m rows, each the farthest from those before it, and the dissimilarities of all rows to them)."""
    chosen = np.zeros(m, dtype=np.intp)
    D = np.empty((given.n, m))
    nearest = np.full(given.n, np.inf)
    for place in range(m):
        if place:
            chosen[place] = int(nearest.argmax())
        D[:, place] = np.asarray(given.block(chosen[place : place + 1]), dtype=np.float64)[0]
        nearest = np.minimum(nearest, D[:, place])
        nearest[chosen[: place + 1]] = -1.0  # equal rows are not chosen twice
    if not np.isfinite(D).all():
        raise DataError("X: dissimilarities are not finite; scale the rows down")
    return chosen, D
