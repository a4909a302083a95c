"""Quadratic discriminant analysis: classes that are normal, each with a covariance of its own.

log P(c | x) = log P(c) - 1/2 log det C_c - 1/2 (x - m_c)'C_c^-1 (x - m_c) + const, with C_c = S_c / n_c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Choice, Domain, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.discriminant._base import DiscriminantAnalysis, Solved
from epicycle.discriminant._incomplete import Structure
from epicycle.discriminant._linear import ESTIMATOR, SHRINKAGE, check_solver
from epicycle.discriminant._scores import Scores, quadratic_scores
from epicycle.discriminant._whitening import SingularCovarianceError, Whitening, principal_axes, resolved
from epicycle.linalg._signs import oriented
from epicycle.stats._class_scatter import ClassScatter
from epicycle.stats._shrinkage import class_covariance


class QuadraticDiscriminantAnalysis(DiscriminantAnalysis):
    r"""Normal classes, each with its own covariance: quadratic boundaries.

    .. math:: \log P(c \mid x) = \log \pi_c - \tfrac12 \log\det \Sigma_c
              - \tfrac12 (x - \mu_c)' \Sigma_c^{-1} (x - \mu_c) + \text{const}

    NaN is a missing entry, integrated out in predictions and, by EM, in the fit.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Both give the same axes; "svd" takes `reg_param`, "eigen" takes `shrinkage` and `covariance_estimator`.
    shrinkage : "auto" or float, optional
        How far covariances are drawn towards a multiple of the identity: between 0 and 1, or by the formula of Ledoit
        and Wolf for standardised columns. With ``solver="eigen"``.
    reg_param : float, default=0.0
        With ``solver="svd"`` a variance v along an axis becomes (1 - reg_param) v + reg_param.
    store_covariance : bool, default=False
        Whether `covariance_` is kept.
    variance_floor : float, default=0.0
        Smaller variances along an axis are raised to it, which admits classes of few rows.
    tol : float, default=1e-4
        Variance along an axis at or below which a covariance counts as singular, which is refused.

    Attributes
    ----------
    covariance_ : list of ndarray of shape (n_features, n_features)
    rotations_ : list of ndarray of shape (n_features, n_features)
        The axes of the normal distributions; the largest entry of every axis is positive.
    scalings_ : list of ndarray of shape (n_features,)
        Variances along the axes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from epicycle import QuadraticDiscriminantAnalysis
    >>> X, y = load_wine(return_X_y=True)
    >>> print(f"{QuadraticDiscriminantAnalysis().fit(X, y).score(X, y):.2f}")
    0.99
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **DiscriminantAnalysis._parameters,
        "solver": Choice("svd", "eigen"),
        "shrinkage": SHRINKAGE,
        "reg_param": Real(0, 1),
        "variance_floor": Real(minimum=0),
        "store_covariance": Boolean(),
        "covariance_estimator": ESTIMATOR,
    }
    _single_class: ClassVar[str | None] = (
        "y: The number of classes has to be greater than one. Got {} class (needs samples of at least 2 classes)."
    )

    solver: str
    shrinkage: Any
    reg_param: float
    variance_floor: float
    store_covariance: bool
    covariance_estimator: Any
    rotations_: list[np.ndarray]
    scalings_: list[np.ndarray]
    covariance_: list[np.ndarray]

    @stores_arguments
    def __init__(
        self,
        *,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        variance_floor: float = 0.0,
        max_iter: int = 1000,
        n_jobs: int | None = None,
    ) -> None: ...

    def _structure(self) -> Structure:
        return Structure("per-class")

    def _needs(self) -> tuple[bool, bool]:
        return False, self.shrinkage == "auto"

    def _check_arguments(self, moments: ClassScatter) -> None:
        check_solver(self, "covariance_estimator is not supported with solver='svd'. Try solver='eigen' instead.")
        alone = np.flatnonzero(moments.rows == 1)
        if len(alone) and self.variance_floor <= self.tol:
            raise DataError(
                f"y: y has only 1 sample in class {self.classes_[alone[0]]}, covariance is ill defined; expected at "
                "least two"
            )

    def _learn(self, moments: ClassScatter, data: Data) -> Solved:
        if self.covariance_estimator is not None:
            covariances = self._own_covariances(data, self.covariance_estimator)
        else:
            covariances = [
                resolved(class_covariance(moments, k, self.shrinkage)[0], moments.mean[k])
                for k in range(len(moments.weight))
            ]
        self.rotations_, self.scalings_, found = [], [], []
        for k, C in enumerate(covariances):
            variances, axes = principal_axes(C)
            if self.solver == "svd" and self.reg_param > 0:
                # as with the singular values of the rows: there are no more of them than rows
                few = int(moments.rows[k]) < len(C)
                variances = (1 - self.reg_param) * variances + self.reg_param * (not few)
                C = (1 - self.reg_param) * C + self.reg_param * np.eye(len(C))
            if variances[-1] < self.variance_floor:
                variances = np.maximum(variances, self.variance_floor)
                C = (axes * variances) @ axes.T
            self._require_rank(k, variances, int(moments.rows[k]))
            covariances[k] = C
            self.rotations_.append(oriented(axes))
            self.scalings_.append(variances)
            W = self.rotations_[k] / np.sqrt(variances)
            deviation = float(np.max(np.abs(W.T @ (C @ W) - np.eye(len(C)))))
            found.append(Whitening(W, float(np.sum(np.log(variances))), deviation))
        if self.store_covariance:
            self.covariance_ = list(covariances)
        return Solved(np.stack(covariances), found)

    def _require_rank(self, k: int, variances: np.ndarray, rows: int) -> None:
        p = len(variances)
        if (variances > self.tol).all():
            return
        start = f"X: The covariance matrix of class {self.classes_[k]} is not full rank."
        if self.solver == "svd" and rows <= p:
            raise SingularCovarianceError(
                f"{start} When using `solver='svd'` the number of samples in each class should be more than the number "
                f"of features, but class {self.classes_[k]} has {rows} samples and {p} features. Try "
                "`solver='eigen'` and the parameter `shrinkage`."
            )
        name = "shrinkage" if self.solver == "eigen" else "reg_param"
        raise SingularCovarianceError(f"{start} Increase the value of `{name}` to reduce the collinearity.")

    def _rank_tol(self) -> float:
        return 0.0

    def _scorer(self) -> tuple[Scores, tuple[Any, ...]]:
        W = np.stack([axes / np.sqrt(v) for axes, v in zip(self.rotations_, self.scalings_, strict=True)])
        with np.errstate(divide="ignore"):
            offset = np.log(self.priors_) - 0.5 * np.array([np.sum(np.log(v)) for v in self.scalings_])
        return quadratic_scores, (self.means_, W, offset)
