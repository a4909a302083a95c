"""Mixtures of normal distributions with priors, by variational inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

import numpy as np
from scipy.linalg import lapack

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, NoneOr, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Batch, Data
from epicycle.mixture import _covariances as cov
from epicycle.mixture._base import MIXTURE_DEFAULTS, MixtureArguments
from epicycle.mixture._bayesian_model import BayesianModel, Prior
from epicycle.mixture._gaussian_mixture import NormalMixture
from epicycle.mixture._mixture_model import MixtureModel, checked_shape, dense_pieces

FLOAT32 = float(np.finfo(np.float32).max)


class BayesianGaussianMixture(NormalMixture):
    r"""A mixture of normal distributions with priors on all parameters, by variational inference.

    .. math:: \max_q \; \mathrm{E}_q \log p(x, z, \pi, m, \Lambda) - \mathrm{E}_q \log q(z, \pi, m, \Lambda)

    over distributions q in which the components of the rows are independent of the parameters. Weights of components
    that are not needed go to nearly zero, so that `n_components` is an upper bound. No step lowers the bound.

    Parameters
    ----------
    weight_concentration_prior_type : {"dirichlet_process", "dirichlet_distribution"}, default="dirichlet_process"
        Weights by breaking sticks one after the other, which favours few large components, or all alike.
    weight_concentration_prior : float, optional
        Concentration of the weights: the smaller, the fewer components; by default 1 / n_components.
    mean_precision_prior : float, optional
        Rows that the prior of the means is worth; by default 1.
    mean_prior : array-like of shape (n_features,), optional
        By default the mean of X.
    degrees_of_freedom_prior : float, optional
        Of the Wishart prior of the precisions; by default n_features.
    covariance_prior : float or array-like, optional
        In the shape of the covariance of one component; by default that of X, with `reg_covar` on its diagonal where
        it is singular.

    Attributes
    ----------
    %(weights_)s
    weight_concentration_ : ndarray of shape (n_components,), or tuple of two
        Of the Dirichlet distribution, or of the beta distributions of the sticks.
    mean_precision_, degrees_of_freedom_ : ndarray of shape (n_components,)
        A single number of degrees of freedom for "tied" covariances.
    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, covariance_prior_
        The priors as they were used.
    lower_bound_ : float
        The bound on the logarithm of the evidence, for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import BayesianGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (100, 2)), rng.normal(4, 1, (100, 2))])
    >>> model = BayesianGaussianMixture(n_components=6, random_state=0, max_iter=500).fit(X)
    >>> int((model.weights_ > 0.05).sum())
    2
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NormalMixture._parameters,
        "weight_concentration_prior_type": Choice("dirichlet_process", "dirichlet_distribution"),
        "weight_concentration_prior": NoneOr(Real(minimum=0, inclusive=False)),
        "mean_precision_prior": NoneOr(Real(minimum=0, inclusive=False)),
        "mean_prior": NoneOr(ArrayLike()),
        "degrees_of_freedom_prior": NoneOr(Real(minimum=0, inclusive=False)),
        "covariance_prior": NoneOr(AnyOf(Real(minimum=0, inclusive=False), ArrayLike())),
    }

    weight_concentration_: Any
    mean_precision_: np.ndarray
    degrees_of_freedom_: Any
    weight_concentration_prior_: float
    mean_precision_prior_: float
    mean_prior_: np.ndarray
    degrees_of_freedom_prior_: float
    covariance_prior_: Any

    @stores_arguments(**MIXTURE_DEFAULTS)
    def __init__(
        self,
        *,
        n_components: int = 1,
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
        weight_concentration_prior_type: str = "dirichlet_process",
        weight_concentration_prior: float | None = None,
        mean_precision_prior: float | None = None,
        mean_prior: Any = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        verbose_interval: int = 10,
        **shared: Unpack[MixtureArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- priors

    def _model(self, n_features: int, names: Sequence[str], *, missing: bool = False) -> BayesianModel:
        fitted = hasattr(self, "mean_prior_")
        if fitted:
            prior = Prior(
                self.weight_concentration_prior_type == "dirichlet_process",
                float(self.weight_concentration_prior_),
                float(self.mean_precision_prior_),
                np.asarray(self.mean_prior_, dtype=np.float64),
                float(self.degrees_of_freedom_prior_),
                np.asarray(self.covariance_prior_, dtype=np.float64),
            )
        else:  # completed when the rows are there
            prior = Prior(False, 1.0, 1.0, np.zeros(n_features), float(n_features), np.ones(()))
        # The noise that stands for reg_covar belongs to the fit; new rows have none.
        noise = 0.0 if fitted else float(self.reg_covar)
        return BayesianModel(int(self.n_components), n_features, str(self.covariance_type), noise, names, prior)

    def _prepare(self, model: MixtureModel, data: Data) -> None:
        assert isinstance(model, BayesianModel)
        shift = np.zeros(data.n_features)
        for _, part in dense_pieces(data.head().X, always=True):
            shift = np.asarray(part.mean(axis=0, dtype=np.float64))
            break
        full = model.kind in ("full", "tied")
        weight, sums, products = engine.sum(_spread, data, shift, full, n_jobs=self.n_jobs)
        away = sums / weight
        n = max(weight - 1.0, 1.0)
        if not np.isfinite(products).all():
            raise DataError("X: sums of squares of its columns overflow; scale them down")
        C = (products - weight * (np.outer(away, away) if full else away**2)) / n
        if model.kind == "spherical":
            C = np.asarray(C.mean())
        if not _is_positive(C):  # columns that are constant or depend on each other: a component without rows has C
            C = cov.regularized(np.asarray(C), float(self.reg_covar), model.kind)
        given = self.weight_concentration_prior
        model.prior = Prior(
            self.weight_concentration_prior_type == "dirichlet_process",
            1.0 / model.k if given is None else float(given),
            1.0 if self.mean_precision_prior is None else float(self.mean_precision_prior),
            shift + away if self.mean_prior is None else self._given_mean(model.p),
            self._given_degrees(model.p),
            C if self.covariance_prior is None else self._given_covariance(model),
        )

    def _given_mean(self, p: int) -> np.ndarray:
        return checked_shape(np.array(self.mean_prior, dtype=np.float64), (p,), "means")

    def _given_degrees(self, p: int) -> float:
        given = self.degrees_of_freedom_prior
        if given is None:
            return float(p)
        if given <= p - 1:  # scikit-learn's words, which programs match
            raise DataError(
                f"The parameter 'degrees_of_freedom_prior' should be greater than {p - 1}, but got {given:.3f}."
            )
        return float(given)

    def _given_covariance(self, model: BayesianModel) -> np.ndarray:
        kind, p = model.kind, model.p
        C = np.array(self.covariance_prior, dtype=np.float64)
        shape = {"diag": (p,), "spherical": ()}.get(kind, (p, p))
        checked_shape(C, shape, f"{kind} covariance_prior")
        if kind in ("full", "tied"):
            if not np.allclose(C, C.T) or not _is_positive(C):
                raise DataError(f"'{kind} covariance_prior' should be symmetric, positive-definite")
        elif not _is_positive(C):
            raise DataError(f"'{kind} covariance_prior' should be positive")
        return C

    # ------------------------------------------------------------------------------------------- attributes

    def _given_start(self, model: MixtureModel, parameters: dict[str, Any]) -> dict[str, Any]:
        return parameters

    def _attributes(self, model: MixtureModel, parameters: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
        assert isinstance(model, BayesianModel)
        found = self._normal_attributes(model, {**parameters, "weights": model.weights(parameters)}, dtype)
        prior = model.prior
        if max(parameters[name].max(initial=0.0) for name in ("first", "second", "degrees", "precision")) > FLOAT32:
            dtype = np.dtype(np.float64)  # sums of large weights
        first, second = parameters["first"].astype(dtype), parameters["second"].astype(dtype)
        degrees = parameters["degrees"].astype(dtype)
        return {
            **found,
            "weight_concentration_": (first, second) if prior.process else first,
            "mean_precision_": parameters["precision"].astype(dtype),
            "degrees_of_freedom_": degrees[0] if model.kind == "tied" else degrees,
            "weight_concentration_prior_": prior.concentration,
            "mean_precision_prior_": prior.mean_precision,
            "mean_prior_": prior.mean.astype(dtype),
            "degrees_of_freedom_prior_": prior.degrees,
            "covariance_prior_": prior.covariance.astype(dtype) if prior.covariance.ndim else float(prior.covariance),
        }

    def _fitted_parameters(self) -> dict[str, Any]:
        k = len(self.weights_)
        both = self.weight_concentration_
        first, second = both if isinstance(both, tuple | list) else (both, np.zeros(k))
        found = {
            "first": first,
            "second": second,
            "precision": self.mean_precision_,
            "degrees": np.broadcast_to(self.degrees_of_freedom_, (k,)),
            "means": self.means_,
            "covariances": self.covariances_,
        }
        return {name: np.array(value, dtype=np.float64) for name, value in found.items()}


def _is_positive(C: np.ndarray) -> bool:
    """Whether one covariance, vector of variances or variance is positive."""
    if np.ndim(C) < 2:
        return bool((C > 0).all())
    L, info = lapack.dpotrf(C, lower=1, clean=1)
    return bool(info == 0 and (np.diagonal(L) ** 2 > cov.SINGULAR * np.diagonal(C)).all())


def _spread(batch: Batch, shift: np.ndarray, full: bool) -> tuple[float, np.ndarray, np.ndarray]:
    """Weight, and sums of x - shift and of its products or squares."""
    w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    p = len(shift)
    sums, products = np.zeros(p), np.zeros((p, p) if full else p)
    for rows, part in dense_pieces(batch.X):
        d = part - shift
        weighted = d * w[rows, None]
        sums += weighted.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            products += weighted.T @ d if full else np.einsum("ij,ij->j", weighted, d)
    return float(w.sum()), sums, products
