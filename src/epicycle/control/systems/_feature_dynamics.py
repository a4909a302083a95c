"""`FeatureDynamics`: dynamics learnt from trajectories by any regressor, on any features.

x_{t+1} = x_t + g(phi(x_t, u_t)) + w_t,  one regressor g for each entry of the state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from epicycle.control.systems._learnt_dynamics import LearntDynamics
from epicycle.control.systems._linearize import linearize
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._parameters import Boolean, Integer, NoneOr, check_parameter
from epicycle.core.estimator import in_catalogue
from epicycle.linear import LinearRegression

Array = np.ndarray


@in_catalogue("control", "G3", certificate="that of the regressors")
class FeatureDynamics(LearntDynamics):
    r"""Dynamics learnt from trajectories by a regressor on features of states and controls.

    .. math:: x_{t+1} = x_t + g(\phi(x_t, u_t)) + w_t, \qquad w_t \sim N(0, W)

    Parameters
    ----------
    regressor : estimator, optional
        Any regressor with ``fit`` and ``predict``, cloned for each entry of the state; by default
        :class:`~epicycle.LinearRegression`.
    features : callable, optional
        ``features(X, U)`` of all rows at once, an array with one row each; by default states and controls side by side.
    difference : bool, default=True
        Whether the regressors predict the change of the state instead of the next state.
    folds : int or None, default=5
        The covariance of the noise comes from predictions of steps that were held out, in so many blocks of
        consecutive steps; None takes the residuals of the fit, which flexible regressors make too small.

    Attributes
    ----------
    regressors_ : list of estimators
        One for each entry of the state.
    noise_ : array (n, n)
        Covariance W.
    n_transitions_ : int
        Number of steps that were learnt from.
    history_ : History
        Mean squared residual, of the fit and held out, for each entry of the state.
    certificate_ : Certificate
        The worst of the regressors' own; none where they have none.

    Examples
    --------
    A pendulum is linear in the right features:

    >>> import numpy as np
    >>> from epicycle.control import FeatureDynamics, InvertedPendulum
    >>> rod, rng = InvertedPendulum(max_speed=np.inf), np.random.default_rng(0)
    >>> paths = rod.rollout(rod.reset(50, random_state=0), rng.uniform(-2, 2, (50, 20, 1)))
    >>> model = FeatureDynamics(features=lambda X, U: np.column_stack([np.sin(X[:, 0]), X[:, 1], U])).fit(paths)
    >>> bool(abs(model.step([2.0, 0.5], [1.0]) - rod.step([2.0, 0.5], [1.0])).max() < 1e-8)
    True
    """

    regressors_: list[Any]

    def __init__(
        self,
        regressor: Any = None,
        *,
        features: Callable[[Array, Array], Any] | None = None,
        difference: bool = True,
        folds: int | None = 5,
    ) -> None:
        check_parameter("FeatureDynamics", "difference", difference, Boolean())
        check_parameter("FeatureDynamics", "folds", folds, NoneOr(Integer(minimum=2)))
        if regressor is not None and not (hasattr(regressor, "fit") and hasattr(regressor, "predict")):
            raise DataError(f"regressor: got {type(regressor).__name__}; expected an object with fit and predict")
        self.regressor, self.features, self.difference, self.folds = regressor, features, difference, folds

    def __repr__(self) -> str:
        return f"FeatureDynamics({self.regressor!r})"

    def _learn(self, X: Array, U: Array, after: Array) -> None:
        Z, Y = self._features(X, U), after - X if self.difference else after
        if self.folds is not None and len(Z) < 2 * self.folds:
            raise DataError(f"folds={self.folds}: got {len(Z)} steps; expected at least two for each fold, or None")
        self.regressors_ = [self._fresh().fit(Z, y) for y in Y.T]
        inside = Y - self._predict(self.regressors_, Z)
        outside = inside if self.folds is None else self._held_out(Z, Y)
        self.noise_ = outside.T @ outside / len(outside)
        self.history_ = History(residual=(inside**2).mean(axis=0), held_out=(outside**2).mean(axis=0))
        self.certificate_ = self._worst_certificate()

    def _fresh(self) -> Any:
        return LinearRegression() if self.regressor is None else clone(self.regressor)

    def _features(self, X: Array, U: Array) -> Array:
        if self.features is None:
            return np.hstack([X, U])
        Z = np.asarray(self.features(X, U), dtype=np.float64)
        if Z.ndim != 2 or len(Z) != len(X) or not np.isfinite(Z).all():
            raise DataError(
                f"features: got shape {Z.shape} for {len(X)} rows; expected finite numbers, one row for each"
            )
        return Z

    @staticmethod
    def _predict(regressors: list[Any], Z: Array) -> Array:
        return np.column_stack([r.predict(Z) for r in regressors])

    def _held_out(self, Z: Array, Y: Array) -> Array:
        out = np.empty_like(Y)
        for held in np.array_split(np.arange(len(Z)), self.folds or 1):
            rest = np.ones(len(Z), dtype=bool)
            rest[held] = False
            fitted = [self._fresh().fit(Z[rest], y) for y in Y[rest].T]
            out[held] = Y[held] - self._predict(fitted, Z[held])
        return out

    def _worst_certificate(self) -> Certificate:
        found = [r.certificate_ for r in self.regressors_ if isinstance(getattr(r, "certificate_", None), Certificate)]
        measured: list[Certificate] = [c for c in found if c.kind != "none"]
        if len(found) < len(self.regressors_) or not measured:
            return Certificate("none", np.nan, np.nan, "the regressors measure no distance from an optimum")
        return max(measured, key=lambda c: c.value / max(c.tolerance, np.finfo(float).tiny))

    def _mean(self, X: Array, U: Array) -> Array:
        out = self._predict(self.regressors_, self._features(X, U))
        return np.asarray(X + out if self.difference else out)

    def derivatives(self, x: Any, u: Any) -> tuple[Array, ...]:
        """One step with its derivatives, by central differences.

        Returns
        -------
        value, A, B : arrays (n,), (n, n), (n, m)
        """
        return linearize(lambda a, b: self.step(a, b), x, u)
