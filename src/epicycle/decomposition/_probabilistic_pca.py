r"""Probabilistic principal components:  maximise  sum_i v_i log N(x_i; m, W W' + s2 I)  over loadings and noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Data
from epicycle.decomposition._base import LatentFactors
from epicycle.decomposition._models import LOG_2PI, GapsModel
from epicycle.decomposition._scatter import Scatter, filled_scatter, scatter_of
from epicycle.em import run_em
from epicycle.linalg._signs import oriented

#: The residual of eigenvectors, relative to the largest eigenvalue, that the closed form is certified with.
_RESIDUAL = 1e-8


class ProbabilisticPCA(LatentFactors):
    r"""Principal components as a density: few factors, and noise that is equal in all directions.

    .. math:: x = m + W f + e, \qquad f \sim N(0, I), \qquad e \sim N(0, \sigma^2 I)

    The maximum of the likelihood is known: with the eigenvalues :math:`\lambda_1 \ge \lambda_2 \ge \dots` and
    eigenvectors u of the covariance, :math:`\sigma^2` is the mean of the p - k smallest, and the columns of W are
    :math:`\sqrt{\lambda_j - \sigma^2}\, u_j`. Rows with missing entries, NaN, are fitted by expectation maximisation.

    Parameters
    ----------
    n_components : int, optional
        k; default: one less than the number of directions in which rows differ, which is that of the features where
        there are enough rows.
    method : {"auto", "closed form", "em"}, default="auto"
        How the maximum is found; "auto" takes the closed form where no entry is missing. Both end at the same model.
    tol : float, default=1e-8
        EM ends when two steps in a row raise the mean log-likelihood of a row by at most `tol` each.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Loadings W' as rows: principal axes times :math:`\sqrt{\lambda_j - \sigma^2}`.
    noise_variance_ : float
        :math:`\sigma^2`.
    explained_variance_ : ndarray of shape (n_components,)
        :math:`\lambda_j`, variances along the axes.
    mean_ : ndarray of shape (n_features,)
    log_likelihood_ : float
        Of all rows.
    certificate_ : Certificate
        Residual of the eigenvectors for the closed form; gain of the last step for EM.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import ProbabilisticPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 1)) * [2.0, 2.0, 1.0] + rng.normal(size=(2000, 3))
    >>> model = ProbabilisticPCA(1).fit(X)
    >>> print(model.components_.round(1), round(model.noise_variance_, 1))
    [[2. 2. 1.]] 1.0
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> print(ProbabilisticPCA(1).fit(X).components_.round(1))
    [[2. 2. 1.]]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": NoneOr(Integer(minimum=0)),
        "method": Choice("auto", "closed form", "em"),
        "tol": Real(minimum=0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition",
        catalogue=("E6",),
        engines=("memory", "files", "dask"),
        certificate="eigenvalue residual or stationarity",
    )

    noise_variance_: float
    explained_variance_: np.ndarray

    @stores_arguments(tol=1e-8, max_iter=1000, n_jobs=None, verbose=0)
    def __init__(
        self, n_components: int | None = None, *, method: str = "auto", **shared: Unpack[SharedArguments]
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find axes and noise of rows X."""
        data = self._intake(X, sample_weight)
        p = data.n_features
        scatter = scatter_of(data, self.n_jobs)
        if scatter is not None and self.method != "em":
            self._solve(scatter, self._wanted(self.n_components, p, max(scatter.rank() - 1, 0)))
            return self
        if scatter is None and self.method == "closed form":
            filled_scatter(data, self.n_jobs)  # names what is no missing entry: infinity, overflow, an empty column
            raise DataError("Input X contains NaN; method='closed form' is for complete rows, expected 'auto' or 'em'")
        start = scatter if scatter is not None and scatter.S is not None else filled_scatter(data, self.n_jobs)
        self._iterate(data, start, self._wanted(self.n_components, p, max(start.rank() - 1, 0)))
        return self

    def _solve(self, scatter: Scatter, k: int) -> None:
        """The closed form."""
        p, total = len(scatter.mean), float(scatter.variance.sum())
        values, axes = scatter.axes(k, np.ones(p))
        noise = max((total - float(values.sum())) / max(p - k, 1), scatter.shared_floor)
        residual = _residual(scatter, values, axes)
        self.mean_, self.noise_variance_, self.explained_variance_ = scatter.mean, noise, np.maximum(values, noise)
        self.components_ = oriented(np.sqrt(np.maximum(values - noise, 0.0)) * axes.T).T
        inside = self.explained_variance_
        mean_square = float((values / inside).sum()) + (total - float(values.sum())) / noise
        log_det = float(np.log(inside).sum()) + (p - k) * float(np.log(noise))
        self.log_likelihood_ = -0.5 * scatter.weight * (p * LOG_2PI + log_det + mean_square)
        meaning = f"every axis solves its eigenvalue equation up to {residual:.1e} of the largest variance: the maximum"
        certificate = Certificate("eigenvalue residual", residual, _RESIDUAL, meaning)
        self._conclude_directly(
            certificate,
            x=self.components_.ravel(),
            objective=-self.log_likelihood_ / scatter.weight,
            log_likelihood=self.log_likelihood_,
        )

    def _iterate(self, data: Data, start: Scatter, k: int) -> None:
        """Expectation maximisation over rows."""
        p = len(start.mean)
        values, axes = start.axes(k, np.ones(p))
        floor = start.shared_floor
        noise = max(0.5 * float(start.variance.mean()), floor)
        W = np.sqrt(np.maximum(values - noise, 0.1 * noise))[:, None] * axes
        first = {"components": W, "mean": start.mean, "noise": np.full(p, noise)}
        model = GapsModel(start.mean, np.full(p, floor), shared=True)
        solution = run_em(
            model,
            data,
            first,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            accelerate=True,
            monitor=self._monitor(int(self.max_iter), lambda x: self._attributes(model.from_vector(x, first))),
            n_jobs=self.n_jobs,
            state=self._resume_state(),
        )
        for name, value in self._attributes(solution.parameters).items():
            setattr(self, name, value)
        self.log_likelihood_ = solution.log_likelihood
        self._conclude(solution)

    def _attributes(self, found: Mapping[str, np.ndarray]) -> dict[str, Any]:
        noise = float(found["noise"][0])
        _, s, V = np.linalg.svd(found["components"], full_matrices=False)
        return {
            "components_": oriented(s * V.T).T,
            "mean_": found["mean"],
            "noise_variance_": noise,
            "explained_variance_": s**2 + noise,
        }

    def _noise(self) -> np.ndarray:
        return np.full(len(self.mean_), self.noise_variance_)


def _residual(scatter: Scatter, values: np.ndarray, axes: np.ndarray) -> float:
    """The largest entry of S u - lambda u, relative to the largest eigenvalue."""
    if not len(values) or values[0] <= 0:
        return 0.0
    if scatter.S is not None:
        product = axes @ scatter.S
    else:
        assert scatter.F is not None
        product = (axes @ scatter.F.T) @ scatter.F
    return float(np.abs(product - values[:, None] * axes).max() / values[0])
