r"""Anomalies by the density of a mixture of normal distributions:  s(x) = log sum_k pi_k N(x; m_k, C_k)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
from sklearn.base import clone

from epicycle.anomaly._density_detector import DensityDetector
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import ConvergenceError, DataError
from epicycle.core._parameters import AnyOf, Choice, Domain, Integer, Real
from epicycle.core._random import seed_of
from epicycle.core._settings import config
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.mixture import GaussianMixture
from epicycle.mixture._covariances import factors_of_roots

_PATIENCE = 3  # numbers of components without a lower BIC


class MixtureAnomalyDetector(DensityDetector):
    r"""Anomalies by the density of a mixture of normal distributions.

    .. math:: s(x) = \log \sum_k \pi_k \, N(x; m_k, C_k)

    fitted by expectation maximisation: rows between the clusters are unusual too.

    Parameters
    ----------
    n_components : int or "bic", default="bic"
        Number of components; "bic" takes that of the lowest BIC from 1 to `max_components`, and ends after three
        numbers that are no better.
    max_components : int, default=6
        Largest number that "bic" tries.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Each component has a covariance of its own, all share one, each has variances only, or a single one.
    reg_covar : float, default=1e-6
        Added to the variances, so that no component shrinks to a point.
    tol : float, default=1e-3
        Ends when two steps in a row raise the mean log-likelihood by at most `tol` each.

    Attributes
    ----------
    mixture_ : GaussianMixture
        The fitted mixture; its `history_` has the steps of the climb.
    n_components_ : int
    criteria_ : dict of int to float
        BIC of the numbers that were tried; empty where the number was given.
    certificate_ : Certificate
        Stationarity: the gain of the last step.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MixtureAnomalyDetector
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-5, 1, size=(200, 1)), rng.normal(5, 1, size=(200, 1))])
    >>> model = MixtureAnomalyDetector(contamination=0.01, random_state=0).fit(X)
    >>> model.n_components_, model.predict([[-5.0], [0.0], [5.0]])
    (2, array([ 1, -1,  1]))
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": AnyOf(Choice("bic"), Integer(minimum=1)),
        "max_components": Integer(minimum=1),
        "covariance_type": Choice("full", "tied", "diag", "spherical"),
        "reg_covar": Real(minimum=0),
        "tol": Real(minimum=0),
        **DensityDetector._parameters,
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="anomaly", catalogue=("E16",), engines=("memory", "files", "dask"), certificate="stationarity"
    )

    n_components: int | str
    max_components: int
    covariance_type: str
    reg_covar: float
    tol: float
    max_iter: int
    random_state: Any
    mixture_: GaussianMixture

    @stores_arguments(tol=1e-3, max_iter=200, random_state=None, n_jobs=None)
    def __init__(
        self,
        n_components: int | str = "bic",
        *,
        max_components: int = 6,
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
        contamination: float = 0.1,
        threshold: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _fit_model(self, data: Data) -> None:
        model = GaussianMixture(
            1 if self.n_components == "bic" else int(self.n_components),
            covariance_type=self.covariance_type,
            reg_covar=self.reg_covar,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=seed_of(self.random_state),
            n_jobs=self.n_jobs,
        )
        self.criteria_: dict[int, float] = {}
        with config(on_nonconvergence="ignore"):  # told once, below
            if self.n_components == "bic":
                model, self.criteria_ = _lowest_bic(model, data, int(self.max_components))
            else:
                model.fit(data)
        self.mixture_, self.n_components_ = model, int(model.n_components)
        self._conclude_directly(model.certificate_, x=model.weights_, objective=-float(model.lower_bound_))

    def _scores(self, data: Data) -> Any:
        return self.mixture_.score_samples(data)

    def _contributions(self, X: Any) -> np.ndarray:
        mixture = self.mixture_
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        share = mixture.predict_proba(X)
        roots = np.asarray(mixture.precisions_cholesky_, dtype=np.float64)
        factors = factors_of_roots(roots, self.covariance_type, X.shape[1])
        out = np.zeros(X.shape)
        for k, mean in enumerate(np.asarray(mixture.means_, dtype=np.float64)):
            D, W = X - mean, factors[k if len(factors) > 1 else 0]
            part = D * D * W**2 if W.ndim == 1 else D * ((D @ W.T) @ W)
            out += share[:, k, None] * part / 2
        return out


def _lowest_bic(model: GaussianMixture, data: Data, most: int) -> tuple[GaussianMixture, dict[int, float]]:
    """(the mixture of the lowest BIC, BIC by number of components)."""
    best: Any = None
    criteria: dict[int, float] = {}
    for k in range(1, most + 1):
        try:
            tried = clone(model).set_params(n_components=k).fit(data)
        except (DataError, ConvergenceError):  # more components than the rows can bear
            if best is None:
                raise
            break
        criteria[k] = float(tried.bic(data))
        if best is None or criteria[k] < criteria[int(best.n_components)]:
            best = tried
        elif k - int(best.n_components) >= _PATIENCE:
            break
    return best, criteria
