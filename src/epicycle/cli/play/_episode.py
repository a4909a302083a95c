"""One recorded episode: what happened in it, and the pictures that the environment drew, as a GIF."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from epicycle.core._exceptions import EpicycleError
from epicycle.core._random import stream
from epicycle.rl._interaction import Interaction
from epicycle.rl._video import Frames, animation

Array = np.ndarray
_STEPS, _FRAMES = 1000, 150  # of an episode, and pictures of it
_WIDTH, _BYTES = 240, 1_200_000  # of a GIF
_COMPONENTS = 6  # of a state that are drawn


class RandomAgent:
    """Takes any of the actions that are available."""

    def __init__(self, world: Interaction, seed: int) -> None:
        self._rng, self._masks = stream(seed, "random agent"), dict[int, Array]()
        world.on_mask = self._masks.__setitem__
        self._n = world.n_actions
        if self._n is None:
            space = getattr(world.env, "action_space", None)
            box = getattr(world.env, "simulator", None) if space is None else space
            names = ("control_low", "control_high") if space is None else ("low", "high")
            ends = [np.asarray(getattr(box, name), dtype=np.float64) for name in names]
            self._low, self._high = (np.nan_to_num(x, posinf=1.0, neginf=-1.0) for x in ends)

    def act(self, observation: Any, deterministic: bool = True) -> Any:
        """An action."""
        if self._n is None:
            return self._rng.uniform(self._low, self._high)
        mask = self._masks.get(observation) if isinstance(observation, int) else None
        return int(self._rng.choice(self._n if mask is None else np.flatnonzero(mask)))


def recorded_episode(agent: Any, env: Any, seed: int) -> dict[str, Any]:
    """An episode of the best actions, as a record of a report."""
    world = Interaction(env, seed)
    observation, frames = world.reset(), Frames(env, _FRAMES)
    rewards: list[float] = []
    states: list[Any] = [observation]
    frames.take()
    end = "stopped"
    while end == "stopped" and len(rewards) < _STEPS:
        observation, reward, terminated, cut = world.step(agent.act(observation))
        rewards.append(reward)
        states.append(observation)
        frames.take()
        end = "ended" if terminated else "cut off" if cut else "stopped"
    numbered = world.discrete
    vectors = None if numbered or np.ndim(states[0]) != 1 else np.array(states)
    return {
        "return": float(np.sum(rewards)),
        "length": len(rewards),
        "end": end,
        "rewards": rewards,
        "path": [int(s) for s in states] if numbered else None,
        "states": None if vectors is None else vectors[:, :_COMPONENTS].T.tolist(),
        **_pictures(frames),
    }


def _pictures(frames: Frames) -> dict[str, Any]:
    """The pictures in a record, as an animation that is small enough for a page."""
    image = None
    if frames.kept:
        made = animation(frames.kept, frames.milliseconds(), width=_WIDTH, largest=_BYTES)
        image = f"data:image/gif;base64,{base64.b64encode(made).decode()}"
    return {"image": image, "frames": len(frames.kept), "note": frames.note}


def small_world(agent: Any, env: Any, most: int = 2500) -> dict[str, Any] | None:
    """Policy and values of numbered states, with the best values where the process is known."""
    from epicycle.control import MDPEnvironment, policy_iteration
    from epicycle.rl.tabular._table_certificate import known_process

    world = Interaction(env, 0)
    n = world.n_states
    if n is None or n > most or world.n_actions is None:
        return None
    inner = getattr(env, "unwrapped", env)
    truth = known_process(env, float(getattr(agent, "discount", 1.0)))
    ends = np.zeros(n, dtype=bool) if truth is None else np.asarray(truth.is_terminal)
    try:
        best = None if truth is None else policy_iteration(truth).values
    except EpicycleError:  # without a discount there may be none
        best = None
    cells, names = None, [str(a) for a in range(world.n_actions)]
    if isinstance(inner, MDPEnvironment):
        labels, names = inner.mdp.states.tolist(), [str(a) for a in np.asarray(inner.mdp.actions).tolist()]
        if all(isinstance(s, tuple) and len(s) == 2 for s in labels):
            cells = [list(s) for s in labels]
        states = [f"{s[0]},{s[1]}" if isinstance(s, tuple) else str(s) for s in labels]
    else:
        states = [str(s) for s in range(n)]
        wide = _columns(inner, n)
        if wide is not None and truth is not None:
            cells = [list(divmod(s, wide)) for s in range(n)]
            names = _directions(truth, wide, world.n_actions)
    values, visits = getattr(agent, "values_", None), getattr(agent, "visits_", None)
    tried = np.ones(n, dtype=bool) if visits is None else visits.sum(axis=1) > 0
    rows = [
        {
            "state": states[s],
            "action": None if ends[s] or not tried[s] else names[int(agent.act(s))],
            "value": None if values is None or ends[s] or not tried[s] else float(values[s]),
            "best": None if best is None else float(best[s]),
            "visits": None if visits is None else int(visits[s].sum()),
            "terminal": bool(ends[s]),
        }
        for s in range(n)
    ]
    return {"policy": rows, "cells": cells}


def _columns(env: Any, n: int) -> int | None:
    """Columns of a world of Gymnasium that is a grid, from its map or its shape."""
    shape = getattr(env, "shape", None)
    drawn = np.shape(getattr(env, "desc", ())) if shape is None else tuple(shape)
    return int(drawn[1]) if len(drawn) == 2 and drawn[0] * drawn[1] == n else None


def _directions(truth: Any, wide: int, n_actions: int) -> list[str]:
    """N, E, S, W for actions that lead there on the whole, otherwise their numbers."""
    names = []
    state, action = truth._pair_state(), truth.pair_action_
    start, P = np.stack(np.divmod(state, wide), axis=1), truth.transitions_
    cells = np.stack(np.divmod(np.arange(truth.n_states), wide), axis=1)
    moved = P @ cells - np.asarray(P.sum(axis=1)).reshape(-1, 1) * start
    for a in range(n_actions):
        down, right = np.clip(moved[action == a], -1, 1).mean(axis=0)  # a fall from a few cells counts as a step
        near, far = sorted((abs(down), abs(right)))
        if far < 0.05 or near > 0.75 * far:
            names.append(str(a))
        elif abs(down) > abs(right):
            names.append("S" if down > 0 else "N")
        else:
            names.append("E" if right > 0 else "W")
    return names
