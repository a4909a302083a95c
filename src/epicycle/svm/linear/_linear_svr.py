"""Linear support vector regression:  minimise  (|w|^2 + u^2) / 2 + C sum_i v_i max(0, |w'x_i + b - y_i| - epsilon)^q,

with q = 1 or 2 and the intercept b = s u. Rows within epsilon of the hyperplane cost nothing and have no say; dual
variables |beta_i| <= C v_i with  w = sum_i beta_i x_i  prove the solution.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import RegressorMixin

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import Choice, Domain, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Batch
from epicycle.stats._class_scores import linear_predictor
from epicycle.svm.linear._base import LINEAR_PARAMETERS, LinearMachine


class LinearSVR(RegressorMixin, LinearMachine):  # type: ignore[misc]  # untyped mixin
    r"""Linear support vector regression, with the duality gap as its certificate.

    .. math:: P(w, b) = \tfrac{1}{2} \|w\|^2 + \tfrac{1}{2} (b / s)^2
              + C \sum_i v_i \max(0, |w'x_i + b - y_i| - \epsilon)^q

    with sample weights :math:`v_i`, :math:`q` = 1 or 2, and :math:`s` = `intercept_scaling`: the objective of
    liblinear, in which the intercept is the weight of a constant feature s.

    Parameters
    ----------
    epsilon : float, default=0.0
        Residuals up to this size cost nothing.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        q = 1 or 2.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    objective_ : float
        P.
    dual_objective_ : float
        The proven lower bound on P.

    See Also
    --------
    LinearSVC : the same for classes.
    HuberRegressor, QuantileRegressor : other losses that grow linearly, with an intercept that is not penalised.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LinearSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=500)
    >>> y[:25] += 100
    >>> model = LinearSVR(epsilon=0.1).fit(X, y)
    >>> model.coef_.round(1)
    array([ 1., -2.])
    >>> model.certificate_.holds
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "epsilon": Real(minimum=0),
        "loss": Choice("epsilon_insensitive", "squared_epsilon_insensitive"),
        **LINEAR_PARAMETERS,
    }

    @stores_arguments(tol=1e-5, fit_intercept=True, max_iter=1000, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        loss: str = "epsilon_insensitive",
        C: float = 1.0,
        intercept_scaling: float = 1.0,
        dual: bool | str = "auto",
        solver: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y."""
        self._check_dual("l2", self.loss == "squared_epsilon_insensitive")
        data = self._fit_data(X, y, sample_weight, target="numeric")
        problem = self._problem(
            data, 1, regression=True, squared=self.loss == "squared_epsilon_insensitive", epsilon=float(self.epsilon)
        )
        total, size = engine.sum(_size_statistic, data, n_jobs=self.n_jobs)
        self._conclude(self._solve(data, problem, size / total if size > 0 else 1.0))
        return self

    def _attributes(self, problem: Any, theta: np.ndarray, dtype: Any) -> dict[str, Any]:
        both = super()._attributes(problem, theta, dtype)
        return {"coef_": both["coef_"][0], "intercept_": both["intercept_"]}

    def _keep_values(self, primal: np.ndarray, dual: np.ndarray) -> None:
        self.objective_, self.dual_objective_ = float(primal[0]), float(dual[0])

    def predict(self, X: Any) -> Any:
        """b + w'x for every row."""
        data = self._predict_data(X)
        return linear_predictor(data, self._weights(), self.intercept_, self.n_jobs)[:, 0]

    def _coef_shape(self) -> tuple[int, ...]:
        return (self.n_features_in_,)


def _size_statistic(batch: Batch) -> tuple[float, float]:
    """(sum of the weights, weighted sum of |y|)."""
    y = np.abs(np.asarray(batch.y, dtype=np.float64))
    weight = np.ones(len(y)) if batch.weight is None else batch.weight
    return float(weight.sum()), float(weight @ y)
