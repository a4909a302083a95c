"""Common parts of Bayesian regressions: the predictive distribution, and fits that maximise the evidence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypedDict

import numpy as np
import scipy.stats
from sklearn.base import RegressorMixin

from epicycle import engine
from epicycle.bayes._evidence import Hyperpriors
from epicycle.bayes._rows import CompactRows, compact_rows
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Domain, Real, check_parameter
from epicycle.core.estimator._estimator import Estimator, fitting
from epicycle.data import Batch
from epicycle.stats._class_scatter import dense_rows


class BayesianRegression(RegressorMixin, Estimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """A linear model with a posterior."""

    _docs: ClassVar[Mapping[str, str]] = {
        "n_jobs": """n_jobs : int, optional
    Threads. None: all processors.""",
    }
    _takes_sparse: ClassVar[bool] = True

    fit_intercept: bool
    n_jobs: int | None
    coef_: np.ndarray
    intercept_: Any

    @abstractmethod
    def _spread(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float, float]:
        """(columns, centre, C, noise, factor, degrees of freedom) of the predictive distribution.

        It is normal or Student's t with scale sqrt(noise + d'Cd), d = x - centre over the columns; `factor` makes its
        standard deviation of the scale.
        """

    def predict(self, X: Any, return_std: bool = False, *, return_interval: bool = False, level: float = 0.95) -> Any:
        """Predict y: the mean of its predictive distribution, with the uncertainty where asked for.

        Parameters
        ----------
        return_std : bool, default=False
            Whether to return the standard deviation of a new y, noise included.
        return_interval : bool, default=False
            Whether to return the interval that holds a new y with probability `level`, of shape (n_samples, 2).
        level : float, default=0.95

        Returns
        -------
        array, or a tuple of arrays
            The mean, then deviation and interval, as asked for.
        """
        check_parameter("predict", "level", level, Real(0, 1, inclusive=False))
        data = self._predict_data(X)
        coef, intercept = np.asarray(self.coef_, np.float64), float(self.intercept_)
        if not (return_std or return_interval):
            return engine.map(_mean_batch, data, coef, intercept, n_jobs=self.n_jobs)
        columns, centre, C, noise, factor, freedom = self._spread()
        both = engine.map(_scale_batch, data, coef, intercept, columns, centre, C, noise, n_jobs=self.n_jobs)
        mean, scale = both[:, 0], both[:, 1]
        results = [mean]
        if return_std:
            results.append(scale * factor)
        if return_interval:
            wide = float(scipy.stats.t.ppf(0.5 + level / 2, freedom))  # normal for infinitely many degrees of freedom
            results.append(mean[:, None] + (scale * wide)[:, None] * np.array([-1.0, 1.0], dtype=both.dtype))
        return tuple(results)


class EvidenceArguments(TypedDict, total=False):
    """Arguments that both classes have."""

    alpha_1: float
    alpha_2: float
    lambda_1: float
    lambda_2: float
    max_iter: int
    compute_score: bool
    fit_intercept: bool
    copy_X: bool
    verbose: int
    n_jobs: int | None


#: Their defaults.
EVIDENCE_ARGUMENTS: dict[str, Any] = {
    **dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 1e-6),
    "max_iter": 300,
    "compute_score": False,
    "fit_intercept": True,
    "copy_X": True,
    "verbose": 0,
    "n_jobs": None,
}


class EvidenceRegression(BayesianRegression):
    """Precisions of noise and coefficients that maximise the evidence."""

    _docs: ClassVar[Mapping[str, str]] = {
        "alpha_1": """alpha_1, alpha_2 : float, default=1e-6
    Shape and rate of the gamma distribution of the precision of the noise.""",
        "lambda_1": """lambda_1, lambda_2 : float, default=1e-6
    Shape and rate of the gamma distribution of the precision of the coefficients.""",
        "alpha_2": "",
        "lambda_2": "",
        "compute_score": """compute_score : bool, default={default}
    Whether `scores_` is kept; `history_` has the evidence in any case.""",
        "copy_X": """copy_X : bool, default={default}
    Without effect: X is never written to.""",
        "fit_intercept": """fit_intercept : bool, default={default}
    Whether y and the columns of X are centred first; the intercept then has no uncertainty of its own.""",
        "evidence_attributes": """coef_ : ndarray of shape (n_features,)
    Mean of the posterior.
intercept_ : float
alpha_ : float
    Precision of the noise.
X_offset_ : ndarray of shape (n_features,)
    What X is centred by.
X_scale_ : ndarray of shape (n_features,)
    Ones.
scores_ : ndarray
    Log evidence, where `compute_score` is true; it never falls.""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("evidence_attributes",)
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **{name: Real(minimum=0) for name in ("alpha_1", "alpha_2", "lambda_1", "lambda_2")},
        "compute_score": Boolean(),
        "copy_X": Boolean(),
    }

    alpha_1: float
    alpha_2: float
    lambda_1: float
    lambda_2: float
    compute_score: bool
    tol: float
    max_iter: int
    alpha_: Any
    sigma_: np.ndarray
    X_offset_: np.ndarray
    X_scale_: np.ndarray
    scores_: np.ndarray

    @abstractmethod
    def _maximise(self, rows: CompactRows, dtype: Any) -> np.ndarray:
        """Set what belongs to the class; returns the coefficients."""

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y."""
        data = self._fit_data(X, y, sample_weight, target="numeric")
        rows = compact_rows(data, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what overflows is refused
            coef = self._maximise(rows, data.dtype)
            self.coef_ = coef.astype(data.dtype)
        require_representable(self, data.dtype)
        self.intercept_ = rows.y_mean - float(rows.x_mean @ coef) if self.fit_intercept else 0.0
        self.X_offset_ = rows.x_mean.astype(data.dtype)
        self.X_scale_ = np.ones(data.n_features, dtype=data.dtype)
        return self

    def _hyperpriors(self) -> Hyperpriors:
        return Hyperpriors(self.alpha_1, self.alpha_2, self.lambda_1, self.lambda_2)

    def _start(self, rows: CompactRows) -> float:
        """Precision of the noise to begin with."""
        return 1.0 / (rows.y_variance + float(np.finfo(np.float64).eps))


def require_representable(model: Any, dtype: Any) -> None:
    """Refuse a fit whose numbers overflow, which sizes of y, weights and hyperpriors decide."""
    values = (model.coef_, model.sigma_ if "sigma_" in vars(model) else 0.0, getattr(model, "alpha_", 0.0))
    if not all(np.isfinite(value).all() for value in values):
        raise DataError(
            f"y: the posterior has numbers beyond {np.dtype(dtype).name}, for targets, weights and hyperparameters of "
            "these sizes; scale them"
        )


def _mean_batch(batch: Batch, coef: np.ndarray, intercept: float) -> np.ndarray:
    return np.asarray(np.asarray(batch.X @ coef) + intercept, dtype=batch.X.dtype)


def _scale_batch(
    batch: Batch,
    coef: np.ndarray,
    intercept: float,
    columns: np.ndarray,
    centre: np.ndarray,
    C: np.ndarray,
    noise: float,
) -> np.ndarray:
    X = dense_rows(batch.X)
    D = X[:, columns] - centre[columns]
    with np.errstate(over="ignore", invalid="ignore"):
        variance = noise + np.maximum(np.einsum("ij,ij->i", D @ C, D), 0.0)
    variance = np.where(np.isnan(variance), np.inf, variance)  # infinity times zero: a prior next to flat
    return np.stack([X @ coef + intercept, np.sqrt(variance)], axis=1).astype(batch.X.dtype)
