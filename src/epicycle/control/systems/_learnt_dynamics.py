"""Common parts of learnt dynamics: transitions from trajectories, noise, trajectories of the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from epicycle.control.simulators._rollout import Rollout, follow
from epicycle.control.systems._riccati import covariance_root
from epicycle.core._certificate import Certificate
from epicycle.core._checks import count
from epicycle.core._exceptions import DataError, NotFittedError
from epicycle.core._history import History
from epicycle.core._random import Seed, stream

Array = np.ndarray


class LearntDynamics(ABC):
    """Base of dynamics that are fitted to trajectories."""

    _docs: ClassVar[Mapping[str, str]] = {
        "derivatives_x": "x : array (n,)\n    State.",
        "derivatives_u": "u : array (m,)\n    Control.",
    }
    n_states_: int
    n_controls_: int
    n_transitions_: int
    noise_: Array
    history_: History
    certificate_: Certificate

    @abstractmethod
    def _learn(self, X: Array, U: Array, after: Array) -> None:
        """Fit to transitions."""

    @abstractmethod
    def _mean(self, X: Array, U: Array) -> Array:
        """Expected states after one step."""

    def fit(self, trajectories: Any, controls: Any = None) -> Self:
        """Learn from trajectories.

        Parameters
        ----------
        trajectories : Rollout, list of them, array (T + 1, n) or (rows, T + 1, n), or list of arrays (T + 1, n)
            Rollouts of a simulator, or states in the order of time.
        controls : array (T, m) or (rows, T, m), or list of arrays (T, m), optional
            Controls, with states.

        Returns
        -------
        self
        """
        self._learn(*self._transitions(trajectories, controls))
        return self

    def step(self, x: Any, u: Any, *, random_state: Seed = None, noise: bool = False) -> Array:
        """State after one step.

        Parameters
        ----------
        x : array (n,) or (rows, n)
            State, or several.
        u : array (m,) or (rows, m)
            Control.
        random_state : None, int, Generator or RandomState
            Seed of the noise.
        noise : bool, default=False
            Whether to add a draw of the noise to the mean.

        Returns
        -------
        array (n,) or (rows, n)
        """
        X, U = self._pair(x, u)
        out = self._mean(X, U)
        if noise:
            draws = stream(random_state, "noise").standard_normal(out.shape)
            out = out + draws @ covariance_root(self.noise_).T
        return np.asarray(out[0] if np.ndim(x) == 1 else out)

    def rollout(
        self, x: Any, controls: Any = None, *, policy: Any = None, n_steps: int | None = None, random_state: Any = False
    ) -> tuple[Array, Array]:
        """Trajectories of the model.

        Parameters
        ----------
        x : array (n,) or (rows, n)
            Starting states.
        controls : array (T, m) or (rows, T, m), optional
            Controls; a two-dimensional array serves all starting states.
        policy : object with a method control, or callable, optional
            Instead of controls.
        n_steps : int, optional
            Number of steps under a policy.
        random_state : False, None, int, Generator or RandomState, default=False
            Seed of the noise; False for none.

        Returns
        -------
        states, controls : arrays (rows, T + 1, n) and (rows, T, m), or without the first axis
        """
        X = np.atleast_2d(np.asarray(x, dtype=np.float64))
        if (controls is None) == (policy is None):
            raise DataError("rollout: expected either controls or a policy")
        if controls is not None:
            U = np.asarray(controls, dtype=np.float64)
            U = np.broadcast_to(U, (len(X), *U.shape[-2:]))
            steps = U.shape[1]
            times = iter(range(steps))
            policy = lambda _: U[:, next(times)]  # noqa: E731
        else:
            steps = count("n_steps", n_steps, low=0)
        rng = None if random_state is False else stream(random_state, "rollout")

        def step(now: Array, u: Array) -> Array:
            return self.step(now, u, noise=rng is not None, random_state=rng)

        states, applied = follow(step, policy, X, steps, self.n_controls_)
        return (states[0], applied[0]) if np.ndim(x) == 1 else (states, applied)

    def _pair(self, x: Any, u: Any) -> tuple[Array, Array]:
        if not hasattr(self, "n_states_"):
            raise NotFittedError(f"{type(self).__name__}: call fit first")
        X, U = (np.atleast_2d(np.asarray(M, dtype=np.float64)) for M in (x, u))
        if X.shape[-1] != self.n_states_ or U.shape[-1] != self.n_controls_:
            expected = f"({self.n_states_},) and ({self.n_controls_},)"
            raise DataError(f"x, u: got shapes {np.shape(x)} and {np.shape(u)}; expected {expected}, or rows of them")
        rows = max(len(X), len(U))
        return np.broadcast_to(X, (rows, X.shape[1])), np.broadcast_to(U, (rows, U.shape[1]))

    def _transitions(self, trajectories: Any, controls: Any) -> tuple[Array, Array, Array]:
        """Sizes are noted; states, controls and next states of all steps come back."""
        X, U, after = gather(trajectories, controls)
        for name, M in (("states", X), ("controls", U), ("states", after)):
            if not np.isfinite(M).all():
                raise DataError(f"{name}: expected finite numbers")
        self.n_transitions_, self.n_states_, self.n_controls_ = len(X), X.shape[1], U.shape[1]
        return X, U, after


def gather(trajectories: Any, controls: Any) -> tuple[Array, Array, Array]:
    """Transitions of rollouts, of arrays (T + 1, n) and (T, m) with or without a first axis of rows, or lists."""
    if controls is None:
        rollouts = trajectories if isinstance(trajectories, Sequence) else [trajectories]
        if not rollouts or not all(isinstance(r, Rollout) for r in rollouts):
            raise DataError("fit: expected rollouts of a simulator, or states and controls")
        parts = [r.transitions() for r in rollouts]
    elif isinstance(trajectories, list | tuple) and np.ndim(trajectories[0]) == 2:
        if len(trajectories) != len(controls):
            raise DataError(f"fit: got {len(trajectories)} trajectories and {len(controls)} sequences of controls")
        parts = [_one(x, u) for x, u in zip(trajectories, controls, strict=True)]
    else:
        X, U = np.asarray(trajectories, dtype=np.float64), np.asarray(controls, dtype=np.float64)
        if X.ndim not in (2, 3) or U.ndim != X.ndim:
            raise DataError(f"fit: got shapes {X.shape} and {U.shape}; expected (rows, T + 1, n) and (rows, T, m)")
        X, U = (X[None], U[None]) if X.ndim == 2 else (X, U)
        parts = [_one(x, u) for x, u in zip(X, U, strict=True)]
    before, u, after = (np.concatenate(part) for part in zip(*parts, strict=True))
    return before, u, after


def _one(x: Any, u: Any) -> tuple[Array, Array, Array]:
    X, U = np.asarray(x, dtype=np.float64), np.asarray(u, dtype=np.float64)
    if X.ndim != 2 or U.ndim != 2 or len(X) != len(U) + 1:
        raise DataError(
            f"fit: got a trajectory of shape {X.shape} with controls {U.shape}; expected (T + 1, n) and (T, m)"
        )
    return X[:-1], U, X[1:]
