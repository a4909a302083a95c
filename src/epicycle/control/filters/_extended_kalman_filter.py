"""`ExtendedKalmanFilter`: Kalman's filter about the present estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.control.filters._nonlinear_filter import Function, GaussianFilter, conditioned
from epicycle.control.systems._linearize import evaluate, jacobian
from epicycle.core._parameters import Choice, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@in_catalogue("control", "G6", certificate="none")
class ExtendedKalmanFilter(GaussianFilter):
    r"""Filter of a smooth system by its linearisation about the present estimate.

    .. math:: x_{t+1} = f(x_t, u_t) + w_t, \qquad y_t = h(x_t) + v_t, \qquad
              A_t = f'(\hat x_{t \mid t}), \; C_t = h'(\hat x_{t \mid t-1})

    Parameters
    ----------
    f_jacobian, h_jacobian : callables, optional
        Derivatives ``f_jacobian(x)`` or ``f_jacobian(x, u)``, and ``h_jacobian(x)``.
    method : {"differences", "complex"}, default="differences"
        How derivatives are taken that are not given; see :func:`linearize`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import ExtendedKalmanFilter
    >>> turn = lambda x: np.array([x[0] + 0.1 * x[1], x[1] - 0.1 * np.sin(x[0])])
    >>> noise, first = 0.01 * np.eye(2), np.eye(2)
    >>> model = ExtendedKalmanFilter(turn, lambda x: x[:1], noise, [[0.1]], mean=[1, 0], covariance=first)
    >>> model.filter([[1.1], [0.9], [1.0]]).mean[-1].round(2)
    array([ 0.99, -0.24])
    """

    def __init__(
        self,
        f: Function,
        h: Function,
        W: Any,
        V: Any,
        *,
        mean: Any,
        covariance: Any,
        f_jacobian: Function | None = None,
        h_jacobian: Function | None = None,
        method: str = "differences",
    ) -> None:
        super().__init__(f, h, W, V, mean=mean, covariance=covariance)
        check_parameter("ExtendedKalmanFilter", "method", method, Choice("differences", "complex"))
        self.f_jacobian, self.h_jacobian, self.method = f_jacobian, h_jacobian, method

    def _dynamics(self, u: Any) -> Function:
        f = super()._dynamics(u)
        given = self.f_jacobian

        def both(x: Array) -> tuple[Array, Array]:
            value = evaluate(f, x)
            if given is not None:
                return value, np.asarray(given(x) if u is None else given(x, u), dtype=np.float64)
            return value, jacobian(f, x, self.method, value)

        return both

    def _predict(self, x: Array, P: Array, f: Function) -> tuple[Array, Array]:
        after, A = f(x)
        moved = A @ P @ A.T + self.W
        return after, (moved + moved.T) / 2

    def _update(self, x: Array, P: Array, y: Array, known: Array) -> tuple[Array, Array, float]:
        expected = evaluate(self.h, x)
        C = jacobian(self.h, x, self.method, expected) if self.h_jacobian is None else np.asarray(self.h_jacobian(x))
        C = np.atleast_2d(C)[known]
        S = C @ P @ C.T + self.V[np.ix_(known, known)]
        return conditioned(x, P, (y - expected)[known], P @ C.T, S)
