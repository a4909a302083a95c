"""Start of the descent of an embedding: principal components, random places, or what is given."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.decomposition import PCA

SPREAD = 1e-4  # standard deviation of the first coordinate of t-SNE: so close that no row stands in another's way
_COLUMNS = 1000  # up to which the covariance is formed


def start(init: Any, X: Any, n_components: int, rng: np.random.Generator, spread: float) -> np.ndarray:
    """Places of shape (n, n_components) in float64."""
    n = int(X.shape[0])
    if isinstance(init, str) and init == "random":
        return spread * rng.standard_normal((n, n_components))
    if isinstance(init, str):
        return spread * principal_places(X, n_components, rng)
    places = np.array(init, dtype=np.float64)
    if places.shape != (n, n_components):
        raise DataError(f"init: shape {places.shape}; expected ({n}, {n_components}), a place for each row of X")
    if not np.isfinite(places).all():
        raise DataError("init: contains NaN or infinity; expected finite numbers")
    return places


def principal_places(X: Any, k: int, rng: np.random.Generator) -> np.ndarray:
    """The first k principal components, scaled to a spread of one; random columns where X has fewer."""
    axes = min(k, *X.shape)
    pca = PCA(axes, svd_solver="covariance_eigh" if X.shape[1] <= _COLUMNS else "auto", random_state=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that are all equal
        places = np.asarray(pca.fit(X).transform(X), dtype=np.float64)
    spread = float(places[:, 0].std())
    places = places / spread if spread > 0 else np.zeros_like(places)
    if axes < k:
        places = np.hstack([places, rng.standard_normal((len(places), k - axes))])
    return np.ascontiguousarray(places)
