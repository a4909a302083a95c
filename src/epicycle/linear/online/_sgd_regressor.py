"""Linear regression by stochastic gradients:  minimise  mean_i l(w'x_i + b - y_i) + alpha R(w)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

from sklearn.base import RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import Choice, Domain
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.linear.online._base_regressor import REGRESSION_LOSSES, OnlineRegressor
from epicycle.linear.online._parameters import SGD_PARAMETERS


class SGDRegressor(RegressorMixin, OnlineRegressor):  # type: ignore[misc]  # untyped mixin
    r"""Linear regression for streams and large data, learnt row by row.

    .. math:: \min_{w, b} \; \frac{1}{V} \sum_i v_i \, l(w'x_i + b - y_i)
              + \alpha \Bigl[\tfrac{1 - \rho}{2} \|w\|^2 + \rho \|w\|_1\Bigr], \qquad V = \sum_i v_i ,

    by steps of length :math:`\eta_t` along the gradient of one row at a time. A row costs what its stored entries cost,
    also with a penalty or with averaging. `partial_fit` learns from a stream: a batch gives the same model as its rows
    one by one.

    Parameters
    ----------
    loss : str, default="squared_error"
        "squared_error" (r^2 / 2), "huber" (linear beyond epsilon), "epsilon_insensitive" (max(|r| - epsilon, 0)) or
        "squared_epsilon_insensitive".

    Notes
    -----
    The notes of :class:`SGDClassifier` on weights, sparse rows and safe steps hold here too.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import SGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ [1.0, -2.0, 0.0] + 0.1 * rng.normal(size=1000)
    >>> SGDRegressor(random_state=0).fit(X, y).coef_.round(1) + 0.0
    array([ 1., -2.,  0.])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {"loss": Choice(*REGRESSION_LOSSES), **SGD_PARAMETERS}

    @stores_arguments(
        fit_intercept=True, max_iter=1000, tol=1e-3, random_state=None, warm_start=False, n_jobs=None, verbose=0
    )
    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float | None = 0.15,
        intercept_rate: float | str = "auto",
        shuffle: bool = True,
        epsilon: float = 0.1,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        offset: float = 1.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        average: bool | int = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...
