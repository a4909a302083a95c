"""Spaces of observations and actions of an environment, in the form that networks take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.rl._interaction import Interaction

Array = np.ndarray


@dataclass(frozen=True)
class Spaces:
    """Sizes of observations and actions.

    Observations become rows of float32: a state's number a row with a single one, an array of three axes an image
    with its channels first (as uint8 where the environment has them so), all other arrays a row of their entries.
    Actions are numbers from 0, or arrays that are scaled so that [-1, 1] are the bounds where there are any.
    """

    kind: str  # "states", "numbers" or "image"
    given: tuple[int, ...]  # the shape in which the environment returns an observation
    dtype: str  # "float32" or "uint8"
    n_actions: int | None
    low: Array
    high: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an observation as a network is given it."""
        if self.kind == "image":
            h, w, c = self.given
            return (c, h, w) if self.channels_last else self.given
        return (int(np.prod(self.given)),)

    @property
    def channels_last(self) -> bool:
        """Whether the last axis of an image, which is the shorter one, holds its channels."""
        return self.kind == "image" and self.given[2] <= self.given[0]

    @property
    def discrete(self) -> bool:
        """Whether actions are numbers."""
        return self.n_actions is not None

    @property
    def n_controls(self) -> int:
        """Entries of a continuous action."""
        return len(self.low)

    @property
    def n_outputs(self) -> int:
        """Outputs of a network for actions: one for each of them, or for each entry."""
        return self.n_controls if self.n_actions is None else self.n_actions

    def encode(self, observation: Any) -> Array:
        """An observation as a network is given it."""
        if self.kind == "states":
            row = np.zeros(self.given, dtype=np.float32)
            row[int(observation)] = 1.0
            return row
        x = np.asarray(observation, dtype=self.dtype)
        if self.kind == "image":
            return np.asarray(np.moveaxis(x, -1, 0)) if self.channels_last else x
        return np.asarray(x.ravel())

    def checked(self, observation: Any) -> Array:
        """`encode` of an observation that nobody has looked at."""
        x = np.asarray(observation)
        if self.kind == "states":
            if x.ndim != 0 or not 0 <= int(x) < self.given[0] or int(x) != x:
                raise DataError(f"observation={observation!r:.60}; expected an integer from 0 to {self.given[0] - 1}")
        elif x.shape != self.given or not np.isfinite(np.asarray(x, dtype=np.float64)).all():
            raise DataError(f"observation: got shape {x.shape}; expected finite numbers of shape {self.given}")
        return self.encode(x)

    def action(self, scaled: Array) -> Array:
        """A continuous action in the units of the environment."""
        return np.asarray(np.clip(self.centre + self.radius * scaled, self.low, self.high))

    def __post_init__(self) -> None:
        finite = np.isfinite(self.low) & np.isfinite(self.high)
        with np.errstate(invalid="ignore"):
            centre = np.where(finite, (self.low + self.high) / 2, 0.0)
            radius = np.where(finite, (self.high - self.low) / 2, 1.0)
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "radius", radius)

    centre = radius = np.zeros(0)

    def state(self) -> dict[str, Any]:
        """The content of a file."""
        return {
            "kind": self.kind,
            "given": list(self.given),
            "dtype": self.dtype,
            "n_actions": self.n_actions or 0,
            "low": self.low,
            "high": self.high,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Spaces:
        """From the content of a file."""
        given, n = tuple(int(k) for k in state["given"]), int(state["n_actions"])
        bounds = (np.asarray(state[name], dtype=np.float64) for name in ("low", "high"))
        return cls(str(state["kind"]), given, str(state["dtype"]), n or None, *bounds)

    def same(self, other: Spaces) -> bool:
        """Whether a network for these spaces serves the others too."""
        facts = [(s.kind, s.given, s.dtype, s.n_actions, s.low.tolist(), s.high.tolist()) for s in (self, other)]
        return facts[0] == facts[1]

    def __str__(self) -> str:
        seen = f"{self.given[0]} states" if self.kind == "states" else f"observations of shape {self.given}"
        done = (
            f"{self.n_actions} actions" if self.discrete else f"actions in {self.low.tolist()} to {self.high.tolist()}"
        )
        return f"{seen} and {done}"


def spaces_of(env: Any, observation: Any, n_states: int | None, n_actions: int | None) -> Spaces:
    """The spaces of an environment, with an observation of it."""
    space = getattr(env, "single_observation_space", None) or getattr(env, "observation_space", None)
    given = (n_states,) if n_states is not None else np.shape(observation)
    kind = "states" if n_states is not None else "image" if len(given) == 3 else "numbers"
    pixels = kind == "image" and getattr(space, "dtype", None) == np.uint8
    none = np.zeros(0)
    dtype = "uint8" if pixels else "float32"
    if n_actions is not None:
        return Spaces(kind, given, dtype, n_actions, none, none)
    low, high = _bounds(env)
    return Spaces(kind, given, dtype, None, low, high)


def _bounds(env: Any) -> tuple[Array, Array]:
    """Least and largest actions, infinite where there are no bounds."""
    simulator = getattr(env, "simulator", None)
    space = getattr(env, "single_action_space", None) or getattr(env, "action_space", None)
    if simulator is not None and not hasattr(space, "low"):
        low, high = simulator.control_low, simulator.control_high
    elif space is not None and len(getattr(space, "shape", None) or ()) == 1:
        low, high = getattr(space, "low", -np.inf), getattr(space, "high", np.inf)
        low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64), space.shape) for side in (low, high))
    else:
        raise DataError(
            f"env.action_space={space!r:.80}: expected a discrete space, or a box of one dimension (gymnasium.wrappers "
            "have FlattenAction and the like for others)"
        )
    return np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)


def probe(world: Interaction) -> Spaces:
    """The spaces of an environment, which is begun anew for it."""
    first = Interaction(world.env, world.seed).reset()
    return spaces_of(world.env, first, world.n_states, world.n_actions)
