r"""Factor analysis:  maximise  sum_i v_i log N(x_i; m, W W' + diag(noise))  over loadings W and noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import ArrayLike, Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Data
from epicycle.decomposition._base import LatentFactors
from epicycle.decomposition._models import FactorModel, GapsModel
from epicycle.decomposition._rotation import rotated
from epicycle.decomposition._scatter import Scatter, filled_scatter, scatter_of
from epicycle.em import EMSolution, run_em
from epicycle.linalg._signs import column_signs, oriented


class FactorAnalysis(LatentFactors):
    r"""Few latent factors behind many columns, each with noise of its own.

    .. math:: x = m + W f + e, \qquad f \sim N(0, I), \qquad e \sim N(0, \mathrm{diag}(\psi))

    by maximum likelihood. Complete rows need their covariance alone, found in one pass over memory, files or
    partitions; with more columns than rows nothing of size p by p is formed. Entries that are NaN are missing: rows
    then count with the density of the others. The log-likelihood never falls.

    Parameters
    ----------
    n_components : int, optional
        Number of factors; default: one for each feature.
    tol : float, default=1e-2
        Ends when two steps in a row raise the log-likelihood of all rows by at most `tol` each.
    noise_variance_init : array-like of shape (n_features,), optional
        First noise variances; default: half the variances of the columns.
    svd_method : {"randomized", "lapack"}, default="randomized"
        Accepted for compatibility; eigenvectors are computed to working precision in any case.
    iterated_power : int, default=3
        Accepted for compatibility; the solution does not depend on it.
    rotation : {"varimax", "quartimax", "promax", "oblimin"}, optional
        Rotation of the loadings to a simple structure. With "promax" and "oblimin" factors may be correlated.
    random_state : int, Generator, RandomState or None, default=0
        Accepted for compatibility; the solution does not depend on it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Loadings W' of the factors, as rows. Without a rotation they are those with W' diag(noise)^-1 W diagonal, the
        largest first.
    noise_variance_ : ndarray of shape (n_features,)
        Noise of the columns, at least 1e-6 of their variance.
    mean_ : ndarray of shape (n_features,)
    factor_covariance_ : ndarray of shape (n_components, n_components)
        Correlations of the factors: the identity but for oblique rotations.
    loglike_ : list of float
        Log-likelihood of all rows after every step.
    log_likelihood_ : float
        The last of them.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> ability = rng.normal(size=(500, 1))
    >>> X = ability * [1.0, 2.0, 0.5, 0.0] + rng.normal(size=(500, 4)) * [0.5, 1.0, 1.0, 2.0]
    >>> model = FactorAnalysis(1).fit(X)
    >>> print(model.components_.round(1), model.noise_variance_.round(1))
    [[ 1.   2.   0.6 -0.1]] [0.3 0.8 1.  4. ]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": NoneOr(Integer(minimum=0)),
        "tol": Real(minimum=0),
        "copy": Boolean(),
        "noise_variance_init": NoneOr(ArrayLike()),
        "svd_method": Choice("randomized", "lapack"),
        "iterated_power": Integer(minimum=0),
        "rotation": NoneOr(Choice("varimax", "quartimax", "promax", "oblimin")),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition", catalogue=("E6",), engines=("memory", "files", "dask"), certificate="stationarity"
    )

    noise_variance_: np.ndarray
    factor_covariance_: np.ndarray
    loglike_: list[float]

    @stores_arguments(tol=1e-2, max_iter=1000, random_state=0, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_components: int | None = None,
        *,
        copy: bool = True,
        noise_variance_init: Any = None,
        svd_method: str = "randomized",
        iterated_power: int = 3,
        rotation: str | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find loadings and noise of rows X."""
        data = self._intake(X, sample_weight)
        k = self._wanted(self.n_components, data.n_features, data.n_features)
        scatter = scatter_of(data, self.n_jobs)
        if scatter is not None:
            noise = self._first_noise(scatter)
            model = FactorModel(scatter, k)
            solution = self._climb(model, None, noise, lambda x: self._reconstructed(model, x), scatter.weight)
            W, self.mean_, self.noise_variance_ = solution.expectation.statistics[0], scatter.mean, solution.parameters
        else:
            solution = self._fit_gaps(data, k)
            W, self.mean_ = solution.parameters["components"], solution.parameters["mean"]
            self.noise_variance_ = solution.parameters["noise"]
            W = canonical(W, self.noise_variance_)
        self.components_, self.factor_covariance_ = oriented(W.T).T, np.eye(k)
        if self.rotation is not None:
            B, correlations = rotated(W, self.rotation)
            signs = column_signs(B.T)
            self.components_, self.factor_covariance_ = B * signs[:, None], correlations * np.outer(signs, signs)
        self.loglike_ = [float(value) for value in solution.history["log_likelihood"]]
        self.log_likelihood_ = solution.log_likelihood
        self._conclude(solution)
        return self

    def _first_noise(self, scatter: Scatter) -> np.ndarray:
        if self.noise_variance_init is None:
            return np.asarray(np.maximum(0.5 * scatter.variance, scatter.floor))
        given = np.asarray(self.noise_variance_init, dtype=np.float64)
        if given.shape != scatter.mean.shape or not (np.isfinite(given) & (given > 0)).all():
            raise DataError(
                f"noise_variance_init: shape {given.shape}; expected {scatter.mean.shape}, numbers above 0 for each "
                "feature"
            )
        return np.asarray(np.maximum(given, scatter.floor))

    def _climb(self, model: Any, data: Any, start: Any, attributes: Any, weight: float) -> EMSolution:
        return run_em(
            model,
            data,
            start,
            max_iter=int(self.max_iter),
            tol=float(self.tol) / weight,
            accelerate=True,
            monitor=self._monitor(int(self.max_iter), attributes),
            n_jobs=self.n_jobs,
            state=self._resume_state(),
        )

    def _reconstructed(self, model: FactorModel, x: np.ndarray) -> dict[str, Any]:
        noise = model.from_vector(x, None)
        W = oriented(model.loadings(noise)[0].T).T
        return {
            "components_": W,
            "mean_": model.scatter.mean,
            "noise_variance_": noise,
            "factor_covariance_": np.eye(len(W)),
        }

    def _fit_gaps(self, data: Data, k: int) -> EMSolution:
        start = filled_scatter(data, self.n_jobs)
        noise = self._first_noise(start)
        W, _ = FactorModel(start, k).loadings(noise)
        model = GapsModel(start.mean, start.floor, shared=False)
        like = {"components": W, "mean": start.mean, "noise": noise}

        def attributes(x: np.ndarray) -> dict[str, Any]:
            found = model.from_vector(x, like)
            out = {f"{name}_": found[name] for name in ("components", "mean")}
            return {**out, "noise_variance_": found["noise"], "factor_covariance_": np.eye(k)}

        return self._climb(model, data, like, attributes, start.weight)

    def _noise(self) -> np.ndarray:
        return self.noise_variance_

    def _factor_covariance(self) -> np.ndarray:
        return self.factor_covariance_


def canonical(W: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The rotation of loadings, as rows, with W diag(noise)^-1 W' diagonal, the largest first."""
    if not W.size:
        return W
    root = np.sqrt(noise)
    _, s, V = np.linalg.svd(W / root, full_matrices=False)
    return np.asarray(s[:, None] * V * root)
