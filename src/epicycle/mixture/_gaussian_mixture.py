"""Mixtures of normal distributions:  maximise  sum_i v_i log sum_k pi_k N(x_i; m_k, C_k)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

import numpy as np
from scipy.linalg import solve_triangular

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import ArrayLike, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.mixture import _covariances as cov
from epicycle.mixture._base import MIXTURE_DEFAULTS, Mixture, MixtureArguments
from epicycle.mixture._criteria import LikelihoodMixture
from epicycle.mixture._mixture_model import MixtureModel, checked_shape, checked_weights
from epicycle.mixture._normal_model import NormalModel


class NormalMixture(Mixture):
    """Common parts of mixtures of normal components, however they are fitted."""

    covariance_type: str
    reg_covar: float
    means_: np.ndarray
    covariances_: np.ndarray
    precisions_: np.ndarray
    precisions_cholesky_: np.ndarray

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **Mixture._parameters,
        "covariance_type": Choice("full", "tied", "diag", "spherical"),
        "reg_covar": Real(minimum=0),
        "verbose_interval": Integer(minimum=1),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "verbose_interval": "verbose_interval : int, default={default}\n"
        "    Accepted for compatibility; `verbose` says what is shown.",
        "covariance_type": 'covariance_type : {"full", "tied", "diag", "spherical"}, default={default}\n'
        "    Each component has a covariance of its own, all share one, each has variances only, or a single one.",
        "reg_covar": "reg_covar : float, default={default}\n"
        "    Added to the variances, so that no component shrinks to a point. It is no part of the likelihood: where\n"
        "    it would lower it, a component keeps the covariance that it has.",
        "means_": "means_ : ndarray of shape (n_components, n_features)",
        "covariances_": "covariances_ : ndarray\n    Of shape (k, p, p), (p, p), (k, p) or (k,), by `covariance_type`.",
        "precisions_": "precisions_ : ndarray\n    Inverses of the covariances, in the same shape.",
        "precisions_cholesky_": "precisions_cholesky_ : ndarray\n"
        "    Upper triangles U with U U' the precisions, or their square roots.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = (
        "means_",
        "covariances_",
        "precisions_",
        "precisions_cholesky_",
    )

    def _draw(self, component: int, n: int, rng: np.random.Generator) -> np.ndarray:
        p = self.means_.shape[1]
        U = np.asarray(self.precisions_cholesky_, dtype=np.float64)  # why not the covariance: _prediction_parameters
        W = cov.factors_of_roots(U, self.covariance_type, p)
        W, Z = W[component if len(W) > 1 else 0], rng.standard_normal((n, p))
        return np.asarray(self.means_[component] + (Z / W if W.ndim == 1 else solve_triangular(W, Z.T, lower=True).T))

    def _prediction_parameters(self) -> dict[str, Any]:
        # In single precision a covariance can be singular; its factor was computed before it was rounded.
        U = np.asarray(self.precisions_cholesky_, dtype=np.float64)
        return {
            **self._fitted_parameters(),
            "factors": cov.factors_of_roots(U, self.covariance_type, len(self.means_[0])),
        }

    def _normal_attributes(self, model: NormalModel, parameters: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
        C = parameters["covariances"]
        roots, precisions = cov.precisions_of(model.factors(C), model.kind)
        found = {
            "weights_": parameters["weights"],
            "means_": parameters["means"],
            "covariances_": C,
            "precisions_cholesky_": roots,
            "precisions_": precisions,
        }
        with np.errstate(over="ignore"):
            kept = {name: np.asarray(value, dtype=dtype) for name, value in found.items()}
        for name, value in kept.items():
            if not np.isfinite(value).all():
                raise DataError(
                    f"X, reg_covar and priors: {name} overflows in {np.dtype(dtype)}; scale X, or fit it in float64"
                )
        return kept


class GaussianMixture(NormalMixture, LikelihoodMixture):
    r"""A mixture of normal distributions.

    .. math:: \max_{\pi, m, C} \; \sum_i v_i \log \sum_k \pi_k \, N(x_i; m_k, C_k)

    by expectation maximisation from one or several starts; the log-likelihood never falls. Missing entries (NaN) are
    integrated out, exactly: a row counts by the density of what is there.

    Parameters
    ----------
    weights_init : array-like of shape (n_components,), optional
    means_init : array-like of shape (n_components, n_features), optional
    precisions_init : array-like, optional
        Weights, means and inverse covariances to start from, in place of those of `init_params`.

    Attributes
    ----------
    %(weights_)s

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import GaussianMixture
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> sorted(model.means_.round(6).tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    >>> bool(model.predict([[0, 0]])[0] != model.predict([[12, 3]])[0])
    True
    >>> model.predict([[9.0, np.nan]]).shape
    (1,)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NormalMixture._parameters,
        "weights_init": NoneOr(ArrayLike()),
        "means_init": NoneOr(ArrayLike()),
        "precisions_init": NoneOr(ArrayLike()),
    }
    _takes_missing = True
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.allow_nan": True}

    @stores_arguments(**MIXTURE_DEFAULTS)
    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        verbose_interval: int = 10,
        **shared: Unpack[MixtureArguments],
    ) -> None: ...

    def _model(self, n_features: int, names: Sequence[str], *, missing: bool = False) -> NormalModel:
        return NormalModel(
            int(self.n_components), n_features, str(self.covariance_type), float(self.reg_covar), names, missing
        )

    def _given_start(self, model: MixtureModel, parameters: dict[str, Any]) -> dict[str, Any]:
        k, p = model.k, model.p
        given = dict(parameters)
        if self.weights_init is not None:
            given["weights"] = checked_weights(self.weights_init, k)
        if self.means_init is not None:
            given["means"] = checked_shape(np.array(self.means_init, dtype=np.float64), (k, p), "means")
        if self.precisions_init is not None:
            given["covariances"] = cov.covariances_of_precisions(self.precisions_init, self.covariance_type, k, p)
        return given

    def _start_is_given(self) -> bool:
        return not any(given is None for given in (self.weights_init, self.means_init, self.precisions_init))

    def _attributes(self, model: MixtureModel, parameters: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
        assert isinstance(model, NormalModel)
        return self._normal_attributes(model, parameters, dtype)

    def _fitted_parameters(self) -> dict[str, Any]:
        found = {"weights": self.weights_, "means": self.means_, "covariances": self.covariances_}
        return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}
