"""Environments with numbered states and actions, as the kernels take them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle._native import rl as native
from epicycle.control import MDPEnvironment
from epicycle.core._exceptions import DataError
from epicycle.rl._interaction import Interaction

Array = np.ndarray


@dataclass
class TableWorld:
    """An environment for the kernels, and how it is spoken to.

    `kernel` draws the steps of a decision process itself, without Python (`by_table`), or calls the environment.
    """

    kernel: Any
    interaction: Interaction
    by_table: bool


def table_world(world: Interaction, allowed: Array) -> TableWorld:
    """Compile what is known as a table, or wrap another environment; `allowed` (S, A) takes which actions there are."""
    env = world.env
    if type(env) is MDPEnvironment:  # not of a subclass, whose methods may do something else
        allowed[:] = env._masks
        allowed[env.mdp.is_terminal] = 1  # nothing is chosen there
        return TableWorld(compiled(env), world, True)

    table = toy_text(env)
    if table is not None:
        return TableWorld(table, world, True)

    def mark(state: int, mask: Array) -> None:
        if mask.shape != (allowed.shape[1],):
            raise DataError(f"env: an action_mask has shape {mask.shape}; expected ({allowed.shape[1]},)")
        if not mask.any():
            raise DataError(f"env: no action is available in state {state}; expected one, or the end")
        allowed[state] = mask

    world.on_mask = mark
    return TableWorld(native.PythonWorld(world.reset, world.step, *allowed.shape), world, False)


def compiled(env: MDPEnvironment) -> Any:
    """The table of a decision process: for every state and action what can follow, with rewards."""
    mdp = env.mdp
    P, ends_after = mdp.transitions_, np.asarray(mdp._stops())
    key = mdp._pair_state() * mdp.n_actions + mdp.pair_action_
    length = np.diff(P.indptr).astype(np.int64)
    sizes = np.zeros(mdp.n_states * mdp.n_actions, dtype=np.int64)
    sizes[key] = length + ends_after
    row = np.concatenate([[0], np.cumsum(sizes)])
    begin, total = row[key], int(row[-1])
    place = np.repeat(begin - P.indptr[:-1], length) + np.arange(len(P.indices))
    pair = np.repeat(np.arange(mdp.n_pairs), length)
    after, p, reward = np.zeros(total, dtype=np.int64), np.zeros(total), np.zeros(total)
    ends = np.ones(total, dtype=bool)  # the entries that are not filled are those of an end
    after[place], p[place] = P.indices, P.data
    reward[place] = mdp.rewards_[pair] + env._gain[P.indices]
    ends[place] = mdp.is_terminal[P.indices]
    last = begin[ends_after] + length[ends_after]
    p[last] = np.maximum(1 - np.asarray(P.sum(axis=1)).ravel()[ends_after], 0)
    reward[last] = mdp.rewards_[ends_after]
    after[last] = mdp._pair_state()[ends_after]
    steps = 0 if env.max_steps is None else env.max_steps
    return native.TableWorld(mdp.n_states, mdp.n_actions, row, after, p, reward, ends, env._first, steps)


def toy_text(env: Any) -> Any:
    """The table of a frozen lake or a cliff walk as Gymnasium makes them; None for all other environments.

    The outcomes are those of its ``P``, drawn with its probabilities, and episodes are cut off by its time limit. An
    environment of a subclass, in other wrappers, or one that draws itself may do something else, and is stepped.
    """
    if "gymnasium" not in sys.modules:
        return None
    from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
    from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
    from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

    steps = 0
    while type(env) in (OrderEnforcing, PassiveEnvChecker, TimeLimit):
        if type(env) is TimeLimit:
            steps = min(steps or env._max_episode_steps, env._max_episode_steps)
        env = env.env
    if type(env) not in (CliffWalkingEnv, FrozenLakeEnv) or env.render_mode is not None or "step" in vars(env):
        return None
    n, m = int(env.observation_space.n), int(env.action_space.n)
    outcomes = [env.P[state][action] for state in range(n) for action in range(m)]
    row = np.concatenate([[0], np.cumsum([len(found) for found in outcomes])]).astype(np.int64)
    p, after, reward, ends = (
        np.array(column) for column in zip(*(o for found in outcomes for o in found), strict=True)
    )
    first = np.cumsum(env.initial_state_distrib, dtype=np.float64)
    columns = after.astype(np.int64), p.astype(np.float64), reward.astype(np.float64), ends.astype(bool)
    return native.TableWorld(n, m, row, *columns, first, steps)
