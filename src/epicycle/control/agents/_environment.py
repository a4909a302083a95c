"""Decision processes as environments to act in, with Gymnasium's interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.control.mdp import _mdp_inputs as inputs
from epicycle.control.mdp._mdp import MDP
from epicycle.core._exceptions import DataError, ParameterTypeError
from epicycle.core._parameters import InstanceOf, Integer, NoneOr, check_parameter
from epicycle.core._random import seed_of, stream

Array = np.ndarray


@dataclass(frozen=True)
class DiscreteSpace:
    """The numbers 0 to n - 1, as Gymnasium's ``Discrete``."""

    n: int
    start: int = 0


class MDPEnvironment:
    """Decision process to act in, with Gymnasium's ``reset`` and ``step``.

    States and actions are given by their numbers. The reward of a step is the expected one of the state and action;
    where it leads to a terminal state with a value, that value is added, discounted as the process says.

    Parameters
    ----------
    mdp : MDP
        The process.
    start : label of a state, or array (S,) of probabilities, optional
        Where episodes begin; by default in each state that is not terminal with the same probability.
    max_steps : int, optional
        Length at which an episode is cut off (``truncated``).

    Attributes
    ----------
    observation_space, action_space : spaces with a number ``n``
        Numbers of states and actions.

    Examples
    --------
    >>> from epicycle.control import MDPEnvironment, worlds
    >>> env = MDPEnvironment(worlds.cliff_walk(), start=(3, 0))
    >>> state, info = env.reset(seed=0)
    >>> state, reward, terminated, truncated, info = env.step(0)
    >>> env.mdp.states[state], reward, terminated
    ((2, 0), -1.0, False)
    """

    def __init__(self, mdp: MDP, *, start: Any = None, max_steps: int | None = None) -> None:
        check_parameter("MDPEnvironment", "mdp", mdp, InstanceOf(MDP))
        check_parameter("MDPEnvironment", "max_steps", max_steps, NoneOr(Integer(minimum=1)))
        self.mdp, self.start, self.max_steps = mdp, start, max_steps
        self.observation_space, self.action_space = DiscreteSpace(mdp.n_states), DiscreteSpace(mdp.n_actions)
        self._first = np.cumsum(self._start_probabilities())
        P, rest = mdp.transitions_, mdp.discount * mdp.terminal_values_
        self._indptr, self._next = P.indptr.tolist(), P.indices
        # Each row ends with its own sum: what is missing to one is the probability that the process ends there.
        self._sums = [np.cumsum(P.data[a:b]) for a, b in zip(P.indptr[:-1], P.indptr[1:], strict=True)]
        self._ends_after = mdp._stops()
        self._gain = rest
        self._pair = np.full((mdp.n_states, mdp.n_actions), -1, dtype=np.int64)
        self._pair[mdp._pair_state(), mdp.pair_action_] = np.arange(mdp.n_pairs)
        self._masks = (self._pair >= 0).astype(np.int8)
        self._terminal = mdp.is_terminal
        self._rng = stream(None, "environment")
        self._state, self._steps = -1, 0

    def _start_probabilities(self) -> Array:
        mdp = self.mdp
        acts = ~mdp.is_terminal
        if not acts.any():
            raise DataError("mdp: every state is terminal; there is nothing to act in")
        if self.start is None:
            return np.asarray(acts / acts.sum())
        if isinstance(self.start, np.ndarray | list) and len(self.start) == mdp.n_states:
            p = np.asarray(self.start, dtype=np.float64)
            if not (np.isfinite(p).all() and (p >= 0).all() and abs(p.sum() - 1) <= inputs.SUM_TOLERANCE):
                raise DataError(f"start: probabilities add up to {p.sum():.9g}; expected 1, and none below 0")
        else:
            p = inputs.state_mask("start", [self.start], mdp.n_states, mdp.states).astype(float)
        if (p[~acts] > 0).any():
            bad = inputs.shown(mdp.states, int(np.flatnonzero((p > 0) & ~acts)[0]))
            raise DataError(f"start: state {bad} is terminal; expected states in which something can be done")
        return np.asarray(p / p.sum())

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode.

        Parameters
        ----------
        seed : int, optional
            Seed of all that follows; None goes on with the numbers of before.
        options : object, optional
            Not used; Gymnasium's interface has it.

        Returns
        -------
        state : int
        info : dict
            ``action_mask`` marks the actions that are available.
        """
        if seed is not None:
            self._rng = stream(seed_of(seed), "environment")
        self._state = min(int(np.searchsorted(self._first, self._rng.random(), side="right")), self.mdp.n_states - 1)
        self._steps = 0
        return self._state, {"action_mask": self._masks[self._state]}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action.

        Parameters
        ----------
        action : int
            Number of the action.

        Returns
        -------
        state : int
        reward : float
        terminated, truncated : bool
        info : dict
            ``action_mask`` marks the actions that are available.
        """
        if self._state < 0:
            raise DataError("step: the episode is over, or none has begun; call reset first")
        known = 0 <= action < self.mdp.n_actions
        k = int(self._pair[self._state, action]) if known else -1
        if k < 0:
            here = inputs.shown(self.mdp.states, self._state)
            raise DataError(f"step: action {action!r} is not available in state {here}")
        reward = float(self.mdp.rewards_[k])
        sums, u = self._sums[k], self._rng.random()
        self._steps += 1
        place = int(np.searchsorted(sums, u, side="right"))
        if place == len(sums) and not self._ends_after[k]:
            place -= 1  # rounding of the sum
        if place == len(sums):
            state, terminated = self._state, True
        else:
            state = int(self._next[self._indptr[k] + place])
            terminated = bool(self._terminal[state])
            reward += float(self._gain[state])
        truncated = not terminated and self.max_steps is not None and self._steps >= self.max_steps
        self._state = -1 if terminated or truncated else state
        return state, reward, terminated, truncated, {"action_mask": self._masks[state]}


def as_environment(env: Any) -> Any:
    """An environment with discrete states and actions; a process becomes one."""
    if isinstance(env, MDP):
        return MDPEnvironment(env)
    for name in ("reset", "step", "observation_space", "action_space"):
        if not hasattr(env, name):
            raise ParameterTypeError(
                f"env={env!r:.80}: expected an MDP or a Gymnasium environment, with reset, step, observation_space "
                f"and action_space; it has no {name}"
            )
    for name in ("observation_space", "action_space"):
        if not isinstance(getattr(getattr(env, name), "n", None), int | np.integer):
            raise DataError(
                f"env.{name}={getattr(env, name)!r:.80}: expected a discrete space; for continuous states see "
                "discretize and FittedQIteration"
            )
    return env


def reference_process(env: Any, discount: float) -> MDP | None:
    """The process behind an environment with the discount of the learner, where it is known."""
    inner = getattr(env, "unwrapped", env)
    if isinstance(inner, MDPEnvironment):
        mdp = inner.mdp
    elif getattr(inner, "P", None) is not None:
        mdp = MDP.from_gymnasium(inner, discount)
        if mdp.n_states != int(env.observation_space.n) or mdp.states.tolist() != list(range(mdp.n_states)):
            return None
    else:
        return None
    rewards = mdp.rewards_ + mdp.discount * (mdp.transitions_ @ mdp.terminal_values_)
    other = MDP.__new__(MDP)
    other._set(
        mdp.transitions_,
        rewards,
        mdp.pair_start_,
        mdp.pair_action_,
        np.zeros(mdp.n_states),
        discount,
        None,
        np.arange(mdp.n_states),
        np.arange(mdp.n_actions),
    )
    return other
