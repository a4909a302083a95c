"""`LinearDynamics`: a linear system learnt from trajectories.

Minimise  sum_t ||x_{t+1} - A x_t - B u_t - c||^2 + alpha (||A||^2 + ||B||^2);  W is the covariance of what is left.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from epicycle.control.systems._learnt_dynamics import LearntDynamics
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Real, check_parameter
from epicycle.core.estimator import in_catalogue
from epicycle.linear import LinearRegression, Ridge

Array = np.ndarray


@in_catalogue("control", "G3", certificate="newton decrement")
class LinearDynamics(LearntDynamics):
    r"""Linear system learnt from trajectories by least squares.

    .. math:: x_{t+1} = A x_t + B u_t + c + w_t, \qquad w_t \sim N(0, W)

    Parameters
    ----------
    alpha : float, default=0
        Weight of the L2 penalty on A and B; on :math:`A - I` with `difference`.
    fit_intercept : bool, default=False
        Whether to learn the drift c; it is 0 otherwise.
    difference : bool, default=False
        Whether to learn the change :math:`x_{t+1} - x_t`; without a penalty the result is the same.

    Attributes
    ----------
    A_, B_, c_ : arrays (n, n), (n, m), (n,)
        The system.
    noise_ : array (n, n)
        Covariance W, unbiased: residuals are counted less the coefficients of an equation.
    n_transitions_ : int
        Number of steps that were learnt from.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import LQR, CartPole, LinearDynamics
    >>> cart, rng = CartPole(), np.random.default_rng(0)
    >>> paths = cart.rollout(cart.reset(200, random_state=0), rng.uniform(-5, 5, (200, 20, 1)))
    >>> model = LinearDynamics().fit(paths)
    >>> regulator = LQR(model.A_, model.B_, np.eye(4), [[0.1]]).solve()
    >>> int(cart.rollout([0.0, 0.0, 0.1, 0.0], policy=regulator, n_steps=500).lengths)
    500
    """

    A_: Array
    B_: Array
    c_: Array

    def __init__(self, *, alpha: float = 0.0, fit_intercept: bool = False, difference: bool = False) -> None:
        check_parameter("LinearDynamics", "alpha", alpha, Real(0))
        check_parameter("LinearDynamics", "fit_intercept", fit_intercept, Boolean())
        check_parameter("LinearDynamics", "difference", difference, Boolean())
        self.alpha, self.fit_intercept, self.difference = float(alpha), fit_intercept, difference

    def __repr__(self) -> str:
        return f"LinearDynamics(alpha={self.alpha:g}, fit_intercept={self.fit_intercept})"

    def _learn(self, X: Array, U: Array, after: Array) -> None:
        Z, n = np.hstack([X, U]), self.n_states_
        size = Z.shape[1] + self.fit_intercept
        if len(Z) <= size and self.alpha == 0:
            raise DataError(f"fit: got {len(Z)} steps for {size} coefficients of each equation; expected more")
        target = after - X if self.difference else after
        if self.alpha > 0:
            model = Ridge(alpha=self.alpha, fit_intercept=self.fit_intercept).fit(Z, target)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is dependent is an error below, in the words of this model
                model = LinearRegression(fit_intercept=self.fit_intercept).fit(Z, target)
            self._check_rank(model)
        coefficients = np.atleast_2d(model.coef_)
        self.A_ = coefficients[:, :n] + (np.eye(n) if self.difference else 0.0)
        self.B_ = coefficients[:, n:]
        self.c_ = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (n,)).copy()
        left = after - self._mean(X, U)
        self.noise_ = left.T @ left / max(len(Z) - size, 1)
        self.history_, self.certificate_ = model.history_, model.certificate_

    def _check_rank(self, model: LinearRegression) -> None:
        if model.rank_ == self.n_states_ + self.n_controls_:
            return
        names = [f"x[{i}]" for i in range(self.n_states_)] + [f"u[{j}]" for j in range(self.n_controls_)]
        hidden = [names[j] for j in model._dependencies_["dependent"]]
        raise DataError(
            f"fit: {', '.join(hidden)} of the trajectories is a linear function of the other states and controls, as "
            "under a fixed feedback, so that A and B cannot be told apart; expected varied controls, or alpha > 0"
        )

    def _mean(self, X: Array, U: Array) -> Array:
        return np.asarray(X @ self.A_.T + U @ self.B_.T + self.c_)

    def derivatives(self, x: Any, u: Any, *, second: bool = False) -> tuple[Array, ...]:
        """One step with its derivatives.

        Parameters
        ----------
        second : bool, default=False
            Whether to return second derivatives, which are zero.

        Returns
        -------
        value, A, B : arrays (n,), (n, n), (n, m)
        H : array (n, n + m, n + m), if asked for
        """
        n, m = self.n_states_, self.n_controls_
        zero = (np.zeros((n, n + m, n + m)),) if second else ()
        return (self.step(x, u), self.A_.copy(), self.B_.copy(), *zero)
