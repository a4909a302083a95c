"""Linear discriminant analysis: classes that are normal with one covariance, and the projection that tells them apart.

The maximum of the likelihood has the means of the classes and  C = sum_k S_k / n.  The projection maximises the
variance between the means, relative to C: the leading directions of the whitened means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Described, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Batch, Data
from epicycle.discriminant._base import DiscriminantAnalysis, Solved
from epicycle.discriminant._incomplete import Structure
from epicycle.discriminant._linear_rule import as_logistic, linear_rule, reported
from epicycle.discriminant._scores import Normals, Scores, incomplete_rows, linear_scores
from epicycle.discriminant._whitening import Whitening, resolved, symmetric_definite_axes, whitening
from epicycle.linalg._signs import oriented
from epicycle.linalg._spectra import singular_vectors
from epicycle.linear import LogisticRegression
from epicycle.stats._class_scatter import ClassScatter, dense_rows
from epicycle.stats._shrinkage import class_covariance


class UnsupportedError(ParameterError, NotImplementedError):
    """An argument that the chosen solver has no use for; scikit-learn raises NotImplementedError for it."""


#: An object that estimates a covariance, or None.
ESTIMATOR: Domain = NoneOr(Described("an estimator with fit", lambda value: hasattr(value, "fit")))
#: How much covariances are shrunk, in scikit-learn's words.
SHRINKAGE: Domain = NoneOr(AnyOf(Choice("auto"), Real(0, 1)))


def check_solver(model: Any, estimator_refused: str) -> None:
    """Refuse shrinkage and estimators where the solver is "svd", and both together."""
    if model.solver == "svd":
        if model.shrinkage is not None:
            raise UnsupportedError(
                f"shrinkage={model.shrinkage!r}: shrinkage not supported with 'svd' solver; use solver='eigen'"
            )
        if model.covariance_estimator is not None:
            raise ParameterError(estimator_refused)
    if model.covariance_estimator is not None and model.shrinkage not in (None, 0):
        raise ParameterError(
            "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
        )


class LinearDiscriminantAnalysis(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn has no types
    TransformerMixin,  # type: ignore[misc]
    DiscriminantAnalysis,
):
    r"""Normal classes with one covariance: linear boundaries, and a projection that tells the classes apart.

    .. math:: P(c \mid x) \propto \pi_c \exp\bigl(-\tfrac12 (x - \mu_c)' \Sigma^{-1} (x - \mu_c)\bigr)

    The three solvers are answers to one problem, solved from the weight, mean and scatter of each class: they differ in
    what they report, and in what they do when :math:`\Sigma` is singular or shrunk. NaN is a missing entry, integrated
    out in predictions and, by EM, in the fit.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        "svd" leaves directions without variance out; "lsqr" takes the solution of least norm and has no projection;
        "eigen" needs an invertible covariance. The last two take `shrinkage` and `covariance_estimator`.
    shrinkage : "auto" or float, optional
        How far covariances are drawn towards a multiple of the identity: between 0 and 1, or by the formula of Ledoit
        and Wolf for standardised columns.
    n_components : int, optional
        Number of directions of `transform`; by default min(n_classes - 1, n_features).
    store_covariance : bool, default=False
        Whether `covariance_` is kept with ``solver="svd"``; it always is with the others.
    tol : float, default=1e-4
        Directions whose standard deviation within classes is at most `tol`, for columns of unit variance, are left out.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    covariance_ : ndarray of shape (n_features, n_features)
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Shares of the variance between classes; not with ``solver="lsqr"``.
    scalings_ : ndarray of shape (n_features, rank)
        The projection; the largest entry of every column is positive. Not with ``solver="lsqr"``.
    xbar_ : ndarray of shape (n_features,)
        Mean of the means, with ``solver="svd"``.
    rank_ : int
        Rank of the covariance; below the number of columns where these are collinear within the classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis(n_components=1).fit(X, y)
    >>> print(f"{model.score(X, y):.2f}", model.transform(X).shape, model.explained_variance_ratio_.round(3))
    0.98 (150, 1) [0.991]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **DiscriminantAnalysis._parameters,
        "solver": Choice("svd", "lsqr", "eigen"),
        "shrinkage": SHRINKAGE,
        "n_components": NoneOr(Integer(minimum=1)),
        "store_covariance": Boolean(),
        "covariance_estimator": ESTIMATOR,
    }

    solver: str
    shrinkage: Any
    n_components: int | None
    store_covariance: bool
    covariance_estimator: Any
    coef_: np.ndarray
    intercept_: np.ndarray

    @stores_arguments
    def __init__(
        self,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        *,
        max_iter: int = 1000,
        n_jobs: int | None = None,
    ) -> None: ...

    def _structure(self) -> Structure:
        return Structure("shared")

    def _needs(self) -> tuple[bool, bool]:
        if self.shrinkage == "auto":
            return False, True
        return self.priors is None, False  # the covariance is linear in those of the classes

    def _check_arguments(self, moments: ClassScatter) -> None:
        if moments.rows.sum() == len(moments.weight):
            raise DataError(
                f"y: {int(moments.rows.sum())} rows of {len(moments.weight)} classes. The number of samples must be "
                "more than the number of classes."
            )
        check_solver(self, "covariance estimator is not supported with svd solver. Try another solver")
        most = min(len(moments.weight) - 1, moments.mean.shape[1])
        if self.n_components is not None and self.n_components > most:
            raise ParameterError(
                f"n_components={self.n_components}: n_components cannot be larger than min(n_features, n_classes - 1), "
                f"{most}"
            )
        self._n_features_out_ = most if self.n_components is None else self.n_components

    @property
    def _n_features_out(self) -> int:
        return self._n_features_out_

    def _learn(self, moments: ClassScatter, data: Data) -> Solved:
        centre = self.priors_ @ moments.mean
        within = resolved(moments.within().scatter[0] / moments.weight.sum(), centre)
        if self.solver == "svd":
            found = whitening(within, self.tol)
            coef, intercept = self._project(moments, centre, found)
            covariance = within
            if self.store_covariance:
                self.covariance_ = self._shrunk_within(moments, data, within)
        else:
            covariance = self.covariance_ = self._shrunk_within(moments, data, within)
            found = whitening(covariance, 0.0)
            coef, intercept = self._solve(moments, data, covariance)
        self.rank_ = found.rank
        self.coef_, self.intercept_ = reported(coef, intercept, data.dtype)
        return Solved(covariance[None], [found])

    def _shrunk_within(self, moments: ClassScatter, data: Data, within: np.ndarray) -> np.ndarray:
        """sum_k P(c_k) C_k, each shrunk."""
        if self.covariance_estimator is not None:
            parts = self._own_covariances(data, self.covariance_estimator)
        elif moments.pooled:
            return within if self.shrinkage is None else class_covariance(moments.within(), 0, self.shrinkage)[0]
        else:
            parts = [class_covariance(moments, k, self.shrinkage)[0] for k in range(len(moments.weight))]
        return np.asarray(np.tensordot(self.priors_, np.stack(parts), axes=1))

    def _project(self, moments: ClassScatter, centre: np.ndarray, found: Whitening) -> tuple[np.ndarray, np.ndarray]:
        """The directions of the whitened means, weighted by the priors."""
        self.xbar_ = centre
        M = np.sqrt(self.priors_)[:, None] * ((moments.mean - centre) @ found.W)
        _, singular, axes = singular_vectors(M)
        total = np.sum(singular**2)
        shares = singular**2 / total if total > 0 else np.zeros_like(singular)
        self.explained_variance_ratio_ = shares[: self._n_features_out_]
        rank = int(np.sum(singular > self.tol * singular[0])) if len(singular) else 0
        self.scalings_ = oriented(found.W @ axes[:rank].T)
        return linear_rule(moments.mean, centre, self.scalings_, self.priors_)

    def _solve(self, moments: ClassScatter, data: Data, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means = moments.mean
        if self.solver == "lsqr":
            coef = scipy.linalg.lstsq(C, means.T)[0].T
            with np.errstate(divide="ignore", over="ignore"):
                return coef, np.log(self.priors_) - 0.5 * np.sum(means * coef, axis=1)
        if self.covariance_estimator is not None:
            (total,) = self._own_covariances(data, self.covariance_estimator, total=True)
        else:
            total = class_covariance(moments.over_classes(), 0, self.shrinkage)[0]
        ratios, axes = symmetric_definite_axes(total - C, C)
        shares = ratios / ratios.sum() if len(means) > 1 else np.zeros_like(ratios)
        self.explained_variance_ratio_ = shares[: self._n_features_out_]
        self.scalings_ = oriented(axes)
        return linear_rule(means, np.zeros(len(C)), self.scalings_, self.priors_)

    def _rank_tol(self) -> float:
        return self.tol if self.solver == "svd" else 0.0

    def _scorer(self) -> tuple[Scores, tuple[Any, ...]]:
        return linear_scores, (self.coef_.astype(np.float64), self.intercept_.astype(np.float64))

    def transform(self, X: Any) -> Any:
        """Project rows to the directions that tell the classes apart, largest share of variance first.

        A row with missing entries has the expected projection, given what is there.
        """
        if self.solver == "lsqr":
            raise UnsupportedError("transform not implemented for 'lsqr' solver (use 'svd' or 'eigen').")
        data = self._predict_data(X, missing=True)
        centre = self.xbar_ if self.solver == "svd" else np.zeros(self.n_features_in_)
        scalings = self.scalings_[:, : self._n_features_out_]
        return engine.map(_project_batch, data, centre, scalings, self._normals(), n_jobs=self.n_jobs)

    def as_logistic(self) -> LogisticRegression:
        """The logistic regression whose posterior is exactly that of this fit."""
        self._check_fitted()
        return as_logistic(self)


def _project_batch(batch: Batch, centre: np.ndarray, scalings: np.ndarray, normals: Normals) -> np.ndarray:
    X = dense_rows(batch.X)
    out = (X - centre) @ scalings
    if not np.isfinite(out).all() or (not out.size and not np.isfinite(X).all()):
        incomplete = incomplete_rows(X)
        out[incomplete] = (normals.expected_rows(X[incomplete]) - centre) @ scalings
    return np.asarray(out, dtype=batch.X.dtype)
