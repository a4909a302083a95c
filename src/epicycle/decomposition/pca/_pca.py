r"""Principal components:  maximise  sum_i w_i |V (x_i - m)|^2  over orthonormal rows V."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import stream
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.decomposition._base import FactorDensity
from epicycle.decomposition._probabilistic_pca import ProbabilisticPCA
from epicycle.decomposition._scatter import FLOOR, LEAST, filled_scatter
from epicycle.decomposition.pca import _number_of_components as number
from epicycle.decomposition.pca._projection import Projection
from epicycle.decomposition.pca._spectrum import (
    Spectrum,
    by_covariance,
    by_factor,
    by_products,
    degrees_of_freedom,
    number_of_axes,
    spectrum_of,
)
from epicycle.linalg._signs import oriented
from epicycle.stats._moments import (
    CentredFactor,
    TriangularFactor,
    centred_factor,
    factor_statistic,
    refuse_non_finite,
    shift_of,
)

_SMALL = 500  # rows and columns up to which the factor of the rows costs next to nothing
_COLUMNS = 1000  # up to which the covariance is formed
_RANDOMIZED = 1e-6  # residual at which products with random columns end
_LANCZOS = 1e-15  # the same for solver "arpack" with tol=0: as far as rounding allows
_MOST_PRODUCTS = 300


class PCA(Projection, FactorDensity):
    r"""Principal component analysis: the directions in which rows differ most.

    .. math:: S = \frac{1}{W - 1} \sum_i w_i (x_i - m)(x_i - m)' = \sum_j \lambda_j v_j v_j', \qquad
              z_{ij} = v_j' (x_i - m)

    with the eigenvalues :math:`\lambda_1 \ge \lambda_2 \ge \dots` as variances along the axes :math:`v_j`, and W the
    sum of the weights. The first k axes span the space with the least sum of squared distances from the rows.

    Parameters
    ----------
    n_components : int, float, "mle", "parallel" or None, default=None
        k; or the share of the variance, between 0 and 1, that is exceeded; or the number of the largest evidence
        (Minka); or the leading eigenvalues that exceed those of independent columns (parallel analysis); None keeps
        all.
    whiten : bool, default=False
        Whether coordinates are divided by their standard deviations.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized"}, default="auto"
        From the triangular factor of the rows, which is as accurate as their SVD ("full"); from S; or from products
        of the rows with a few columns, to rounding ("arpack": block Lanczos) or to a residual of 1e-6 ("randomized").
        "auto" takes the cheapest that reaches them.
    tol : float, default=0.0
        Residual, relative to the largest variance, at which "arpack" ends; 0 goes as far as rounding allows.
    iterated_power : int or "auto", default="auto"
        Most products of "randomized", after the first; "auto" goes on until the residual is reached.
    n_oversamples : int, default=10
        Random columns beyond k for the solvers that use products.
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}, default="auto"
        Accepted for compatibility; columns are always made orthogonal.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Axes as rows, the largest entry of each positive.
    explained_variance_ : ndarray of shape (n_components,)
        :math:`\lambda_j`.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share of the variance of all columns.
    singular_values_ : ndarray of shape (n_components,)
        :math:`\sqrt{(W - 1) \lambda_j}`, those of the centred rows.
    mean_ : ndarray of shape (n_features,)
    noise_variance_ : float
        The mean of the eigenvalues that are left out.
    n_components_ : int
    n_samples_ : int
    solver_ : str
        The solver that ran; "em" where entries are missing.
    certificate_ : Certificate
        The largest residual of an axis in its eigenvalue equation; for products also a bound on the variance along
        any other direction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import PCA
    >>> X = load_iris().data
    >>> model = PCA(n_components=0.95).fit(X)
    >>> model.explained_variance_ratio_.round(3), model.transform(X).shape
    (array([0.925, 0.053]), (150, 2))
    >>> model.certificate_.holds
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": NoneOr(
            AnyOf(Integer(minimum=0), Real(minimum=0, maximum=1, inclusive=False), Choice("mle", "parallel"))
        ),
        "copy": Boolean(),
        "whiten": Boolean(),
        "svd_solver": Choice("auto", "full", "covariance_eigh", "arpack", "randomized"),
        "tol": Real(minimum=0),
        "iterated_power": AnyOf(Choice("auto"), Integer(minimum=0)),
        "n_oversamples": Integer(minimum=1),
        "power_iteration_normalizer": Choice("auto", "QR", "LU", "none"),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="decomposition",
        catalogue=("E7",),
        engines=("memory", "files", "dask"),
        certificate="eigenvalue residual",
    )
    _takes_missing = True

    mean_: np.ndarray
    explained_variance_: np.ndarray
    explained_variance_ratio_: np.ndarray
    singular_values_: np.ndarray
    noise_variance_: float
    _weight_: float
    _stream_factor_: np.ndarray
    _stream_shift_: np.ndarray
    _stream_weight_: float
    _stream_rows_: int
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.allow_nan": True}

    @stores_arguments(tol=0.0, random_state=None, n_jobs=None)
    def __init__(
        self,
        n_components: float | str | None = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: str = "auto",
        iterated_power: int | str = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the axes of rows X."""
        data = self._fit_data(X, None, sample_weight, target="none", check_finite=False, missing=True)
        if _has_gaps(data):
            self._fit_with_gaps(data)
            return self
        solver = self._solver(data)
        self._check_number(data, solver)
        if solver in ("arpack", "randomized"):
            found: Spectrum | None = self._by_products(data, solver)
        else:
            found = by_factor(data, self.n_jobs) if solver == "full" else by_covariance(data, self.n_jobs)
        if found is None:  # in files or partitions
            self._fit_with_gaps(data)
            return self
        self.solver_ = solver
        self._set(found, self._number(found), data)
        self._conclude_spectrum(found)
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: the axes are those of `fit` on all rows so far, because triangular factors add up.

        The rows themselves are not kept; a factor of the size of the covariance is.
        """
        data = self._fit_data(X, None, sample_weight, target="none", reset=not hasattr(self, "n_features_in_"))
        now = self._rows_so_far(data).and_rows(data, self.n_jobs)
        found = spectrum_of(now.centred())
        k = self.n_components
        if isinstance(k, int | np.integer) and k > len(found.values):
            raise ParameterError(
                f"n_components={k} must be between 0 and min(n_samples, n_features)={len(found.values)} of the rows "
                "so far"
            )
        self._stream_factor_, self._stream_shift_ = now.R, now.shift
        self._stream_weight_, self._stream_rows_ = now.weight, now.n_rows
        self.solver_ = "full"
        self._set(found, self._number(found), data)
        self._conclude_spectrum(found)
        return self

    def _rows_so_far(self, data: Data) -> RowsSoFar:
        """Of earlier calls, or of an earlier `fit`, which has them where it left no direction out."""
        if hasattr(self, "_stream_factor_"):
            return RowsSoFar(self._stream_factor_, self._stream_shift_, self._stream_weight_, self._stream_rows_)
        if not hasattr(self, "components_"):
            return no_rows(data)
        k, weight, n, p = self.n_components_, self._weight_, self.n_samples_, data.n_features
        if k < number_of_axes(weight, n, p):
            raise NotFittedError(
                f"partial_fit: the earlier fit kept {k} of {p} directions and no sums of its rows; call partial_fit "
                "from the first rows on"
            )
        R = np.zeros((k + 1, p + 1))
        R[0, 0], R[1:, 1:] = np.sqrt(weight), self.singular_values_[:, None] * self.components_
        return RowsSoFar(R, self.mean_.astype(np.float64), weight, n)

    # ------------------------------------------------------------------------------------------- choices

    def _solver(self, data: Data) -> str:
        if self.svd_solver != "auto":
            return str(self.svd_solver)
        n, p = data.n_rows, data.n_features
        whole = self.n_components is None or not isinstance(self.n_components, int | np.integer)
        if n is None or not isinstance(data, ArrayData):
            return "covariance_eigh"
        if data.sparse:
            return "covariance_eigh" if p <= _COLUMNS or whole else "arpack"
        if p <= _COLUMNS and n >= 2 * p and n > _SMALL:
            return "covariance_eigh"
        if whole or max(n, p) <= _SMALL or not 1 <= int(self.n_components) < 0.8 * min(n, p):
            return "full"
        return "randomized"

    def _check_number(self, data: Data, solver: str) -> None:
        """Refuse numbers of components that the rows or the solver do not have."""
        k, n, p = self.n_components, data.n_rows, data.n_features
        most = p if n is None else min(n, p)
        limits = f"min(n_samples, n_features)={most} with svd_solver={solver!r}"
        if k == "mle" and n is not None and n < p:
            raise DataError("n_components='mle' is only supported if n_samples >= n_features")
        if solver in ("arpack", "randomized"):
            if isinstance(k, str):
                raise ParameterError(f"n_components={k!r} cannot be a string with svd_solver={solver!r}")
            if k is None:
                return
            if not 1 <= k <= most or not isinstance(k, int | np.integer):
                raise ParameterError(f"n_components={k!r} must be between 1 and {limits}")
            if solver == "arpack" and k == most:
                raise ParameterError(f"n_components={k!r} must be strictly less than {limits}")
        elif isinstance(k, int | np.integer) and k > most:
            raise ParameterError(f"n_components={k} must be between 0 and {limits}")

    def _by_products(self, data: Data, solver: str) -> Spectrum:
        most = data.n_features if data.n_rows is None else min(data.n_rows, data.n_features)
        k = most - (solver == "arpack") if self.n_components is None else int(self.n_components)
        tol, products = _RANDOMIZED, _MOST_PRODUCTS
        if solver == "arpack":
            tol = float(self.tol) or _LANCZOS
        elif self.iterated_power != "auto":
            products = int(self.iterated_power) + 1
        rng, more = stream(self.random_state, "pca"), int(self.n_oversamples)
        return by_products(data, k, rng, tol=tol, max_products=products, n_more=more, n_jobs=self.n_jobs)

    def _number(self, found: Spectrum) -> int:
        wanted, values = self.n_components, found.values
        if wanted is None:
            return len(values)
        if wanted == "mle":
            return number.by_evidence(values, found.n_rows)
        if wanted == "parallel":
            spread = np.einsum("j,ji,ji->i", values, found.axes, found.axes)
            return number.by_parallel_analysis(values, spread, found.n_rows, stream(self.random_state, "parallel"))
        if isinstance(wanted, int | np.integer):
            return int(wanted)
        return number.by_retained_variance(values, float(wanted)) if found.total > 0 else 0

    # ------------------------------------------------------------------------------------------- results

    def _set(self, found: Spectrum, k: int, data: Data) -> None:
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        values = found.values[:k]
        left = max(found.total - float(values.sum()), 0.0)
        others = number_of_axes(found.weight, found.n_rows, data.n_features) - k
        self.components_ = oriented(found.axes[:k].T).T.astype(dtype)
        self.mean_ = found.mean.astype(dtype)
        self.explained_variance_ = values.astype(dtype)
        with np.errstate(invalid="ignore"):
            self.explained_variance_ratio_ = (values / found.total).astype(dtype)
        self.singular_values_ = np.sqrt(values * (found.weight - 1.0)).astype(dtype)
        self.noise_variance_ = left / others if others > 0 else 0.0
        self.n_components_, self.n_samples_, self._weight_ = k, found.n_rows, found.weight

    def _fit_with_gaps(self, data: Data) -> None:
        """Missing entries: the axes of probabilistic PCA, by expectation maximisation."""
        rows, p = filled_scatter(data, self.n_jobs), data.n_features
        most = min(number_of_axes(rows.weight, rows.n_rows, p), p - 1)
        k = most if self.n_components is None else self.n_components
        if not isinstance(k, int | np.integer) or not 0 <= k <= most:
            raise ParameterError(
                f"n_components={k!r}; expected None or an integer up to {most} where entries of X are missing"
            )
        inner = ProbabilisticPCA(int(k), method="em", n_jobs=self.n_jobs).fit(data)
        s = np.linalg.norm(inner.components_, axis=1)
        over = rows.weight / degrees_of_freedom(rows.weight, rows.n_rows)
        values = (s**2 + inner.noise_variance_) * over
        total = float(values.sum()) + (p - k) * inner.noise_variance_ * over
        axes = inner.components_ / np.where(s > 0, s, 1.0)[:, None]
        found = Spectrum(values, axes, inner.mean_, rows.weight, rows.n_rows, total, 0.0)
        self.solver_ = "em"
        self._set(found, int(k), data)
        self.noise_variance_ = inner.noise_variance_ * over
        reason = "converged" if inner.converged_ else "max_iter"
        self._conclude(
            Solution(values, -inner.log_likelihood_, inner.history_, inner.certificate_, inner.n_iter_, reason)
        )

    def _origin(self) -> np.ndarray:
        return self.mean_

    def _scale(self) -> np.ndarray | None:
        if not self.whiten:
            return None
        least = np.finfo(self.explained_variance_.dtype).eps  # an axis without variance has coordinates zero
        return np.asarray(np.sqrt(self.explained_variance_).clip(min=least))

    def _model(self, *, singular: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probabilistic PCA with these axes; for densities its noise is kept above a share of the variance."""
        self._check_fitted()
        values, noise, p = self.explained_variance_.astype(np.float64), float(self.noise_variance_), len(self.mean_)
        if len(values) == p:  # any noise up to the least variance gives the same covariance
            noise = float(values.min(initial=np.inf))
        if not singular:
            rounding = np.finfo(np.float64).eps * float(np.abs(self.mean_).max())
            noise = max(noise, FLOOR * float(values.sum()) / p, rounding**2, LEAST)
        W = np.sqrt((values - noise).clip(min=0.0))[:, None] * self.components_
        return self.mean_.astype(np.float64), W, np.full(p, noise)


def _has_gaps(data: Data) -> bool:
    """Whether entries of an array are missing; infinite ones are refused. Files and partitions are read later."""
    if not isinstance(data, ArrayData):
        return False
    if data.sparse:
        refuse_non_finite(data)
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.X.sum(dtype=np.float64)):
            return False
    if np.isinf(data.X).any():
        raise DataError("Input X contains infinity; expected finite numbers, or NaN where a value is missing")
    return bool(np.isnan(data.X).any())


@dataclass(frozen=True)
class RowsSoFar:
    """The factor of all rows sqrt(w) (1, x - shift), their weight, and how many there are."""

    R: np.ndarray
    shift: np.ndarray
    weight: float
    n_rows: int

    def and_rows(self, data: Data, n_jobs: int | None) -> RowsSoFar:
        """With the rows of `data`, too."""
        factor, weight, n, _ = engine.sum(factor_statistic, data, self.shift, True, n_jobs=n_jobs)
        R = (TriangularFactor(self.R) + factor).R
        return RowsSoFar(R, self.shift, self.weight + weight, self.n_rows + n)

    def centred(self) -> CentredFactor:
        """The factor about the mean of all rows."""
        return centred_factor(self.R, self.shift, len(self.shift), self.weight, self.n_rows)


def no_rows(data: Data) -> RowsSoFar:
    """Before the first batch, which says about what point rows are summed."""
    p = data.n_features
    require_memory(8.0 * (p + 1) ** 2 * 4, f"the {p + 1} x {p + 1} factor of the rows", "use fit with n_components")
    return RowsSoFar(np.zeros((0, p + 1)), shift_of(data, targets=False), 0.0, 0)
