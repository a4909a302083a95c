"""Counts of events with pseudo-counts: what the multinomial, Bernoulli and categorical models share.

With a Dirichlet prior of parameters 1 + alpha_j the maximum of the posterior is
theta_j = (N_j + alpha_j) / sum_l (N_l + alpha_l): Laplace's rule for alpha = 1, the maximum of the likelihood for 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle.core._arguments import SharedArguments, defaults_of
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Domain, NoneOr, Real
from epicycle.naive_bayes._base import NaiveBayes

#: The least alpha with force_alpha=False.
_LEAST_ALPHA = 1e-10


class DiscreteArguments(SharedArguments, total=False):
    """Arguments of the constructors of models from counts, with their defaults."""

    alpha: Annotated[Any, 1.0]
    force_alpha: Annotated[bool, True]
    fit_prior: Annotated[bool, True]
    class_prior: Annotated[Any, None]
    prior_alpha: Annotated[float, 0.0]
    calibration: Annotated[str | None, None]


DISCRETE_DEFAULTS: Mapping[str, Any] = defaults_of(DiscreteArguments, n_jobs=None)


class DiscreteNaiveBayes(NaiveBayes):
    """Naive Bayes from counts."""

    _docs: ClassVar[Mapping[str, str]] = {
        "alpha": """alpha : float or array-like of shape (n_features,) or (n_classes, n_features), default={default}
    Pseudo-count of every event: the parameters of a Dirichlet prior, less one. 1 is Laplace's rule, 0 the maximum
    of the likelihood.""",
        "force_alpha": """force_alpha : bool, default={default}
    Whether an alpha below 1e-10 is taken as it is, or raised to it.""",
        "fit_prior": """fit_prior : bool, default={default}
    Whether the probabilities of classes follow their weights, or are equal.""",
        "class_prior": """class_prior : array-like of shape (n_classes,), optional
    Probabilities of the classes, in place of learnt ones.""",
        "feature_count_": "feature_count_ : ndarray of shape (n_classes, n_features)\n    The counts N.",
        "feature_log_prob_": "feature_log_prob_ : ndarray of shape (n_classes, n_features)\n    Logarithms of theta.",
        "prior_alpha": """prior_alpha : float, default={default}
    Pseudo-count of every class, for probabilities of classes that are the maximum of a posterior too.""",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NaiveBayes._parameters,
        "alpha": AnyOf(Real(minimum=0), ArrayLike()),
        "force_alpha": Boolean(),
        "fit_prior": Boolean(),
        "class_prior": NoneOr(ArrayLike()),
        "prior_alpha": Real(minimum=0),
    }
    _takes_sparse: ClassVar[bool] = True

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any
    prior_alpha: float
    _fixed_tags: ClassVar[Mapping[str, Any]] = {
        "classifier_tags.poor_score": True
    }  # on the normal features of scikit-learn's checks

    def _pseudo_counts(self, n_classes: int) -> Any:
        """Alpha as a number, (p,) or (K, p)."""
        alpha = np.asarray(self.alpha, dtype=np.float64)
        p = self.n_features_in_
        if alpha.ndim > 0 and alpha.shape not in ((p,), (n_classes, p)):
            raise ParameterError(
                f"alpha: has shape {alpha.shape}. When alpha is an array, it should contain `n_features`={p} numbers, "
                f"or n_classes x n_features = {n_classes} x {p}"
            )
        if not np.isfinite(alpha).all() or (alpha < 0).any():
            raise ParameterError("alpha: All values in alpha must be greater than 0, or equal to it, and finite")
        if not self.force_alpha and alpha.size and alpha.min() < _LEAST_ALPHA:
            warnings.warn(
                f"alpha too small will result in numeric errors, setting alpha = {_LEAST_ALPHA:.1e}. Use "
                "`force_alpha=True` to keep alpha unchanged.",
                stacklevel=6,
            )
            alpha = np.maximum(alpha, _LEAST_ALPHA)
        return alpha

    def _log_prior(self, count: np.ndarray) -> np.ndarray:
        K = len(count)
        if self.class_prior is not None:
            prior = np.asarray(self.class_prior, dtype=np.float64)
            if prior.shape != (K,):
                raise ParameterError(
                    f"class_prior: has shape {prior.shape}. Number of priors must match number of classes, {K}"
                )
            if not np.isfinite(prior).all() or (prior < 0).any():
                raise ParameterError("class_prior: expected finite numbers >= 0")
        elif self.fit_prior:
            prior = (count + self.prior_alpha) / (count.sum() + K * self.prior_alpha)
        else:
            prior = np.full(K, 1.0 / K)
        with np.errstate(divide="ignore"):  # a class that was announced and not seen yet
            return np.asarray(np.log(prior))


def refuse_negative(X: Any, name: str) -> None:
    """Counts are not negative."""
    values = X.data if sp.issparse(X) else np.asarray(X)
    negative = values < 0  # false for NaN
    if negative.any():
        raise DataError(
            f"X: Negative values in data passed to {name} (input X): {values[negative][0]:g}; expected counts or codes"
        )


def weighted_counts(X: Any, log_theta: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """sum_j x_j log theta_cj + constant_c."""
    return np.asarray(np.asarray(X @ log_theta.T) + constant)


def count_terms(X: Any, weights: np.ndarray) -> tuple[Any, np.ndarray]:
    """x_j v_j for every row and feature, sparse where X is."""
    features = sp.csr_array(X.multiply(weights)) if sp.issparse(X) else np.asarray(X) * weights
    return features, np.zeros(X.shape[0])


def log_of_counts(counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """log(counts / totals), -inf where a count is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(np.log(counts) - np.log(totals), nan=-np.inf, posinf=np.inf, neginf=-np.inf))
