"""The base of sparse linear regressors: CSC input as it is, coefficients in the type of the data, predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin

from epicycle.core._parameters import Domain
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import Data
from epicycle.linear._scikit_learn import COMPATIBILITY_DOCS, COMPATIBILITY_PARAMETERS
from epicycle.linear.lasso._problem import LassoProblem, csc_data
from epicycle.stats._class_scores import linear_prediction

#: Domains of scikit-learn's arguments that the solution does not depend on.
DESCENT_PARAMETERS: Mapping[str, Domain] = {
    name: COMPATIBILITY_PARAMETERS[name] for name in ("precompute", "copy_X", "selection")
}


class SparseLinearModel(RegressorMixin, Estimator):  # type: ignore[misc]  # scikit-learn has no types
    """A linear predictor with many coefficients at zero."""

    _docs: ClassVar[Mapping[str, str]] = {
        **COMPATIBILITY_DOCS,
        "penalty_weights": "penalty_weights : array-like of shape (n_features,), optional\n"
        "    Factors of alpha for each feature; 0 leaves a feature unpenalised.",
        "positive": "positive : bool, default={default}\n    Whether coefficients have to be non-negative.",
        "tol": "tol : float, default={default}\n"
        "    Largest duality gap, relative to half the (weighted) mean square of y about its mean.",
        "warm_start": "warm_start : bool, default={default}\n"
        "    Whether a fit starts from the coefficients of the earlier one.",
        "read_once": "X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)\n"
        "    Files and Dask collections are read once, for their second moments, and may have a few thousand features.",
        "columns": "X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)\n"
        "    A Fortran-ordered array and a CSC matrix are used as they are; of a C-ordered array only the columns of\n"
        "    the working set are copied, CSR is converted. Files and Dask collections are read once, for their second\n"
        "    moments, and may have a few thousand features.",
        "coef_init": "coef_init : array-like of the shape of `coef_`, optional\n"
        "    Where to start, such as the coefficients of a neighbouring alpha. With ``warm_start=True`` those of the\n"
        "    earlier fit, where there was one.",
        "check_input": "check_input : bool, default={default}\n"
        "    Accepted for compatibility: the input is checked whatever the value.",
        "evidence": "dual_gap_ : float or ndarray of shape (n_targets,)\n"
        "    Proven distance of the objective from its minimum.\n"
        "certificate_ : Certificate\n    The duality gap, relative; the largest over targets.",
        "n_iter_": "n_iter_ : int\n    Rounds; the largest over targets.\nconverged_ : bool",
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A7",), engines=("memory", "files", "dask"), certificate="duality gap"
    )

    alpha: float
    fit_intercept: bool
    tol: float
    max_iter: Any
    warm_start: bool
    n_jobs: int | None
    coef_: np.ndarray
    intercept_: float | np.ndarray
    dual_gap_: float | np.ndarray

    _takes_sparse: ClassVar[bool] = True
    #: Whether coefficients have an axis for targets also where y has one column.
    _keeps_targets: ClassVar[bool] = False

    def _fit_data(self, X: Any, y: Any, sample_weight: Any = None, **checks: Any) -> Data:
        """As everywhere, except that CSC stays CSC."""
        checked = X
        if sp.issparse(X) and X.format == "csc" and X.ndim == 2 and 0 not in X.shape:
            several = checks.get("multi_output", False)
            checked = csc_data(X, y, sample_weight, estimator_name=type(self).__name__, multi_output=several)
        data = super()._fit_data(checked, y, sample_weight, **checks)
        if "X" in self._run.inputs:
            self._run.inputs["X"] = X
        return data

    def _attributes(self, data: Data, problem: LassoProblem, W: np.ndarray) -> dict[str, Any]:
        coef, intercept = W.astype(data.dtype), (problem.y_mean - W @ problem.x_mean).astype(data.dtype)
        return {
            "coef_": coef[0] if data.target_is_vector or (len(coef) == 1 and not self._keeps_targets) else coef,
            "intercept_": (intercept[0] if data.target_is_vector else intercept) if self.fit_intercept else 0.0,
        }

    @property
    def sparse_coef_(self) -> sp.csr_array:
        """The coefficients as a sparse matrix of one row for each target."""
        return sp.csr_array(np.atleast_2d(self.coef_))

    def predict(self, X: Any) -> Any:
        """Predict b + w'x for every row: shape (n_samples,) or (n_samples, n_targets), as y had."""
        return linear_prediction(self._predict_data(X), self.coef_, self.intercept_, self.n_jobs)
