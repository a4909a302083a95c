"""Shared by ridge regressions: the penalty, effective degrees of freedom, leverages under it, the summary."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import NotFittedError, ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Callable, Domain, InstanceOf, NoneOr, Real
from epicycle.data import Data
from epicycle.linalg._least_squares import solve_normal_equations
from epicycle.linear.least_squares._base import MAX_KEPT, LeastSquaresModel
from epicycle.linear.least_squares._covariances import Frame
from epicycle.linear.least_squares._direct import LeastSquaresFit, gram_root, normal_equations
from epicycle.optim._quadratic_penalty import QuadraticPenalty, checked_alpha, quadratic_penalty
from epicycle.stats._summary import Summary

#: Domains of a penalty, and of the choice of its strength.
PENALTY_PARAMETERS: Mapping[str, Domain] = {
    "penalty_weights": NoneOr(ArrayLike()),
    "penalty_matrix": NoneOr(ArrayLike()),
}
VALIDATION_PARAMETERS: Mapping[str, Domain] = {
    **PENALTY_PARAMETERS,
    "alphas": NoneOr(AnyOf(ArrayLike(), Real(minimum=0))),
    "cv": NoneOr(InstanceOf(object)),
    "scoring": NoneOr(AnyOf(InstanceOf(str), Callable())),
    "store_cv_results": Boolean(),
}


class BaseRidge(LeastSquaresModel, ABC):
    """Least squares with a penalty that was given or chosen."""

    _docs: ClassVar[Mapping[str, str]] = {
        "alphas": """alphas : array-like, optional
    What to choose from, above 0 (with `cv`, also 0). By default 50 values that reach from hardly any shrinkage to
    almost everything shrunk, along the spectrum of X.""",
        "evidence": """rank_ : int
    Rank of X'WX + alpha D.
dependent_features_ : dict
    Features that others give and no penalty tells apart; for each the others and their factors.
certificate_ : Certificate
    Newton decrement, which for a quadratic is the exact distance from the minimum; the duality gap where the Gram
    matrix is too large to form.""",
        "grid": """alphas_ : ndarray of shape (n_alphas,)
dof_path_ : ndarray of shape (n_alphas,)
    Effective degrees of freedom of every alpha, the intercept among them.""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("evidence",)

    penalty_weights: Any
    penalty_matrix: Any
    criterion: str
    cv: Any

    # What cross-validation sets.
    alpha_: Any
    alphas_: np.ndarray
    best_score_: Any
    scores_: np.ndarray
    fold_scores_: np.ndarray
    cv_results_: np.ndarray
    dof_path_: np.ndarray

    def _alpha(self) -> Any:
        """The strength of the penalty: what cross-validation chose, or was given."""
        return getattr(self, "alpha_", getattr(self, "alpha", None))

    def _penalty(self, n_targets: int, n_features: int) -> QuadraticPenalty:
        alpha = checked_alpha(self._alpha(), n_targets)
        return quadratic_penalty(alpha, n_features, self.penalty_weights, self.penalty_matrix)

    def _penalty_line(self) -> str:
        alpha = self._alpha()
        if alpha is None:  # cross-validation has not chosen yet
            return ""
        shown = f"{alpha:g}" if isinstance(alpha, float) and hasattr(self, "alpha_") else str(alpha)
        if self.penalty_matrix is not None:
            line = f"L2 penalty alpha/2 w'Dw with a matrix D, alpha={shown}"
        elif self.penalty_weights is not None:
            line = f"L2 penalty alpha/2 ||w||^2 with a factor for each feature, alpha={shown}"
        else:
            line = f"L2 penalty alpha/2 ||w||^2, alpha={shown}"
        if not hasattr(self, "alpha_"):
            return line
        by = {"loo": "leave-one-out", "gcv": "generalised cross-validation"}[self.criterion]
        return f"{line} by {by if self.cv is None else 'cross-validation'}"

    def _fitted_penalty(self) -> QuadraticPenalty:
        """The penalty of the fit, from the parameters."""
        return self._penalty(len(np.atleast_2d(self.coef_)), self.n_features_in_)

    def _keep(self, data: Data, fit: LeastSquaresFit) -> None:
        super()._keep(data, fit)
        if fit.dof is not None and data.n_features > MAX_KEPT:  # beyond, nobody could compute them later
            self._dof_ = fit.dof

    @property
    def effective_dof_(self) -> Any:
        """Trace of the hat matrix, the intercept among it: one number, or one for each target."""
        if not hasattr(self, "coef_"):
            raise AttributeError("effective_dof_: not fitted yet")
        if getattr(self, "positive", False):
            raise AttributeError("effective_dof_: the fit is not linear in y with positive=True")
        if hasattr(self, "_dof_"):
            dof = self._dof_
        elif (moments := self._moments()) is not None:
            dof = degrees_of_freedom(normal_equations(moments, self.fit_intercept)[0], self._fitted_penalty())
        else:
            raise AttributeError(f"effective_dof_: is known up to {MAX_KEPT} features")
        dof = dof + int(self.fit_intercept)
        return float(dof[0]) if self.coef_.ndim == 1 else dof

    def _frame(self, target: int) -> Frame:
        self._check_fitted()
        if getattr(self, "positive", False):
            raise ParameterError("positive=True: the fit is not linear in y and has no hat matrix")
        moments = self._moments()
        if moments is None:
            raise NotFittedError(
                f"{type(self).__name__}: with {self.n_features_in_} features the second moments that leverages need "
                f"were not kept (up to {MAX_KEPT} are)"
            )
        penalty, p = self._fitted_penalty(), moments.p
        G = normal_equations(moments, self.fit_intercept)[0]
        root = _pseudo_root(penalty.added_to(G, float(penalty.alpha[target])))
        coef = np.atleast_2d(self.coef_).T.astype(np.float64)
        if not self.fit_intercept:
            return Frame(np.zeros(p), coef, np.zeros(coef.shape[1]), root, 0.0)
        return Frame(moments.mean[:p], coef, moments.mean[p:], root, moments.weight)

    def summary(self) -> Summary:
        """Coefficients and effective degrees of freedom.

        There are no standard errors: those of least squares leave the bias of a penalised fit out.
        """
        self._check_fitted()
        coef = np.atleast_2d(self.coef_)
        outputs = ["y"] if self.coef_.ndim == 1 else [str(t) for t in range(len(coef))]
        b = np.broadcast_to(np.asarray(self.intercept_, dtype=coef.dtype), (len(coef),)) if self.fit_intercept else None
        try:
            dof = np.atleast_1d(self.effective_dof_)
        except AttributeError:
            dof = np.empty(0)
        names = ["effective degrees of freedom"] if len(dof) == 1 else [f"effective degrees[{t}]" for t in outputs]
        facts = dict(zip(names, dof.tolist(), strict=True)) if len(dof) else {}
        note = (
            f"penalised ({self._penalty_line()}): naive standard errors do not hold; use LinearRegression for inference"
        )
        return Summary.of_coefficients(self._names(), coef, b, outputs, "Ridge regression", note, facts)


def degrees_of_freedom(G: np.ndarray, penalty: QuadraticPenalty) -> np.ndarray:
    """tr (G + alpha D)^-1 G for every target."""
    dof = np.empty(len(penalty.alpha))
    for a in np.unique(penalty.alpha):
        solved = solve_normal_equations(penalty.added_to(G, float(a)), G)
        dof[penalty.alpha == a] = np.trace(solved.x)
    return dof


def _pseudo_root(H: np.ndarray) -> np.ndarray:
    """A with A A' = H^+."""
    root = gram_root(H)
    if root is not None and np.isfinite(root).all():
        return root
    values, V = scipy.linalg.eigh(H, check_finite=False)
    kept = values > 8 * len(H) * np.finfo(float).eps * values.max(initial=0.0)
    return np.asarray(V[:, kept] / np.sqrt(values[kept]))
