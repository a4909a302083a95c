"""Common methods of fitted factor models:  x = m + W f + e,  f ~ N(0, F),  e ~ N(0, diag(noise))."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._checks import require_columns
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import Batch, Data, as_data
from epicycle.decomposition._components import ComponentsOut
from epicycle.decomposition._models import LOG_2PI, row_densities, row_factors


class FactorDensity(Estimator):
    """The normal density of factor models."""

    _docs: ClassVar[Mapping[str, str]] = {
        f"get_{matrix}_returns": "ndarray of shape (n_features, n_features)" for matrix in ("covariance", "precision")
    }

    @abstractmethod
    def _model(self, *, singular: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(mean, loadings as rows, noise variance of every column); `singular`: whether there may be no noise."""

    def score_samples(self, X: Any) -> Any:
        """The log-likelihood of every row; of one with missing entries that of the others.

        Returns
        -------
        array of shape (n_samples,)
        """
        return engine.map(_densities_of_batch, self._predict_data(X, missing=True), *self._model())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean log-likelihood of rows X.

        Parameters
        ----------
        y : ignored
        """
        self._check_fitted()
        name = type(self).__name__
        data = as_data(X, None, sample_weight, estimator_name=name, check_finite=False, missing=True)
        self._check_features(X, data, reset=False)
        value, weight = engine.sum(_score_of_batch, data, *self._model())
        return float(value / weight)

    def get_covariance(self) -> np.ndarray:
        """The covariance of the model: that of the loadings with the noise on the diagonal."""
        _, W, noise = self._model(singular=True)
        return np.asarray(W.T @ W + np.diag(noise))

    def get_precision(self) -> np.ndarray:
        """The inverse of the covariance of the model."""
        _, W, noise = self._model()
        scaled = W / noise
        inner = np.linalg.solve(np.eye(len(W)) + scaled @ W.T, scaled)
        precision = np.diag(1.0 / noise) - scaled.T @ inner
        return np.asarray((precision + precision.T) / 2)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Rows drawn from the model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : None, int, Generator or RandomState
            Seed.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        mean, W, noise = self._model()
        rng = stream(random_state, "sample")
        Z = rng.standard_normal((int(n_samples), len(W)))
        return np.asarray(mean + Z @ W + rng.standard_normal((int(n_samples), len(mean))) * np.sqrt(noise))


class LatentFactors(ComponentsOut, FactorDensity):
    """Base of the factor models."""

    mean_: np.ndarray
    noise_variance_: Any
    log_likelihood_: float
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.allow_nan": True}

    @abstractmethod
    def _noise(self) -> np.ndarray:
        """The noise variance of every column."""

    def _factor_covariance(self) -> np.ndarray:
        return np.eye(len(self.components_))

    def _uncorrelated(self) -> tuple[np.ndarray, np.ndarray]:
        """(loadings of uncorrelated factors as rows, C with f = C z for these factors z)."""
        if not len(self.components_):
            return self.components_, np.zeros((0, 0))
        C = np.linalg.cholesky(self._factor_covariance())
        return C.T @ self.components_, C

    def _intake(self, X: Any, sample_weight: Any) -> Data:
        return self._fit_data(X, None, sample_weight, target="none", check_finite=False, missing=True)

    def _wanted(self, n_components: int | None, most: int, default: int) -> int:
        k = default if n_components is None else int(n_components)
        if k > most:
            raise ParameterError(f"{type(self).__name__}: n_components={k}; expected at most the {most} features of X")
        return k

    # ------------------------------------------------------------------------------------------- use of a fit

    def transform(self, X: Any) -> Any:
        """The expectations of the factors, given the rows; of a row with missing entries given the others."""
        data = self._predict_data(X, missing=True)
        W, C = self._uncorrelated()
        return engine.map(_factors_of_batch, data, self.mean_, W, self._noise(), C)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return the expectations of their factors."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The expectation of rows with these factors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Factors.
        """
        self._check_fitted()
        Z = require_columns(np.asarray(X, dtype=np.float64), len(self.components_), "factor")
        return np.asarray(Z @ self.components_ + self.mean_)

    def _model(self, *, singular: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._check_fitted()
        return self.mean_, self._uncorrelated()[0], self._noise()


def _require_no_infinity(X: np.ndarray) -> np.ndarray:
    if np.isinf(X).any():
        raise DataError("Input X contains infinity; expected finite numbers, or NaN where a value is missing")
    return X


def _factors_of_batch(batch: Batch, mean: np.ndarray, W: np.ndarray, noise: np.ndarray, C: np.ndarray) -> np.ndarray:
    scaled = W / noise
    if sp.issparse(batch.X):  # x - m is never formed
        projected = batch.X @ scaled.T - scaled @ mean
    else:
        X = np.asarray(batch.X, dtype=np.float64)
        if not np.isfinite(X).all():
            return np.asarray(row_factors(_require_no_infinity(X), mean, W, noise) @ C.T)
        projected = (X - mean) @ scaled.T
    Z = np.linalg.solve(np.eye(len(W)) + scaled @ W.T, np.asarray(projected).T).T if len(W) else projected
    return np.asarray(Z @ C.T)


def _densities_of_batch(batch: Batch, mean: np.ndarray, W: np.ndarray, noise: np.ndarray) -> np.ndarray:
    if not sp.issparse(batch.X):
        return row_densities(_require_no_infinity(np.asarray(batch.X, dtype=np.float64)), mean, W, noise)
    X, scaled = batch.X, W / noise
    L = np.linalg.cholesky(np.eye(len(W)) + scaled @ W.T)
    half = np.linalg.solve(L, np.asarray(X @ scaled.T - scaled @ mean).T) if len(W) else np.zeros((0, X.shape[0]))
    square = X.multiply(X) @ (1.0 / noise) - 2.0 * (X @ (mean / noise)) + float(mean**2 @ (1.0 / noise))
    log_det = float(np.log(noise).sum()) + 2 * float(np.log(np.diagonal(L)).sum())
    return np.asarray(-0.5 * (square - (half**2).sum(axis=0) + log_det + len(noise) * LOG_2PI))


def _score_of_batch(batch: Batch, mean: np.ndarray, W: np.ndarray, noise: np.ndarray) -> tuple[float, float]:
    density = _densities_of_batch(batch, mean, W, noise)
    if batch.weight is None:
        return float(density.sum()), float(len(density))
    return float(density @ batch.weight), float(batch.weight.sum())
