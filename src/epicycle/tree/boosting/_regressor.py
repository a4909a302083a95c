"""Gradient boosting for regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Choice, Domain, NoneOr, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.tree.boosting._base import GradientBoosting
from epicycle.tree.boosting._losses import LOSS_METHODS, BoostingLoss, NativeLoss, regression_loss
from epicycle.tree.boosting._parameters import BOOSTING_DEFAULTS, BoostingArguments

LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")


class LossOrName(Choice):
    """One of the names, or an object with methods value, gradient and curvature."""

    def has_type(self, value: object) -> bool:
        return isinstance(value, str) or all(callable(getattr(value, m, None)) for m in LOSS_METHODS)

    def accepts(self, value: object) -> bool:
        return self.has_type(value) and (not isinstance(value, str) or value in self.names)

    def describe(self) -> str:
        return f"{super().describe()}, or an object with methods {', '.join(LOSS_METHODS)}"


class GradientBoostingRegressor(RegressorMixin, GradientBoosting):  # type: ignore[misc]  # the mixin is untyped
    r"""Gradient boosting for regression, by Newton steps on histograms.

    The prediction is a constant and a sum of trees, :math:`F(x) = s_0 + \eta \sum_m h_m(x)`. With
    :math:`g_i = L'(y_i, F(x_i))` and :math:`c_i = L''(y_i, F(x_i))` each tree minimises

    .. math:: \sum_i w_i \bigl[g_i h(x_i) + \tfrac12 c_i h(x_i)^2\bigr] + \tfrac{\lambda}{2} \sum_{\text{leaves}} v^2,

    which is least squares of the working response :math:`-g_i / c_i` with weights :math:`w_i c_i`. A leaf with sums G
    and H of :math:`w g` and :math:`w c` has the value :math:`v = -G / (H + \lambda)`, and a split gains

    .. math:: \tfrac12 \Bigl[\frac{G_L^2}{H_L + \lambda} + \frac{G_R^2}{H_R + \lambda} - \frac{G^2}{H + \lambda}\Bigr] .

    Trees grow leaf by leaf, always where most is gained. Features are binned (at most 255 bins), and the sums in a bin
    are kept in fixed point, so that the fit has the same bits for any number of threads, and on a Dask cluster.

    Parameters
    ----------
    loss : str or object, default="squared_error"
        "squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie" (the last three predict
        exp(F)), or an object with methods ``value(y, s)``, ``gradient(y, s)`` and ``curvature(y, s)`` that give arrays
        like y. The gradient is compared with differences of the value before the fit; the curvature may be a bound on
        the second derivative, or an approximation.
        Absolute and quantile loss have no curvature: their trees are those of least squares, and each leaf takes the
        best constant for the loss.
    delta : float, default=1.0
        Residual from which on the Huber loss is linear.
    quantile : float, default=0.5
        The quantile that the quantile loss predicts.
    alpha : float, optional
        scikit-learn's name of `quantile`, in place of which it is taken. For the Huber loss the quantile of the
        absolute residuals that is taken for `delta`, anew in every round (in memory).
    power : float, default=1.5
        Power of the variance of the Tweedie loss, between 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(n_estimators=50, max_leaf_nodes=4).fit(X, y)
    >>> bool((model.history_.objective[1:] < model.history_.objective[:-1]).all())
    True
    >>> round(model.score(X, y), 2)
    0.63
    """

    _docs: ClassVar[dict[str, str]] = {
        "n_estimators": "n_estimators : int, default={default}\n    Number of rounds, each of one tree.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("boosting_attributes",)
    _target = "numeric"
    _parameters: ClassVar[dict[str, Domain]] = {
        **GradientBoosting._parameters,
        "loss": LossOrName(*LOSSES),
        "delta": Real(0, inclusive=False),
        "quantile": Real(0, 1, inclusive=False),
        "alpha": NoneOr(Real(0, 1, inclusive=False)),
        "power": Real(1, 2, inclusive=False),
    }

    @stores_arguments(**BOOSTING_DEFAULTS)
    def __init__(
        self,
        *,
        loss: Any = "squared_error",
        delta: float = 1.0,
        quantile: float = 0.5,
        alpha: float | None = None,
        power: float = 1.5,
        **shared: Unpack[BoostingArguments],
    ) -> None: ...

    @fitting
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        monitor: Callable[..., Any] | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit to rows X with targets y."""
        self._check_fit(X_val, y_val)
        data = self._training_data(X, y, sample_weight)
        self._fit_init(X, y, sample_weight)
        validation = self._validation_data(X_val, y_val, sample_weight_val)
        return self._fit_trees(X, data, validation, None, monitor, X_val)

    def _init_scores(self, X: Any) -> np.ndarray:
        given, loss = np.asarray(self.init_.predict(X), np.float64).reshape(-1, 1), self._loss()
        if isinstance(loss, NativeLoss) and loss.of_row.log_link:
            return np.log(np.maximum(given, np.finfo(np.float64).tiny))
        return given

    def _loss(self) -> BoostingLoss:
        loss = regression_loss(self.loss, delta=self.delta, quantile=self.quantile, power=self.power, alpha=self.alpha)
        if loss.leaf_quantile is not None and self.monotonic_cst is not None:
            raise ParameterError(
                f"monotonic_cst cannot be kept with loss={self.loss!r}: its leaves take quantiles of residuals"
            )
        return loss

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> Any:
        """Predict F(x) for every row, or exp(F(x)) for losses with a logarithmic link."""
        return self._loss().response(self._scores(X)[:, 0])

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions after each round."""
        for scores in self._staged_scores(X):
            yield self._loss().response(scores[:, 0])

    # ------------------------------------------------------------------------------------------- inspection

    def _known_target(self, y: Any, n: int) -> np.ndarray:
        target = super()._known_target(y, n)
        self._loss().check_target(target)
        return target

    def _responses(self, X: np.ndarray) -> np.ndarray:
        return self._loss().response(self._raw_outputs(X))
