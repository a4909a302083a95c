"""Sources from mixtures, and back:  s = B (x - m),  x = m + A s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle import engine
from epicycle.core._checks import require_columns
from epicycle.core._exceptions import DataError
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import Data
from epicycle.decomposition._components import ComponentsOut
from epicycle.decomposition.ica._whitening import Whitening
from epicycle.decomposition.pca._projection import coordinates
from epicycle.stats._moments import refuse_non_finite


class Unmixing(ComponentsOut, Estimator):
    """Base of the methods of independent components."""

    _docs: ClassVar[dict[str, str]] = {
        "n_components": "n_components : int, optional\n"
        "    Sources, at most as many as features; default: all directions in which rows differ.",
        "components_": "components_ : ndarray of shape (n_components, n_features)\n    B with s = B (x - m).",
        "mixing_": "mixing_ : ndarray of shape (n_features, n_components)\n"
        "    A with x = m + A s, the pseudo-inverse of B.",
    }

    mixing_: np.ndarray
    mean_: np.ndarray
    whitening_: np.ndarray
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"transformer_tags.preserves_dtype": ["float64", "float32"]}

    def _intake(self, X: Any, sample_weight: Any) -> Data:
        data = self._fit_data(X, None, sample_weight, target="none")
        refuse_non_finite(data)
        return data

    def _set(self, W: np.ndarray, white: Whitening | None, data: Data) -> None:
        """Set B = W K and A, its pseudo-inverse."""
        inverse = np.linalg.pinv(W)
        self.components_ = as_type(W if white is None else W @ white.matrix, data.dtype)
        self.mixing_ = as_type(inverse if white is None else white.inverse @ inverse, data.dtype)
        if white is not None:
            self.mean_ = as_type(white.mean, data.dtype)

    def _origin(self) -> np.ndarray:
        return np.asarray(getattr(self, "mean_", np.zeros(self.components_.shape[1])))

    def transform(self, X: Any, copy: bool = True) -> Any:
        """The sources of the rows."""
        return engine.map(coordinates, self._predict_data(X), self._origin(), self.components_, None)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return their sources."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def inverse_transform(self, X: Any, copy: bool = True) -> np.ndarray:
        """The rows that these sources are mixed to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Sources.
        """
        self._check_fitted()
        S = require_columns(np.asarray(X), len(self.components_), "source")
        found = S @ self.mixing_.T + self._origin()
        return np.asarray(found, dtype=S.dtype if S.dtype == np.float32 else np.float64)


def as_type(values: np.ndarray, like: np.dtype[Any]) -> np.ndarray:
    """In single precision if X is; refuse what is a number in float64 alone."""
    dtype = np.float32 if like == np.float32 else np.float64
    if float(np.abs(values).max(initial=0.0)) > float(np.finfo(dtype).max):
        raise DataError("X: scales of the sources are beyond float32, the type of X; expected float64, or scale X")
    return np.asarray(values, dtype=dtype)


def checked_start(w_init: Any, k: int, rng: np.random.Generator) -> np.ndarray:
    """The matrix W that a fit begins with."""
    if w_init is None:
        return rng.standard_normal((k, k))
    W = np.asarray(w_init, dtype=np.float64)
    if W.shape != (k, k):
        raise DataError(f"w_init has invalid shape -- should be {(k, k)}, got {W.shape}")
    if not np.isfinite(W).all() or np.linalg.matrix_rank(W) < k:
        raise DataError("w_init: expected finite numbers and rows that do not depend on each other")
    return W
