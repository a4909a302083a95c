"""Rows along given axes, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._checks import require_columns
from epicycle.core._exceptions import DataError
from epicycle.core._solution import Solution
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import Batch
from epicycle.decomposition._components import ComponentsOut
from epicycle.decomposition.pca._spectrum import Spectrum, in_words


class Projection(ComponentsOut, Estimator):
    """Base of methods whose features are coordinates of the rows along orthonormal axes, `components_`."""

    _fixed_tags: ClassVar[Mapping[str, Any]] = {"transformer_tags.preserves_dtype": ["float64", "float32"]}

    def _origin(self) -> np.ndarray:
        """The point that has coordinates zero."""
        return np.zeros(self.components_.shape[1])

    def _scale(self) -> np.ndarray | None:
        """The divisor of coordinates, if any."""
        return None

    def transform(self, X: Any) -> Any:
        """The coordinates of the rows."""
        data = self._predict_data(X, missing=self._takes_missing)
        return engine.map(coordinates, data, self._origin(), self.components_, self._scale())

    _takes_missing = False

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return their coordinates."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The rows with these coordinates that lie in the space of the axes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates.
        """
        self._check_fitted()
        Z = require_columns(np.asarray(X), len(self.components_), "component")
        scale = self._scale()
        axes = self.components_ if scale is None else self.components_ * scale[:, None]
        found = Z @ axes + self._origin()
        return np.asarray(found, dtype=Z.dtype if Z.dtype == np.float32 else np.float64)

    def reconstruction_error(self, X: Any) -> Any:
        """The squared distance of every row from the space of the axes; missing entries are left out.

        Returns
        -------
        array of shape (n_samples,)
        """
        data = self._predict_data(X, missing=self._takes_missing)
        return engine.map(_distances, data, self._origin(), self.components_)

    def _conclude_spectrum(self, found: Spectrum) -> None:
        """Set history and certificate."""
        certificate = Certificate("eigenvalue residual", found.residual, found.tolerance, in_words(found))
        left = max(found.total - float(found.values.sum()), 0.0)
        if not found.residuals:
            self._conclude_directly(certificate, x=found.values, objective=left)
            return
        monitor = self._monitor(len(found.residuals), lambda _x: {})
        for step, residual in enumerate(found.residuals, 1):
            monitor(step, found.values, objective=residual)
        reason = "converged" if certificate.holds else "stalled"
        self._conclude(Solution(found.values, left, monitor.history(), certificate, len(found.residuals), reason))


def coordinates(batch: Batch, origin: np.ndarray, axes: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    """axes (x - origin) of the rows of a batch, divided by the scale; sparse rows are never centred themselves."""
    X = batch.X
    Z = np.asarray(X @ axes.T) - axes @ origin if sp.issparse(X) else _dense_coordinates(X, origin, axes)
    return np.asarray(Z if scale is None else Z / scale, dtype=X.dtype)


def _dense_coordinates(X: np.ndarray, origin: np.ndarray, axes: np.ndarray) -> np.ndarray:
    D = np.asarray(X, dtype=np.float64) - origin
    Z = D @ axes.T
    for i in np.flatnonzero(~np.isfinite(Z).all(axis=1)):
        there = np.isfinite(D[i])
        if np.isinf(D[i]).any():
            raise DataError("Input X contains infinity; expected finite numbers, or NaN where a value is missing")
        # The coordinates that fit what is there best, the shortest of them where several do.
        Z[i] = np.linalg.lstsq(axes[:, there].T, D[i, there])[0]
    return np.asarray(Z)


def _distances(batch: Batch, origin: np.ndarray, axes: np.ndarray) -> np.ndarray:
    X = batch.X
    if sp.issparse(X):
        Z = np.asarray(X @ axes.T) - axes @ origin
        lengths = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2 * (X @ origin) + float(origin @ origin)
        return np.asarray((lengths - np.square(Z).sum(axis=1)).clip(min=0.0))
    Z = _dense_coordinates(X, origin, axes)
    return np.asarray(np.nansum(np.square(np.asarray(X, dtype=np.float64) - origin - Z @ axes), axis=1))
