"""Where the descent of an embedding starts: principal components, random places, or what is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError
from epicycle.linalg._leading_eigenpairs import leading_eigenpairs
from epicycle.linalg._signs import oriented

SPREAD = 1e-4  # standard deviation of the first coordinate: so close that no row stands in another's way
_PRODUCTS = 60
_RESIDUAL = 1e-5


def start(init: Any, X: Any, weight: np.ndarray, n_components: int, rng: np.random.Generator) -> np.ndarray:
    """Places of shape (n, n_components) in float64."""
    n = len(weight)
    if isinstance(init, str) and init == "random":
        return SPREAD * rng.standard_normal((n, n_components))
    if isinstance(init, str):
        return principal_places(X, weight, n_components, rng)
    places = np.array(init, dtype=np.float64)
    if places.shape != (n, n_components):
        raise DataError(f"init: shape {places.shape}; expected ({n}, {n_components}), a place for each row of X")
    if not np.isfinite(places).all():
        raise DataError("init: contains NaN or infinity; expected finite numbers")
    return places


def principal_places(X: Any, weight: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """The first k principal components, scaled to a small spread; random columns where X has fewer."""
    mean = np.asarray(weight @ X).ravel() / weight.sum()

    def times(V: np.ndarray) -> np.ndarray:  # (X - mean) V
        return np.asarray(X @ V) - mean @ V

    def product(V: np.ndarray) -> np.ndarray:
        Z = weight[:, None] * times(V)
        return np.asarray(X.T @ Z) - np.outer(mean, Z.sum(axis=0))

    p = X.shape[1]
    axes = min(k, p)
    if p <= 500:
        S = product(np.eye(p)) if sp.issparse(X) else _scatter(X, mean, weight)
        vectors = np.linalg.eigh((S + S.T) / 2)[1][:, ::-1][:, :axes]
    else:
        found = leading_eigenpairs(product, p, axes, rng, tol=_RESIDUAL, max_products=_PRODUCTS)
        vectors = found.vectors.T
    places = times(oriented(vectors))
    spread = np.sqrt(weight @ (places[:, 0] - weight @ places[:, 0] / weight.sum()) ** 2 / weight.sum())
    places = places / spread * SPREAD if spread > 0 else np.zeros_like(places)
    if axes < k:
        places = np.hstack([places, SPREAD * rng.standard_normal((len(places), k - axes))])
    return np.ascontiguousarray(places)


def _scatter(X: np.ndarray, mean: np.ndarray, weight: np.ndarray) -> np.ndarray:
    centred = X - mean
    return np.asarray((centred * weight[:, None]).T @ centred)
