"""`FittedValueIteration`: values of continuous states by a regressor, with a model of the dynamics."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from epicycle.control.continuous import _fitting as fitting
from epicycle.control.continuous._system import box_of, states_of, system_of
from epicycle.core._exceptions import DataError, ModelFormatError, NotFittedError
from epicycle.core._parameters import check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._saved import attributes_of
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_FITTED = ("regressor_", "states_", "history_", "certificate_", "n_iter_")


@in_catalogue("control", "G3", certificate="Bellman residual")
class FittedValueIteration(fitting.FittedPolicy):
    r"""Value iteration over a sample of continuous states, with any regressor in the place of a table.

    .. math:: y_i = \max_a \Big\{ R(x_i, a) + \gamma V(f(x_i, a)) \Big\}, \qquad
              V \leftarrow \text{fit of } y \text{ on } x

    With a system that is not deterministic, `n_draws` next states are averaged. A file holds the simulator with the
    values; systems that are functions cannot be written.

    Parameters
    ----------
    system : Simulator or callable
        Simulator, or a function ``step(X, U)`` that gives (or draws) the next states of all rows.
    actions : array (A, m), optional
        Controls to choose from; by default those of the simulator.
    reward, ended : callables, optional
        ``reward(X, U, X_next)`` and ``ended(X)`` of all rows; by default those of the simulator.
    n_draws : int, default=1
        Next states that are averaged; 1 for deterministic systems.
    random_state : int, Generator, RandomState or None, default=None
        Sample of states, and the default regressor.

    Attributes
    ----------
    regressor_ : estimator
        The fitted values.
    states_ : array (rows, n)
        The sample.
    history_ : History
        Change of the values and what the regressor left of them, in each iteration.
    certificate_ : Certificate
        Residual of Bellman's equation on the sample. It proves nothing: fitted iterations need not converge.
    n_iter_ : int
        Number of iterations.

    Examples
    --------
    >>> from epicycle import RandomForestRegressor
    >>> from epicycle.control import FittedValueIteration, MountainCar
    >>> car = MountainCar()
    >>> model = FittedValueIteration(car, max_iter=5, random_state=0)
    >>> model = model.fit(low=[-1.2, -0.07], high=[0.5, 0.07], n_samples=300)
    >>> model.control([[-0.5, 0.0]]).shape
    (1, 1)
    """

    regressor_: Any
    states_: Array

    def __init__(
        self,
        system: Any,
        *,
        actions: Any = None,
        reward: Any = None,
        ended: Any = None,
        regressor: Any = None,
        discount: float = 0.99,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_draws: int = 1,
        random_state: Seed = None,
    ) -> None:
        given = {"discount": discount, "max_iter": max_iter, "tol": tol, "random_state": random_state}
        for name, value in given.items():
            check_parameter("FittedValueIteration", name, value, fitting.DOMAINS[name])
        check_parameter("FittedValueIteration", "n_draws", n_draws, fitting.DOMAINS["n_samples"])
        self.system = system_of(system, actions, reward, ended)
        self._given = {"system": system, "actions": actions, "reward": reward, "ended": ended}
        self.regressor, self.discount, self.max_iter, self.tol = regressor, float(discount), max_iter, tol
        self.n_draws, self.random_state = n_draws, random_state

    def fit(self, X: Any = None, *, low: Any = None, high: Any = None, n_samples: int = 1000) -> FittedValueIteration:
        """Fit values to a sample of states.

        Parameters
        ----------
        X : array (rows, n), optional
            The states. By default drawn evenly from a box.
        low, high : arrays (n,), optional
            The box, where X is not given.
        n_samples : int, default=1000
            Number of states to draw.

        Returns
        -------
        FittedValueIteration
            The object itself.
        """
        seed = seed_of(self.random_state)
        if X is None:
            check_parameter("FittedValueIteration.fit", "n_samples", n_samples, fitting.DOMAINS["n_samples"])
            if low is None or high is None:
                raise DataError("X=None; expected states, or low and high of a box to draw them from")
            corners = box_of(low, high)
            X = stream(seed, "states").uniform(*corners, size=(n_samples, len(corners[0])))
        else:
            X = np.asarray(X, dtype=np.float64)
            if X.ndim != 2 or not len(X) or not np.isfinite(X).all():
                raise DataError(f"X: got shape {X.shape}; expected finite numbers (rows, n)")
        X = X[~self.system.ended(X)]
        if not len(X):
            raise DataError("X: every state is an end; expected some that are not")
        # Where the actions lead does not change: it is asked for once.
        follow = [[self.system.follow(X, a) for _ in range(self.n_draws)] for a in range(len(self.system.actions))]
        self.states_, self._fitted = X, False
        self.regressor_ = fitting.regressor_of(self.regressor, seed)

        def targets() -> Array:
            q = np.empty((len(X), len(follow)))
            for a, draws in enumerate(follow):
                q[:, a] = np.mean([self._after(*draw) for draw in draws], axis=0)
            return np.asarray(q.max(axis=1))

        def fit(y: Array) -> Array:
            self.regressor_ = fitting.regressor_of(self.regressor, seed).fit(X, y)
            self._fitted = True
            return fitting.predictions(self.regressor_, X)

        self.history_, self.certificate_, self.n_iter_ = fitting.fitted_rounds(targets, fit, self.max_iter, self.tol)
        return self

    def _after(self, states: Array, rewards: Array, ended: Array) -> Array:
        out = rewards.copy()
        if self._fitted and not ended.all():
            out[~ended] += self.discount * fitting.predictions(self.regressor_, states[~ended])
        return out

    def value(self, x: Any) -> Any:
        """Values of states."""
        X, one = states_of("x", x, self._n_entries())
        values = np.where(self.system.ended(X), 0.0, fitting.predictions(self.regressor_, X))
        return float(values[0]) if one else values

    def _q(self, X: Array) -> Array:
        value = partial(fitting.predictions, self.regressor_)
        draws = [self.system.lookahead(X, value, self.discount) for _ in range(self.n_draws)]
        return np.asarray(np.mean(draws, axis=0))

    def _controls(self) -> Array:
        return self.system.actions

    def _n_entries(self) -> int:
        if not hasattr(self, "certificate_"):
            raise NotFittedError("FittedValueIteration is not fitted yet; call fit")
        return int(self.states_.shape[1])

    def __epi_state__(self) -> dict[str, Any]:
        self._n_entries()
        for name in ("system", "reward", "ended"):
            if callable(self._given[name]):
                raise ModelFormatError(
                    f"save: {name} is a function, which a file cannot hold; expected a simulator with its own "
                    "rewards and ends"
                )
        parameters = {**self._given, **attributes_of(self, (*fitting.ARGUMENTS, "n_draws"))}
        return {"parameters": parameters, "fitted": attributes_of(self, _FITTED)}
