"""What a fitted Gaussian process regression answers: predictions, their uncertainty, samples, leave-one-out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Integer, Real, check_parameter
from epicycle.core._random import stream
from epicycle.data import ArrayData
from epicycle.gp._arguments import other_theta
from epicycle.gp._exact import ExactLikelihood
from epicycle.gp._inducing import InducingPosterior
from epicycle.gp._iterative import IterativePosterior
from epicycle.gp._leave_one_out import LeaveOneOut, leave_one_out
from epicycle.gp._mean_functions import MeanFunction
from epicycle.gp._model import Model
from epicycle.gp._observations import Observations
from epicycle.gp._posterior import ExactPosterior, Posterior, predict_batch, predict_rows
from epicycle.kernels._machine import KernelMachine
from epicycle.kernels._rows import as_texts
from epicycle.linalg._inverse import diagonal_of_inverse, factor_of, inverted
from epicycle.linalg._jitter import factor_repaired

__all__ = ["Answers"]


class Answers(KernelMachine):
    """Methods of a fitted Gaussian process regression."""

    alpha: Any
    noise_bounds: Any
    method_: str
    alpha_: np.ndarray
    L_: np.ndarray
    mean_function_: MeanFunction
    mean_coef_: np.ndarray
    theta_: np.ndarray
    jitter_: float
    y_train_: np.ndarray
    log_marginal_likelihood_value_: float
    _vector_: bool
    _noise_: float

    def _posterior(self) -> Posterior:
        shared = (
            self.kernel_, self._kept(), self.alpha_, self.mean_function_, self.mean_coef_, self._SH_, self._LA_,
            self._y_scale_,
        )  # fmt: skip
        if self.method_ == "inducing":
            return InducingPosterior(*shared, self._Lm_, self._LB_)
        if self.method_ == "cg":
            return IterativePosterior(*shared, self._D_, self._rank_, self.n_jobs)
        return ExactPosterior(*shared, self.L_)

    # ------------------------------------------------------------------------------------------- prediction

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        return_interval: bool = False,
        level: float = 0.95,
        include_noise: bool = False,
    ) -> Any:
        """The posterior mean of m + f at the rows of X, with its uncertainty where asked for.

        Parameters
        ----------
        X : array, sparse matrix, data frame of shape (n_samples, n_features), or sequence of strings
        return_std : bool, default=False
            Whether the standard deviation comes too, of shape (n_samples,) or (n_samples, n_targets).
        return_cov : bool, default=False
            Whether the joint covariance comes too, of shape (n_samples, n_samples) or (..., n_targets).
        return_interval : bool, default=False
            Whether the interval of probability `level` around the mean comes too, of shape (n_samples, 2) or
            (n_samples, n_targets, 2).
        level : float, default=0.95
        include_noise : bool, default=False
            Whether deviation, covariance and interval are those of a new observation y instead of f: with the learnt
            noise variance, and `alpha` where it is one number.

        Returns
        -------
        ndarray, or a tuple of ndarrays
            The mean, then deviation, covariance and interval, as asked for.
        """
        self._check_fitted()
        check_parameter("predict", "level", level, Real(0, 1, inclusive=False))
        if not (return_std or return_cov or return_interval):
            return self._shaped(self._means(X)[0])
        extra = self._noise_added() if include_noise else 0.0
        if return_cov:
            means, covariance, dtype = self._joint(X)
            variance = np.maximum(np.diagonal(covariance), 0.0)
        else:
            found, dtype = self._means(X, variance=True)
            means, variance = found[:, :-1], found[:, -1]
        answers = [self._shaped(means.astype(dtype) if return_cov else self._unscaled(means, dtype))]
        std = (np.sqrt(variance + extra)[:, None] * self._y_scale_).astype(dtype)
        if return_std:
            answers.append(std[:, 0] if self._vector_ else std)
        if return_cov:
            joint = covariance + extra * np.eye(len(covariance))
            scaled = joint[:, :, None] * self._y_scale_**2
            answers.append((scaled[:, :, 0] if self._vector_ else scaled).astype(dtype))
        if return_interval:
            wide = float(scipy.stats.norm.ppf(0.5 + level / 2)) * std
            middle = answers[0][:, None] if self._vector_ else answers[0]
            interval = np.stack([middle - wide, middle + wide], axis=-1).astype(dtype)
            answers.append(interval[:, 0] if self._vector_ else interval)
        return tuple(answers)

    def _noise_added(self) -> float:
        """Of a new observation, on the scale of the likelihood."""
        known = float(self.alpha) if np.ndim(self.alpha) == 0 else 0.0
        return self._noise_ + known + self.jitter_

    def _means(self, X: Any, *, variance: bool = False) -> tuple[np.ndarray, Any]:
        """Means in the units of y, or (means, variance) on the scale of the likelihood; of a batch after the other."""
        posterior = self._posterior()
        if self.kernel_.takes == "strings":
            found = predict_rows(as_texts(X, "X", type(self).__name__), posterior, variance=variance)
            dtype = np.dtype(np.float64)
        else:
            data = self._predict_data(X)
            found = engine.map(predict_batch, data, posterior, variance, n_jobs=self.n_jobs)
            dtype = _dtype_of(data)
        return (found, dtype) if variance else (self._unscaled(found, dtype), dtype)

    def _unscaled(self, means: Any, dtype: Any) -> Any:
        return (means * self._y_scale_ + self._y_centre_).astype(dtype)

    def _shaped(self, means: Any) -> Any:
        return means[:, 0] if self._vector_ else means

    def _joint(self, X: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """(means in the units of y, covariance on the scale of the likelihood, type of the answer)."""
        posterior = self._posterior()
        if self.kernel_.takes == "strings":
            rows, dtype = as_texts(X, "X", type(self).__name__), np.dtype(np.float64)
        else:
            data = self._predict_data(X)
            if not isinstance(data, ArrayData):
                raise DataError("X: a joint covariance needs all rows in memory; collect them first")
            rows, dtype = data.X, _dtype_of(data)
        if self.kernel_.takes == "precomputed":
            raise DataError(
                "X: a joint covariance needs the kernel among the new rows, which a precomputed one does not have"
            )
        A = self.kernel_.prepare(rows, like=posterior.B)
        self._require(A.n_rows, 3.0)
        return self._unscaled(posterior.means(A, rows), np.float64), posterior.covariance(A, rows), dtype

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, *, include_noise: bool = False) -> np.ndarray:
        """Draws of the posterior at the rows of X together.

        Parameters
        ----------
        X : array, sparse matrix, data frame of shape (n_samples_X, n_features), or sequence of strings
        n_samples : int, default=1
            How many functions are drawn.
        random_state : int, Generator, RandomState or None, default=0
        include_noise : bool, default=False
            Whether observations y are drawn instead of f.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
        """
        self._check_fitted()
        check_parameter("sample_y", "n_samples", n_samples, Integer(minimum=1))
        means, covariance, dtype = self._joint(X)
        extra = np.full(len(means), self._noise_added() if include_noise else 0.0)
        L = np.tril(factor_repaired(covariance, extra, 1)[0].L)
        drawn = stream(random_state, "sample").standard_normal((len(means), means.shape[1], n_samples))
        found = means[:, :, None] + np.einsum("ij,jtk->itk", L, drawn) * self._y_scale_[:, None]
        return (found[:, 0] if self._vector_ else found).astype(dtype)

    # ------------------------------------------------------------------------------------------- evidence

    def leave_one_out(self) -> LeaveOneOut:
        """Every observation predicted by the fit to all others, at the same hyper-parameters, from one factor.

        Returns
        -------
        LeaveOneOut
            `mean`, `std` (of the observation, noise included) and `log_density`, a row for each observation with a
            weight, in the order of the data.
        """
        self._check_fitted()
        if self.method_ != "exact":
            raise ParameterError(f"leave_one_out: method {self.method_!r} has no factor of S; expected 'exact'")
        inverse = inverted(factor_of(self.L_), 1)
        diagonal = diagonal_of_inverse(inverse)
        if len(self.mean_coef_):
            U = np.linalg.solve(self._LA_, self._SH_.T)
            diagonal = diagonal - np.einsum("ij,ij->j", U, U)
        variance = self._known_ + self._noise_ + self.jitter_
        means = self.y_train_ - self.alpha_ / diagonal[:, None]
        return leave_one_out(self, means, 1 / diagonal, variance)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """The log marginal likelihood at other hyper-parameters.

        Parameters
        ----------
        theta : array-like, optional
            Logarithms of hyper-parameters as in `theta_`; None for those of the fit.
        eval_gradient : bool, default=False
            Whether the derivatives by theta come too.

        Returns
        -------
        float, or a pair of float and ndarray
        """
        self._check_fitted()
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        values = other_theta(self, theta)
        likelihood = self._likelihood()
        likelihood.start(values)
        value, gradient = likelihood.value_and_gradient(values, bool(eval_gradient))
        return (value, gradient) if eval_gradient else value

    def _likelihood(self) -> Any:
        seen = Observations(self.X_fit_, self.y_train_, self._weight_, self._known_, self._spread_, self._group_)
        learnt = len(self.theta_) > len(self.kernel_.theta)
        model = Model(self.kernel_, self._noise_, (1e-300, 1e300) if learnt else None)
        H = self.mean_function_.basis(self.X_fit_) if len(self.mean_coef_) else np.zeros((seen.n, 0))
        return ExactLikelihood(model, seen, H, self.n_jobs)


def _dtype_of(data: Any) -> np.dtype[Any]:
    """float32 where the rows are."""
    if isinstance(data, ArrayData) and data.X.dtype == np.float32:
        return np.dtype(np.float32)
    return np.dtype(np.float64)
