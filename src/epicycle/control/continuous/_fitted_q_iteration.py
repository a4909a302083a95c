"""`FittedQIteration`: values of states and actions by regressors, from a batch of transitions alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.control.continuous import _fitting as fitting
from epicycle.core._exceptions import DataError, NotFittedError
from epicycle.core._parameters import check_parameter
from epicycle.core._random import Seed, seed_of
from epicycle.core._saved import attributes_of
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_FITTED = ("actions_", "regressors_", "history_", "certificate_", "n_iter_", "_width")


@in_catalogue("control", "G3", certificate="Bellman residual")
class FittedQIteration(fitting.FittedPolicy):
    r"""Values of states and actions from a batch of transitions, with any regressor (Ernst, Geurts and Wehenkel).

    .. math:: y_i = r_i + \gamma \max_a Q_a(x_i'), \qquad Q_a \leftarrow \text{fit of } y_i \text{ on } x_i
              \text{ over the rows with } a_i = a

    No model of the dynamics is needed; the rows may come from any policy, as long as it tried every action.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None, default=None
        Of the default regressor.

    Attributes
    ----------
    actions_ : array (A,) or (A, m)
        The actions of the batch, sorted.
    regressors_ : list of A estimators
        One for each action.
    history_ : History
        Change of the values and what the regressors left of them, in each iteration.
    certificate_ : Certificate
        Residual of Bellman's equation on the batch. It proves nothing: fitted iterations need not converge.
    n_iter_ : int
        Number of iterations.

    Examples
    --------
    From steps tried at random to a policy:

    >>> import numpy as np
    >>> from epicycle import ExtraTreesRegressor
    >>> from epicycle.control import FittedQIteration, MountainCar
    >>> car, rng = MountainCar(), np.random.default_rng(0)
    >>> X = rng.uniform([-1.2, -0.07], [0.5, 0.07], size=(400, 2))
    >>> U = rng.choice(car.actions[:, 0], size=(400, 1))
    >>> X_next = car.step(X, U)
    >>> model = FittedQIteration(ExtraTreesRegressor(n_estimators=10, random_state=0), max_iter=5)
    >>> model.fit(X, U, car.reward(X, U, X_next), X_next, car.ended(X_next)).actions_.ravel()
    array([-1.,  0.,  1.])
    """

    actions_: Array
    regressors_: list[Any]

    def __init__(
        self,
        regressor: Any = None,
        *,
        discount: float = 0.99,
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: Seed = None,
    ) -> None:
        given = {"discount": discount, "max_iter": max_iter, "tol": tol, "random_state": random_state}
        for name, value in given.items():
            check_parameter("FittedQIteration", name, value, fitting.DOMAINS[name])
        self.regressor, self.discount, self.max_iter, self.tol = regressor, float(discount), max_iter, tol
        self.random_state = random_state

    def fit(self, X: Any, actions: Any, rewards: Any, X_next: Any, ended: Any = None) -> FittedQIteration:
        """Fit values to a batch of transitions.

        Parameters
        ----------
        X : array (rows, n)
            States.
        actions : array (rows,) or (rows, m)
            Action, or control, of each row; a few different ones.
        rewards : array (rows,)
            Rewards.
        X_next : array (rows, n)
            States after the actions.
        ended : array (rows,) of bool, optional
            Whether the episode ended with that step; by default never.

        Returns
        -------
        FittedQIteration
            The object itself.
        """
        X, after, U, r, ends = _checked(X, actions, rewards, X_next, ended)
        seed = seed_of(self.random_state)
        self.actions_, kind = np.unique(U, axis=0, return_inverse=True)
        kind = kind.ravel()
        self._width = X.shape[1]
        rows = [np.flatnonzero(kind == a) for a in range(len(self.actions_))]
        self.regressors_ = []

        def targets() -> Array:
            y = r.copy()
            if self.regressors_ and not ends.all():
                y[~ends] += self.discount * self._q(after[~ends]).max(axis=1)
            return y

        def fit(y: Array) -> Array:
            fitted = np.empty(len(y))
            regressors = []
            for a, mine in enumerate(rows):
                regressors.append(fitting.regressor_of(self.regressor, seed + a).fit(X[mine], y[mine]))
                fitted[mine] = fitting.predictions(regressors[-1], X[mine])
            self.regressors_ = regressors
            return fitted

        self.history_, self.certificate_, self.n_iter_ = fitting.fitted_rounds(targets, fit, self.max_iter, self.tol)
        return self

    def _q(self, X: Array) -> Array:
        return np.stack([fitting.predictions(one, X) for one in self.regressors_], axis=1)

    def _controls(self) -> Array:
        return self.actions_

    def _n_entries(self) -> int:
        if not hasattr(self, "certificate_"):
            raise NotFittedError("FittedQIteration is not fitted yet; call fit")
        return int(self._width)

    def value(self, x: Any) -> Any:
        """Value of the best action in states."""
        best = self.q_values(x).max(axis=-1)
        return float(best) if best.ndim == 0 else best

    def __epi_state__(self) -> dict[str, Any]:
        self._n_entries()
        return {"parameters": attributes_of(self, fitting.ARGUMENTS), "fitted": attributes_of(self, _FITTED)}


def _checked(X: Any, actions: Any, rewards: Any, X_next: Any, ended: Any) -> tuple[Array, ...]:
    before, after = (np.asarray(M, dtype=np.float64) for M in (X, X_next))
    if before.ndim != 2 or not len(before) or not np.isfinite(before).all():
        raise DataError(f"X: got shape {before.shape}; expected finite numbers (rows, n)")
    if after.shape != before.shape or not np.isfinite(after).all():
        raise DataError(f"X_next: got shape {after.shape}; expected finite numbers of shape {before.shape}")
    U, r = np.asarray(actions), np.asarray(rewards, dtype=np.float64)
    if U.ndim not in (1, 2) or len(U) != len(before):
        raise DataError(f"actions: got shape {U.shape}; expected an action for each of {len(before)} rows")
    if r.shape != (len(before),) or not np.isfinite(r).all():
        raise DataError(f"rewards: got shape {r.shape}; expected {len(before)} finite numbers")
    ends = np.zeros(len(before), dtype=bool) if ended is None else np.asarray(ended).astype(bool)
    if ends.shape != (len(before),):
        raise DataError(f"ended: got shape {ends.shape}; expected ({len(before)},)")
    if len(np.unique(U, axis=0)) > len(U) // 3 + 1:
        raise DataError(
            f"actions: {len(np.unique(U, axis=0))} different ones in {len(U)} rows; expected a few, each tried often"
        )
    return before, after, U, r, ends
