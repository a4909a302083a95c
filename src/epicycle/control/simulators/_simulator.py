"""`Simulator`: what the simulated systems share: steps, derivatives, trajectories, starts and ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epicycle._native import control as native
from epicycle.control.simulators._rollout import Rollout, follow
from epicycle.core._checks import count
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import SHARED_PARAMETERS, Choice, Real, check_parameter
from epicycle.core._random import Seed, stream
from epicycle.core._saved import attributes_of
from epicycle.core._threads import n_threads

if TYPE_CHECKING:
    from epicycle.control.simulators._environment import Environment

Array = np.ndarray
INTEGRATORS = ("euler", "semi-implicit", "rk4")
#: The order in which the kernels count the systems.
SYSTEMS = ("CartPole", "InvertedPendulum", "MountainCar", "Quadrotor2D", "Bicycle")
_OPERATIONS = 100.0  # of a step, about: the work by which threads are counted
POSITIVE = Real(0, inclusive=False)
NOT_NEGATIVE = Real(0)
#: Entries of docstrings that simulators share.
SIMULATOR_DOCS = {
    "time_step": "time_step : float, default={default}\n    Seconds of a step; the control is constant during it.",
    "integrator": "integrator : {'euler', 'semi-implicit', 'rk4'}, default={default}\n"
    "    Euler's step; the same with speeds before positions; or the classical method of Runge and Kutta, order 4.",
    "gravity": "gravity : float, default={default}\n    Acceleration of gravity.",
    "x": "x : array (n,) or (rows, n)\n    State, or several.",
    "u": "u : array (m,) or (rows, m)\n    Control.",
    "max_steps": "max_steps : int, optional\n"
    "    Steps after which an episode is cut; by default `max_steps` of the class.",
    **{f"{method}_returns": "array (n,) or (rows, n)" for method in ("dynamics", "step", "reset")},
}


@documented({})
class Simulator(ABC):
    """Base of the simulated systems; a subclass gives its parameters, limits, start and reward."""

    #: Names of the entries of the state and of the control.
    state_names: ClassVar[tuple[str, ...]]
    control_names: ClassVar[tuple[str, ...]]
    #: Controls among which learners of discrete actions choose, one row each; None for continuous actions.
    actions: Array | None = None
    #: Steps after which an episode of the environment is cut.
    max_steps: ClassVar[int] = 500
    _docs: ClassVar[Mapping[str, str]] = SIMULATOR_DOCS
    _domains: ClassVar[Mapping[str, Real]]

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Check and keep the arguments of a subclass, as its ``locals()`` have them."""
        owner = type(self).__name__
        check_parameter(owner, "time_step", given["time_step"], POSITIVE)
        check_parameter(owner, "integrator", given["integrator"], Choice(*INTEGRATORS))
        for name, domain in self._domains.items():
            check_parameter(owner, name, given[name], domain)
            setattr(self, name, float(given[name]))
        self.time_step, self.integrator = float(given["time_step"]), str(given["integrator"])
        self._number = SYSTEMS.index(next(c.__name__ for c in type(self).__mro__ if c.__name__ in SYSTEMS))
        self.control_low, self.control_high = self._control_limits()
        self.state_low, self.state_high = self._state_limits()

    def __epi_state__(self) -> dict[str, Any]:
        return attributes_of(self, (*self._domains, "time_step", "integrator"))

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # an object that was only allocated

    def __repr__(self) -> str:
        return f"{type(self).__name__}(time_step={self.time_step:g}, integrator={self.integrator!r})"

    @property
    def n_states(self) -> int:
        """Number of entries of the state."""
        return len(self.state_names)

    @property
    def n_controls(self) -> int:
        """Number of entries of the control."""
        return len(self.control_names)

    # ------------------------------------------------------------------------------- what a subclass gives

    @abstractmethod
    def _kernel_parameters(self) -> Array:
        """Constants of the equations, as the kernel takes them."""

    @abstractmethod
    def _control_limits(self) -> tuple[Array, Array]:
        """Least and largest controls."""

    def _state_limits(self) -> tuple[Array, Array]:
        return np.full(self.n_states, -np.inf), np.full(self.n_states, np.inf)

    @abstractmethod
    def _start(self, rng: np.random.Generator, rows: int) -> Array:
        """Random states at the start."""

    @abstractmethod
    def _rewards(self, x: Array, u: Array, x_next: Array) -> Array:
        """Reward of each transition."""

    # ------------------------------------------------------------------------------- motion

    def dynamics(self, x: Any, u: Any) -> Array:
        """Derivative of the state by time.

        Parameters
        ----------
        u : array (m,) or (rows, m)
            Control, not cut to its limits.
        """
        X, U, one = self._pairs(x, u)
        out = native.motion(self._number, self._kernel_parameters(), X, U)
        return out[0] if one else out

    def step(self, x: Any, u: Any) -> Array:
        """State after one step.

        Parameters
        ----------
        u : array (m,) or (rows, m)
            Control; what exceeds its limits is cut.
        """
        X, U, one = self._pairs(x, u)
        last = self._run(X, 1, given=U[:, None, :], store=False, n_jobs=1)[-2]
        return last[0] if one else last

    def step_unchecked(self, X: Array, U: Array) -> Array:
        """`step` of arrays (rows, n) and (rows, m) as they are; a state that runs away becomes NaN.

        Parameters
        ----------
        X : array (rows, n)
            States, contiguous.
        U : array (rows, m)
            Controls.

        Returns
        -------
        array (rows, n)
        """
        return self._run(np.ascontiguousarray(X), 1, given=U[:, None, :], store=False, n_jobs=1, check=False)[-2]

    def derivatives(self, x: Any, u: Any, *, second: bool = False) -> tuple[Array, ...]:
        """One step, not cut to limits, with its exact derivatives by state and control.

        Parameters
        ----------
        second : bool, default=False
            Whether to compute second derivatives.

        Returns
        -------
        value, A, B : arrays (n,), (n, n), (n, m), or with a first axis of rows
            The step and its derivatives by state and control.
        H : array (n, n + m, n + m), if asked for
            Second derivatives of every entry of the step by state and control together.
        """
        X, U, one = self._pairs(x, u)
        clock = self.time_step, INTEGRATORS.index(self.integrator)
        value, J, H = native.expand(self._number, self._kernel_parameters(), *clock, X, U, second)
        out = (value, J[:, :, : self.n_states], J[:, :, self.n_states :], *((H,) if second else ()))
        return tuple(part[0] for part in out) if one else out

    # ------------------------------------------------------------------------------- trajectories

    def rollout(
        self,
        x: Any,
        controls: Any = None,
        *,
        policy: Any = None,
        n_steps: int | None = None,
        stop: bool = True,
        n_jobs: int | None = None,
    ) -> Rollout:
        """Trajectories under given controls or a policy, many at once.

        Parameters
        ----------
        x : array (n,) or (rows, n)
            Starting states.
        controls : array (T, m) or (rows, T, m), optional
            Controls; a two-dimensional array serves all starting states.
        policy : object with gain and offset, object with a method control, or callable, optional
            Instead of controls: linear feedback :math:`u = -K x - k`, as an ``LQRSolution`` has it (native and in
            threads); an object with ``control(X, time=t)``, or a function of all states ``policy(X)``.
        n_steps : int, optional
            Number of steps under a policy; by default the length of an episode.
        stop : bool, default=True
            Whether trajectories end where they leave `state_low` and `state_high`.
        n_jobs : int, optional
            Number of threads; by default as many as the work is worth. The bits are the same.
        """
        start = self._states(x)
        one, X = start.ndim == 1, np.atleast_2d(start)
        check_parameter(type(self).__name__, "n_jobs", n_jobs, SHARED_PARAMETERS["n_jobs"])
        if (controls is None) == (policy is None):
            raise DataError("rollout: expected either controls or a policy")
        steps = self.max_steps if n_steps is None else count("n_steps", n_steps, low=0)
        if controls is not None:
            U = self._given_controls(controls, len(X), n_steps)
            states, applied, rewards, _, lengths = self._run(X, U.shape[1], given=U, stop=stop, n_jobs=n_jobs)
        elif hasattr(policy, "gain") and hasattr(policy, "offset"):
            K, k = self._feedback(policy, steps)
            states, applied, rewards, _, lengths = self._run(X, steps, gain=K, offset=k, stop=stop, n_jobs=n_jobs)
        else:
            states, applied, lengths = self._follow(policy, X, steps, stop)
            moving = np.arange(steps) < lengths[:, None]
            rewards = np.where(moving, self._rewards(states[:, :-1], applied, states[:, 1:]), 0.0)
        if one:
            return Rollout(states[0], applied[0], rewards[0], int(lengths[0]))
        return Rollout(states, applied, rewards, lengths)

    def _run(
        self,
        X: Array,
        steps: int,
        *,
        given: Array | None = None,
        gain: Array | None = None,
        offset: Array | None = None,
        stop: bool = False,
        store: bool = True,
        check: bool = True,
        n_jobs: int | None = None,
    ) -> tuple[Array, ...]:
        # NumPy asks for large pages, which a kernel that writes each entry once is glad of.
        shapes = (steps + 1, self.n_states), (steps, self.n_controls), (steps,)
        states, controls, rewards = (np.empty((len(X), *shape)) if store else None for shape in shapes)
        last, lengths = native.rollout(
            self._number,
            self._kernel_parameters(),
            self.time_step,
            INTEGRATORS.index(self.integrator),
            X,
            steps,
            native.Controls(given=given, gain=gain, offset=offset, lowest=self.control_low, highest=self.control_high),
            native.Box(self.state_low if stop else None, self.state_high if stop else None),
            native.Trajectories(states, controls, rewards),
            n_threads(_OPERATIONS * steps * len(X), n_jobs),
        )
        if check and not np.isfinite(last).all():
            row = int(np.flatnonzero(~np.isfinite(last).all(axis=1))[0])
            raise DataError(
                f"{type(self).__name__}: the state of row {row} ran away (an angle above 1.6e6, or no number any more)"
            )
        return *(part for part in (states, controls, rewards) if part is not None), last, lengths

    def _follow(self, policy: Any, X: Array, steps: int, stop: bool) -> tuple[Array, Array, Array]:
        lengths = np.full(len(X), steps)
        times = iter(range(steps))

        def step(now: Array, u: Array) -> Array:
            t = next(times)
            ended = self.ended(now) if stop else np.zeros(len(X), dtype=bool)
            lengths[ended & (lengths == steps)] = t
            return np.where(ended[:, None], now, self.step(now, u))

        limits = self.control_low, self.control_high
        return *follow(step, policy, X, steps, self.n_controls, limits), lengths

    def _given_controls(self, controls: Any, rows: int, n_steps: int | None) -> Array:
        U = np.ascontiguousarray(controls, dtype=np.float64)
        if U.ndim == 2:
            U = U[None]
        if U.ndim != 3 or U.shape[0] not in (1, rows) or U.shape[2] != self.n_controls or not np.isfinite(U).all():
            raise DataError(
                f"controls: got shape {np.shape(controls)}; expected finite numbers (T, {self.n_controls}) or "
                f"({rows}, T, {self.n_controls})"
            )
        if n_steps not in (None, U.shape[1]):
            raise DataError(f"n_steps={n_steps} with controls of {U.shape[1]} steps; expected the same number, or None")
        return U

    def _feedback(self, policy: Any, steps: int) -> tuple[Array, Array]:
        K, k = np.asarray(policy.gain, dtype=np.float64), np.asarray(policy.offset, dtype=np.float64)
        K, k = (K[None], k[None]) if K.ndim == 2 else (K[:steps], k[:steps])
        if K.shape[1:] != (self.n_controls, self.n_states) or len(K) not in (1, steps):
            expected = (self.n_controls, self.n_states)
            raise DataError(f"policy: its gain has shape {K.shape}; expected {expected}, or {steps} such matrices")
        return np.ascontiguousarray(K), np.ascontiguousarray(-k.reshape(len(K), self.n_controls))

    # ------------------------------------------------------------------------------- episodes

    def reset(self, rows: int | None = None, *, random_state: Seed = None) -> Array:
        """Draw starting states.

        Parameters
        ----------
        rows : int, optional
            Number of states; by default one.
        random_state : None, int, Generator or RandomState
            Seed.
        """
        check_parameter(type(self).__name__, "random_state", random_state, SHARED_PARAMETERS["random_state"])
        X = self._start(stream(random_state, "reset"), 1 if rows is None else count("rows", rows, low=0))
        return np.asarray(X[0] if rows is None else X)

    def reward(self, x: Any, u: Any, x_next: Any) -> Any:
        """Reward of a step.

        Parameters
        ----------
        x : array (n,) or (rows, n)
            State before the step.
        x_next : array (n,) or (rows, n)
            State after it.

        Returns
        -------
        float or array (rows,)
        """
        X, U, one = self._pairs(x, u)
        out = self._rewards(X, U, np.atleast_2d(self._states(x_next)))
        return float(out[0]) if one else out

    def ended(self, x: Any) -> Any:
        """Whether a state lies outside of `state_low` and `state_high`, where an episode ends.

        Returns
        -------
        bool or array (rows,)
        """
        X = self._states(x)
        out = ((self.state_low > X) | (self.state_high < X)).any(axis=-1)
        return bool(out) if X.ndim == 1 else out

    def environment(self, *, max_steps: int | None = None) -> Environment:
        """Environment with the methods of Gymnasium, ``reset`` and ``step``, which does not need that package."""
        from epicycle.control.simulators._environment import Environment

        return Environment(self, max_steps=max_steps)

    def to_gymnasium(self, *, max_steps: int | None = None) -> Any:
        """Environment of Gymnasium (the extra ``rl``), with its spaces, for learners that check the class.

        Returns
        -------
        gymnasium.Env
        """
        from epicycle.control.simulators._environment import gymnasium_environment

        return gymnasium_environment(self, max_steps=max_steps)

    # ------------------------------------------------------------------------------- checks

    def _states(self, x: Any) -> Array:
        return _rows(f"{type(self).__name__}: x", x, self.n_states)

    def _pairs(self, x: Any, u: Any) -> tuple[Array, Array, bool]:
        X, U = self._states(x), _rows(f"{type(self).__name__}: u", u, self.n_controls)
        one = X.ndim == 1 and U.ndim == 1
        X, U = np.atleast_2d(X), np.atleast_2d(U)
        if len(X) != len(U) and 1 not in (len(X), len(U)):
            raise DataError(f"x has {len(X)} rows and u has {len(U)}; expected the same number, or one")
        rows = max(len(X), len(U)) if min(len(X), len(U)) else 0
        X, U = (np.ascontiguousarray(np.broadcast_to(M, (rows, M.shape[1]))) for M in (X, U))
        return X, U, one


def _rows(name: str, given: Any, width: int) -> Array:
    """Finite numbers of shape (width,) or (rows, width)."""
    try:
        M = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name}: expected numbers of shape ({width},) or (rows, {width})") from None
    M = M.reshape(1) if M.size == 1 and M.ndim == 1 and np.ndim(given) == 0 else M
    if M.ndim not in (1, 2) or M.shape[-1] != width or not np.isfinite(M).all():
        raise DataError(f"{name}: got shape {np.shape(given)}; expected finite numbers ({width},) or (rows, {width})")
    return M
