"""Nu-support vector regression:  minimise  1/2 |w|^2 + C (nu e sum_i v_i + sum_i v_i max(|y_i - f(x_i)| - e, 0)),

f(x) = w'phi(x) + b.

The half-width e >= 0 of the tube is a variable: at most a share nu of the weight lies outside the tube, and at least
that share are support vectors. In the dual a row has a variable a_i in [0, C v_i] above the tube and one below it, and
either kind adds up to C nu sum_i v_i / 2: two groups, whose constants are b + e and b - e.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._parameters import Domain, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.kernels._machine import select_rows
from epicycle.svm._base import MACHINE_DEFAULTS, MACHINE_PARAMETERS, Fit, MachineArguments, SupportVectorMachine
from epicycle.svm._dual_problem import DualProblem
from epicycle.svm._subproblems import Solved, Subproblem, filled


class NuSVR(RegressorMixin, SupportVectorMachine):  # type: ignore[misc]  # untyped mixin
    r"""Support vector regression with a bound on the share of rows outside the tube.

    .. math:: \min_{w, b, \varepsilon \ge 0} \tfrac12 \|w\|^2
              + C \Bigl(\nu \varepsilon \sum_i v_i
              + \sum_i v_i \max(|y_i - w^\top \phi(x_i) - b| - \varepsilon, 0)\Bigr)

    with sample weights :math:`v_i`. At most a share :math:`\nu` of the rows lies outside the tube, and at least that
    share are support vectors; the tube is as wide as this takes. A fitted object keeps the training rows that are
    support vectors.

    Parameters
    ----------
    nu : float, default=0.5
        Between 0 and 1.
    C : float, default=1.0
        Price of errors beyond the tube.

    Attributes
    ----------
    n_support_ : ndarray of shape (1,)
    dual_coef_ : array or sparse matrix of shape (1, n_support)
    intercept_ : ndarray of shape (1,)
    epsilon_ : float
        Half the width of the tube.

    See Also
    --------
    SVR : with a tube of given width.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import NuSVR
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0, 6, 200)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=200)
    >>> model = NuSVR(nu=0.2, C=10.0, gamma=1.0).fit(x, y)
    >>> outside = (np.abs(y - model.predict(x)) > model.epsilon_ + 1e-3).mean()
    >>> bool(outside <= 0.2 <= len(model.support_) / 200)
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "nu": Real(minimum=0, maximum=1, inclusive=(False, True)),
        "C": Real(minimum=0, inclusive=False),
        **MACHINE_PARAMETERS,
    }

    epsilon_: float

    @stores_arguments(**MACHINE_DEFAULTS)
    def __init__(self, *, nu: float = 0.5, C: float = 1.0, **shared: Unpack[MachineArguments]) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y."""
        data, rows = self._intake(X, y, sample_weight, target="numeric")
        rows, weight, kept = self._weighing_rows(data, rows)
        target, n = np.asarray(data.y, dtype=np.float64)[kept], len(kept)
        shift = float(np.median(target))
        top = self.C * weight
        start = filled(top, float(self.nu * top.sum() / 2))
        z, zero = np.tile(target - shift, 2), np.zeros(n)
        lo, hi = np.concatenate([zero, -top]), np.concatenate([top, zero])
        # Opposite ends for the two groups: a row is above the tube or below it.
        start = np.concatenate([start, -filled(top[::-1], float(self.nu * top.sum() / 2))[::-1]])
        problem = DualProblem(z, lo, hi, group=np.repeat([0, 1], n), start=start)
        twice = select_rows(rows, self.kernel_, np.tile(np.arange(n), 2))
        fit = Fit(twice, np.tile(kept, 2), [Subproblem(np.arange(2 * n), problem, "tube", shift=shift)])
        self._fit_problems(fit)
        return self

    def _assign(self, fit: Fit, solutions: Sequence[Solved | None]) -> None:
        (found,) = solutions
        assert found is not None  # a single problem is never left out
        above, below = np.split(found.coefficients, 2)
        super()._assign(fit, [replace(found, coefficients=np.concatenate([above + below, np.zeros(len(above))]))])
        upper, lower = found.evidence.constants
        self.epsilon_ = max(float(upper - lower) / 2, 0.0)

    def predict(self, X: Any) -> np.ndarray:
        """The function at every row of X."""
        return self._raw_scores(X)[:, 0]
