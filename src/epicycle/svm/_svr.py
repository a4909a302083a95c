"""Support vector regression:  minimise  1/2 |w|^2 + sum_i C_i max(|y_i - w'phi(x_i) - b| - epsilon, 0).

Rows inside the tube of half-width epsilon cost nothing and have no coefficient. In the dual with b_i in [-C_i, C_i] the
tube is the penalty epsilon |b|_1, which the solver takes as it is, without doubling the variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._exceptions import ConvergenceError
from epicycle.core._parameters import Domain, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.svm._base import MACHINE_DEFAULTS, MACHINE_PARAMETERS, Fit, MachineArguments, SupportVectorMachine
from epicycle.svm._dual_problem import DualProblem
from epicycle.svm._subproblems import Subproblem

_HARD_PRICE = 1e10  # in the place of C=inf


class SVR(RegressorMixin, SupportVectorMachine):  # type: ignore[misc]  # untyped mixin
    r"""Support vector regression: errors count beyond a tube of width epsilon only.

    .. math:: \min_{w, b} \tfrac12 \|w\|^2 + \sum_i C_i \max(|y_i - w^\top \phi(x_i) - b| - \varepsilon, 0)

    with :math:`C_i` the product of `C` and the weight of the row. A fitted object keeps the training rows that are
    support vectors: those on or outside the tube.

    Parameters
    ----------
    C : float, default=1.0
        Price of errors beyond the tube; ``inf`` allows none, for which the kernel must reach all targets.
    epsilon : float, default=0.1
        Half the width of the tube.

    Attributes
    ----------
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_support)
    intercept_ : ndarray of shape (1,)

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SVR
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> model = SVR(C=100.0, epsilon=0.01, gamma=1.0).fit(x, np.sin(x[:, 0]))
    >>> bool(np.abs(model.predict(x) - np.sin(x[:, 0])).max() < 0.011), len(model.support_) < 20
    (True, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "C": Real(minimum=0, inclusive=(False, True), allow_inf=True),
        "epsilon": Real(minimum=0),
        **MACHINE_PARAMETERS,
    }

    @stores_arguments(**MACHINE_DEFAULTS)
    def __init__(self, *, C: float = 1.0, epsilon: float = 0.1, **shared: Unpack[MachineArguments]) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y."""
        data, rows = self._intake(X, y, sample_weight, target="numeric")
        rows, weight, kept = self._weighing_rows(data, rows)
        target = np.asarray(data.y, dtype=np.float64)[kept]
        # A price above all coefficients is as good as an infinite one: the problem has the same solution.
        C = _HARD_PRICE if np.isinf(self.C) else float(self.C)
        top = C * (np.ones(len(kept)) if np.isinf(self.C) else weight)
        # A shift of y is taken up by the intercept: about its middle y has the fewest digits to lose.
        shift = float(np.median(target))
        problem = DualProblem(target - shift, -top, top, epsilon=float(self.epsilon))
        fit = Fit(rows, kept, [Subproblem(np.arange(len(kept)), problem, shift=shift)])
        solutions, history = self._solve(fit)
        if np.isinf(self.C) and solutions[0] is not None and (np.abs(solutions[0].coefficients) >= C).any():
            raise ConvergenceError(
                f"y: SVR(C=inf) has no solution: no function of this kernel is within epsilon={self.epsilon:g} of all "
                "targets; take a finite C, or a larger epsilon"
            )
        self._assign(fit, solutions)
        self._certify(fit, solutions, history)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The function at every row of X."""
        return self._raw_scores(X)[:, 0]
