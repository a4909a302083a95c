"""One-class support vector machine:  minimise  1/2 |w|^2 - nu rho sum_i v_i + sum_i v_i max(rho - w'phi(x_i), 0).

The plane w'phi(x) = rho that lies farthest from the origin with at most a share nu of the rows on the near side: rows
there are unlike the others. With a Gaussian kernel it is a contour of a density, estimated by few of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import OutlierMixin

from epicycle.core._parameters import Domain, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data._matrix import in_type_if_it_fits
from epicycle.svm._base import MACHINE_DEFAULTS, MACHINE_PARAMETERS, Fit, MachineArguments, SupportVectorMachine
from epicycle.svm._dual_problem import DualProblem
from epicycle.svm._subproblems import Solved, Subproblem, filled


class OneClassSVM(OutlierMixin, SupportVectorMachine):  # type: ignore[misc]  # untyped mixin
    r"""One-class support vector machine: the region where most of the rows are.

    .. math:: \min_{w, \rho} \tfrac12 \|w\|^2 - \nu \rho \sum_i v_i + \sum_i v_i \max(\rho - w^\top \phi(x_i), 0)

    At most a share :math:`\nu` of the rows lies outside, and at least that share are support vectors. A fitted object
    keeps the training rows that are support vectors.

    Parameters
    ----------
    nu : float, default=0.5
        Between 0 and 1.

    Attributes
    ----------
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_support)
    offset_ : float
        rho: ``decision_function`` is ``score_samples`` less this.
    intercept_ : ndarray of shape (1,)
        Minus the offset.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = OneClassSVM(nu=0.05).fit(X)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "nu": Real(minimum=0, maximum=1, inclusive=(False, True)),
        **MACHINE_PARAMETERS,
    }

    _has_constant = False

    @stores_arguments(**MACHINE_DEFAULTS)
    def __init__(self, *, nu: float = 0.5, **shared: Unpack[MachineArguments]) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X."""
        data, rows = self._intake(X, None, sample_weight, target="none")
        rows, weight, kept = self._weighing_rows(data, rows)
        n = len(kept)
        start = filled(weight, float(self.nu * weight.sum()))
        problem = DualProblem(np.zeros(n), np.zeros(n), weight, start=start)
        fit = Fit(rows, kept, [Subproblem(np.arange(n), problem)])
        self._fit_problems(fit)
        return self

    def _assign(self, fit: Fit, solutions: Sequence[Solved | None]) -> None:
        super()._assign(fit, solutions)
        self.offset_ = -float(self.intercept_[0])

    def decision_function(self, X: Any) -> np.ndarray:
        """w'phi(x) - rho: positive inside the region, negative outside; zero on the boundary, to rounding."""
        values = self._raw_scores(X)[:, 0]
        return np.where(np.abs(values) <= 1e-9 * abs(self.offset_), 0.0, values).astype(values.dtype)

    def score_samples(self, X: Any) -> np.ndarray:
        """w'phi(x)."""
        values = self.decision_function(X)
        return in_type_if_it_fits(values.astype(np.float64) + self.offset_, values.dtype)

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows inside the region, -1 for those outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
