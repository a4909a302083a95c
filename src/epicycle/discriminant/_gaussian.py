"""Gaussian discriminant analysis: normal classes with covariances of a chosen structure.

The likelihood is maximal at the means of the classes, their shares, and the covariances  sum_k S_k / n  (shared),
S_k / n_k  (per class), its diagonal, or the mean of its diagonal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from epicycle.core._parameters import AnyOf, Choice, Domain, NoneOr, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.discriminant._base import DiscriminantAnalysis, Solved
from epicycle.discriminant._incomplete import Structure
from epicycle.discriminant._linear_rule import as_logistic, linear_rule, reported
from epicycle.discriminant._scores import Scores, linear_scores, quadratic_scores
from epicycle.discriminant._whitening import SingularCovarianceError, Whitening, resolved, whitening
from epicycle.linear import LogisticRegression
from epicycle.stats._class_scatter import ClassScatter
from epicycle.stats._shrinkage import class_covariance


def _shares_covariance(model: Any) -> bool:
    if model.covariance != "shared":
        raise AttributeError(f"covariance={model.covariance!r} has no as_logistic; expected covariance='shared'")
    return True


class GaussianDiscriminantAnalysis(DiscriminantAnalysis):
    r"""Classes that are normal distributions.

    .. math:: P(c \mid x) \propto \pi_c \, \mathcal N(x; \mu_c, \Sigma_c)

    with the maximum of the likelihood, :math:`\mu_c = \sum_{i \in c} x_i / n_c` and, for one covariance,
    :math:`\Sigma = \sum_c \sum_{i \in c} (x_i - \mu_c)(x_i - \mu_c)' / n`. NaN is a missing entry, integrated out in
    predictions and, by EM, in the fit.

    Parameters
    ----------
    covariance : {"shared", "per-class", "diagonal", "spherical"}, default="shared"
        One covariance for all classes (linear boundaries), one for each (quadratic boundaries), one for each with
        independent columns, or one for each that is a multiple of the identity.
    shrinkage : {"ledoit-wolf", "oas"} or float, optional
        How far covariances are drawn towards a multiple of the identity: between 0 and 1, or by a formula. It makes no
        difference to spherical ones.
    tol : float, default=1e-4
        Directions whose standard deviation is at most `tol`, for columns of unit variance, count as having none: they
        are left out of a shared covariance; another that has any is refused.

    Attributes
    ----------
    covariance_ : ndarray
        Shared, of shape (n_features, n_features); per class, with the classes first; variances of the columns, of shape
        (n_classes, n_features); or one variance for each class.
    shrinkage_ : ndarray of shape (1,) or (n_classes,)
        How much each covariance was shrunk.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        With ``covariance="shared"``: coefficients of the log-odds.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    rank_ : ndarray of shape (1,) or (n_classes,)
        Ranks of the covariances.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import GaussianDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianDiscriminantAnalysis("per-class").fit(X, y)
    >>> print(f"{model.score(X, y):.2f}", model.predict([[6.0, 3.0, float("nan"), 1.4]]))
    0.98 [1]
    >>> shared = GaussianDiscriminantAnalysis().fit(X, y)
    >>> bool(abs(shared.as_logistic().predict_proba(X) - shared.predict_proba(X)).max() < 1e-12)
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **DiscriminantAnalysis._parameters,
        "covariance": Choice("shared", "per-class", "diagonal", "spherical"),
        "shrinkage": NoneOr(AnyOf(Choice("ledoit-wolf", "oas"), Real(0, 1))),
    }

    covariance: str
    shrinkage: Any
    covariance_: np.ndarray
    shrinkage_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray

    @stores_arguments
    def __init__(
        self,
        covariance: str = "shared",
        *,
        shrinkage: Any = None,
        priors: Any = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        n_jobs: int | None = None,
    ) -> None: ...

    def _structure(self) -> Structure:
        return Structure(self.covariance)

    def _needs(self) -> tuple[bool, bool]:
        fourth = self.shrinkage == "ledoit-wolf"
        return self.covariance == "shared" and not fourth, fourth

    def _learn(self, moments: ClassScatter, data: Data) -> Solved:
        shared = self.covariance == "shared"
        parts = moments.within() if shared else moments
        centres = [self.priors_ @ moments.mean] if shared else list(moments.mean)
        covariances, amounts, found = [], [], []
        for k, centre in enumerate(centres):
            C, amount = class_covariance(parts, k, self.shrinkage)
            C = self._structure().constrained(resolved(C, centre))
            covariances.append(C)
            amounts.append(amount)
            found.append(whitening(C, self.tol))
            if found[k].rank < len(C) and not shared:
                self._refuse_singular(k, found[k].rank, len(C), int(parts.rows[k]))
        C = np.stack(covariances)
        self.shrinkage_, self.rank_ = np.array(amounts), np.array([w.rank for w in found])
        self.covariance_ = C[0] if shared else self._reduced(C)
        if shared:
            coef, intercept = linear_rule(moments.mean, centres[0], found[0].W, self.priors_)
            self.coef_, self.intercept_ = reported(coef, intercept, data.dtype)
        return Solved(C, found)

    def _reduced(self, C: np.ndarray) -> np.ndarray:
        if self.covariance == "per-class":
            return C
        diagonals = np.diagonal(C, axis1=1, axis2=2).copy()
        return diagonals if self.covariance == "diagonal" else np.ascontiguousarray(diagonals[:, 0])

    def _refuse_singular(self, k: int, rank: int, p: int, rows: int) -> None:
        raise SingularCovarianceError(
            f"X: the covariance of class {self.classes_[k]} has rank {rank} in {p} columns ({rows} rows), so that its "
            "density is not comparable with that of the other classes; set shrinkage, or covariance='shared'"
        )

    def _scorer(self) -> tuple[Scores, tuple[Any, ...]]:
        if self.covariance == "shared":
            return linear_scores, (self.coef_.astype(np.float64), self.intercept_.astype(np.float64))
        found: list[Whitening] = [whitening(C, self.tol) for C in self._covariance_]
        with np.errstate(divide="ignore"):
            offset = np.log(self.priors_) - 0.5 * np.array([w.log_det for w in found])
        return quadratic_scores, (self.means_, np.stack([w.W for w in found]), offset)

    @available_if(_shares_covariance)  # type: ignore[untyped-decorator]
    def as_logistic(self) -> LogisticRegression:
        """The logistic regression whose posterior is exactly that of this fit; where classes share a covariance."""
        self._check_fitted()
        return as_logistic(self)
