"""The linear one-class support vector machine by stochastic gradients.

    minimise  nu/2 |w|^2 - nu rho + mean_i max(rho - w'x_i, 0),

which with b = 1 - rho is the hinge loss of rows that are all positive, and nu b beside it:

    nu/2 |w|^2 + nu b + mean_i max(1 - (w'x_i + b), 0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from epicycle.core._parameters import Choice, Domain, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.linear.online._base_regressor import OnlineRegressor
from epicycle.linear.online._learner import Rule, State
from epicycle.linear.online._parameters import SGD_PARAMETERS
from epicycle.optim._losses import Hinge


class SGDOneClassSVM(OutlierMixin, OnlineRegressor):  # type: ignore[misc]  # untyped mixin
    r"""Linear one-class support vector machine for streams and large data: the half space that holds most rows.

    .. math:: \min_{w, \rho} \; \frac{\nu}{2} \|w\|^2 - \nu \rho + \frac{1}{V} \sum_i v_i \max(\rho - w'x_i, 0),
              \qquad V = \sum_i v_i ,

    by steps of length :math:`\eta_t` along the gradient of one row at a time. At the minimum at most a share
    :math:`\nu` of the rows lies outside, :math:`w'x < \rho`. With the features of :class:`Nystroem` or
    :class:`RandomFourierFeatures` before it, it approaches :class:`OneClassSVM`, at a cost that is linear in the rows.

    Parameters
    ----------
    nu : float, default=0.5
        Share of rows that may lie outside, in (0, 1].
    fit_intercept : bool, default=True
        Whether rho is learnt or 0.
    tol : float or None, default=1e-3
        `fit` ends when the mean objective has not improved by tol in 5 passes; None makes all passes.
    learning_rate : {"optimal", "constant", "invscaling", "adaptive", "c/t", "a/(b+k)"}, default="optimal"
        Length of step t, as for :class:`SGDClassifier` with alpha = nu.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    offset_ : ndarray of shape (1,)
        rho.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SGDOneClassSVM
    >>> X = np.array([[-1, -1], [-2, -1], [1, 1], [2, 1]])
    >>> SGDOneClassSVM(nu=0.5, random_state=42).fit(X).predict([[4, 4]])
    array([1])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **{name: SGD_PARAMETERS[name] for name in ("tol", "shuffle", "eta0", "power_t", "average")},
        "nu": Real(0, 1, inclusive=(False, True)),
        "learning_rate": Choice("optimal", "constant", "invscaling", "adaptive", "c/t", "a/(b+k)"),
    }

    loss_functions: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hinge": (Hinge,)}

    nu: float
    loss = "hinge"
    penalty = "l2"

    @stores_arguments
    def __init__(
        self,
        nu: float = 0.5,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        warm_start: bool = False,
        average: bool | int = False,
    ) -> None: ...

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return self.nu

    def _rule(self) -> Rule:
        return replace(super()._rule(), pull=float(self.nu))

    def _first_state(self, rule: Rule, p: int, K: int) -> State:
        state = super()._first_state(rule, p, K)
        state["b"][...] = 1.0  # rho = 0
        return state

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_weight: Any = None, *, coef_init: Any = None, offset_init: Any = None
    ) -> Self:
        """Fit to rows X.

        Parameters
        ----------
        coef_init, offset_init : array-like, optional
            Where to start; zero, or with `warm_start` the earlier fit, by default.
        """
        try:
            b = None if offset_init is None else 1.0 - np.asarray(offset_init, dtype=np.float64)
        except (TypeError, ValueError):
            b = offset_init  # named by the check of its shape
        return super().fit(X, None, sample_weight, coef_init=coef_init, intercept_init=b)

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Data, None, None]:
        return self._fit_data(X, None, sample_weight, target="none"), None, None

    def _stream_data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        return self._fit_data(X, None, sample_weight, target="none", reset=not hasattr(self, "n_features_in_"))

    @property
    def offset_(self) -> np.ndarray:
        """rho, of shape (1,)."""
        b = self.intercept_
        return np.asarray(1.0 - b, dtype=b.dtype)

    def decision_function(self, X: Any) -> Any:
        """w'x - rho for every row: negative outside."""
        scores = super().predict(X)
        return scores - np.asarray(1.0, dtype=scores.dtype)

    def score_samples(self, X: Any) -> Any:
        """w'x for every row."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Any:
        """1 for rows inside, -1 for those outside."""
        return (self.decision_function(X) >= 0) * 2 - 1
