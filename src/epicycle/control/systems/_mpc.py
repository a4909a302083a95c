"""`MPC`: a trajectory is optimised at every step, and its first control applied."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from epicycle.control.systems._ddp import DDP, TRAJECTORY_DOCS
from epicycle.control.systems._trajectory_solution import TrajectorySolution
from epicycle.core._checks import count
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._parameters import Boolean, Integer, Real, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray


@dataclass(frozen=True)
class MPCRun:
    """Trajectory of a system under model predictive control.

    Attributes
    ----------
    states : array (T + 1, n)
        States of the system.
    controls : array (T, m)
        Controls that were applied.
    history : History
        Planned cost, rounds of the optimiser and relative size of its gradient at each step.
    """

    states: Array = field(repr=False)
    controls: Array = field(repr=False)
    history: History


@in_catalogue("control", "G5", certificate="projected gradient")
class MPC:
    """Model predictive control: plan over a receding horizon, apply the first control, plan again.

    Each plan begins with the last one, moved on by a step, so that a round or two of the optimiser are enough. The plan
    of a model that is not quite right is corrected at every step by the state that is seen.

    Parameters
    ----------
    horizon : int, default=50
        Number of steps of a plan.
    second_order : bool, default=False
        Whether to use second derivatives of the dynamics.
    first_iter : int, default=100
        Largest number of rounds of the first plan.
    max_iter : int, default=5
        Largest number of rounds of each later plan.

    Attributes
    ----------
    plan_ : TrajectorySolution
        The last plan.
    history_ : History
        Planned cost, rounds and relative size of the gradient of every plan since the last ``reset``.

    Examples
    --------
    The cost of what comes after the plan is that of the regulator of the upright position:

    >>> import numpy as np
    >>> from epicycle.control import LQR, MPC, CartPole, QuadraticCost
    >>> cart = CartPole()
    >>> _, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
    >>> after = LQR(A, B, np.eye(4), [[0.01]]).solve().cost_matrix
    >>> controller = MPC(cart, QuadraticCost(np.eye(4), [[0.01]], Q_final=after), horizon=20)
    >>> run = controller.run(cart, [0.2, 0.0, 0.3, 0.0], n_steps=200)
    >>> bool(abs(run.states[-1]).max() < 0.1)
    True
    """

    _docs: ClassVar[Mapping[str, str]] = TRAJECTORY_DOCS
    plan_: TrajectorySolution

    def __init__(
        self,
        dynamics: Any,
        cost: Any,
        *,
        horizon: int = 50,
        control_low: Any = None,
        control_high: Any = None,
        second_order: bool = False,
        tol: float = 1e-4,
        first_iter: int = 100,
        max_iter: int = 5,
    ) -> None:
        check_parameter("MPC", "horizon", horizon, Integer(minimum=1))
        check_parameter("MPC", "second_order", second_order, Boolean())
        check_parameter("MPC", "tol", tol, Real(0, inclusive=False))
        check_parameter("MPC", "first_iter", first_iter, Integer(minimum=1))
        check_parameter("MPC", "max_iter", max_iter, Integer(minimum=1))
        settings = {"control_low": control_low, "control_high": control_high, "second_order": second_order, "tol": tol}
        self.horizon = horizon
        self._first = DDP(dynamics, cost, **settings, max_iter=first_iter)
        self._later = DDP(dynamics, cost, **settings, max_iter=max_iter)
        self.reset()

    def __repr__(self) -> str:
        return f"MPC({self._first.dynamics!r}, horizon={self.horizon})"

    def reset(self, controls: Any = None) -> MPC:
        """Forget the plan.

        Parameters
        ----------
        controls : array (horizon, m), optional
            Controls with which the next plan begins; by default zero.
        """
        self._guess = None if controls is None else np.array(controls, dtype=np.float64)
        if self._guess is not None and (self._guess.ndim != 2 or len(self._guess) != self.horizon):
            raise DataError(f"controls: got shape {self._guess.shape}; expected ({self.horizon}, m)")
        self._rows: list[tuple[float, int, float]] = []
        return self

    @property
    def history_(self) -> History:
        """Planned cost, rounds and relative size of the gradient of every plan."""
        cost, rounds, gradient = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        return History(cost=cost, rounds=rounds, gradient=gradient)

    def control(self, x: Any, time: int = 0) -> Array:
        """Plan from a state, and return the first control.

        Parameters
        ----------
        x : array (n,) or (1, n)
            Present state.
        time : int, default=0
            Present time, for targets that change with it.

        Returns
        -------
        array (m,) or (1, m)
        """
        state = np.asarray(x, dtype=np.float64)
        if state.ndim == 2 and len(state) != 1:
            raise DataError(f"x: got {len(state)} states; expected one, since the plan goes on from step to step")
        solver = self._later if self._rows else self._first
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # rounds are few by design; `history_` has the gradient
            begin = {"horizon": self.horizon} if self._guess is None else {"controls": self._guess}
            plan = solver.solve(state.reshape(-1), **begin, time=time)
        self.plan_ = plan
        self._rows.append((plan.cost, plan.n_iter, plan.certificate.value))
        self._guess = np.vstack([plan.controls[1:], plan.controls[-1:]])
        return np.asarray(plan.controls[:1] if state.ndim == 2 else plan.controls[0])

    def run(self, system: Any, x: Any, *, n_steps: int) -> MPCRun:
        """Control a system, which need not be the model.

        Parameters
        ----------
        system : Simulator, object with a method step, or callable
            The system, ``step(x, u)``.
        x : array (n,)
            First state.
        n_steps : int
            Number of steps.
        """
        step = system.step if hasattr(system, "step") else system
        state = np.asarray(x, dtype=np.float64)
        states, controls = [state], []
        for t in range(count("n_steps", n_steps, low=1)):
            u = self.control(state, time=t)
            state = np.asarray(step(state, u), dtype=np.float64)
            states.append(state)
            controls.append(u)
        return MPCRun(np.array(states), np.array(controls), self.history_)
