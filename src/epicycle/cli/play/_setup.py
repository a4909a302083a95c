"""Environments and agents of ``epicycle play`` by their names."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from epicycle import rl
from epicycle.control import MDP, CartPole, InvertedPendulum, MDPEnvironment, MountainCar, read_mdp, worlds
from epicycle.core._exceptions import ParameterError
from epicycle.rl._interaction import Interaction
from epicycle.search.games._board_games import NATIVE_GAMES

AGENTS = (
    *("QLearning", "DoubleQLearning", "SARSA", "ExpectedSARSA", "MonteCarloControl", "DynaQ", "PrioritizedSweeping"),
    *("Reinforce", "CrossEntropyMethod", "EvolutionStrategy", "Pegasus", "DQN", "ActorCritic", "PPO", "SAC", "TD3"),
)
GAMES = tuple(NATIVE_GAMES)
_MAZE = ".......#+\n..#....#.\n..#....#.\n..#......\n.....#...\n........."  # Sutton and Barto, example 8.1
#: Decision processes with their start; None is any state.
_WORLDS: Mapping[str, tuple[Callable[[], MDP], Any]] = {
    "cliff-walk": (worlds.cliff_walk, (3, 0)),
    "maze": (lambda: worlds.grid_world(_MAZE, step_reward=0.0, slip=0.0, discount=0.95), (2, 0)),
    "grid": (worlds.russell_norvig_grid, (2, 0)),
    "river-swim": (worlds.river_swim, 0),
    "gambler": (worlds.gambler, None),
    "inventory": (worlds.inventory, None),
}
_SIMULATORS = {"cart-pole": CartPole, "mountain-car": MountainCar, "inverted-pendulum": InvertedPendulum}
ENVIRONMENTS = (*_WORLDS, *_SIMULATORS)
_LONGEST = 1000  # steps of an episode of a decision process
_WORDS = "a file (model.json, grid.txt), or a name of Gymnasium such as CartPole-v1"


def environment_named(name: str, *, drawn: bool = False) -> Any:
    """An environment by its name or file; one that is `drawn` draws itself, where it can."""
    if name in _WORLDS:
        make, start = _WORLDS[name]
        return MDPEnvironment(make(), start=start, max_steps=_LONGEST)
    if name in _SIMULATORS:
        return _SIMULATORS[name]().environment()
    if Path(name).is_file():
        return MDPEnvironment(read_mdp(name), max_steps=_LONGEST)
    return _of_gymnasium(name, drawn)


def _of_gymnasium(name: str, drawn: bool) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise ParameterError(
            f"ENV {name}: not found{_suggestion(name, (*ENVIRONMENTS, *GAMES))}; expected {', '.join(ENVIRONMENTS)}, "
            f"{_WORDS}, for which the extra rl is needed: pip install 'epicycle[rl]'"
        ) from None
    if ":" not in name and not _registered(name, gymnasium.registry):
        known = (*ENVIRONMENTS, *GAMES, *gymnasium.registry)
        raise ParameterError(
            f"ENV {name}: not found{_suggestion(name, known)}; expected {', '.join(ENVIRONMENTS)}, {_WORDS}"
        )
    try:
        return gymnasium.make(name, render_mode="rgb_array" if drawn else None)
    except Exception as error:
        raise ParameterError(f"ENV {name}: Gymnasium raised {type(error).__name__}: {error}") from error


def _registered(name: str, registry: Iterable[str]) -> bool:
    """Whether Gymnasium knows a name, with or without its version."""
    return any(name in (known, re.sub(r"-v\d+$", "", known)) for known in registry)


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Words about the names that are most like one."""
    spelt = {_plain(other): other for other in known}
    near = [spelt[found] for found in difflib.get_close_matches(_plain(name), spelt, n=2, cutoff=0.6)]
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def agent_class(name: str, env: Any) -> type[rl.Agent]:
    """The class of an agent by its name, in any spelling; auto chooses by the environment."""
    if name == "auto":
        name = "QLearning" if Interaction(env, 0).discrete else "CrossEntropyMethod"
    found = {_plain(known): known for known in AGENTS}.get(_plain(name))
    if found is None:
        raise ParameterError(
            f"--agent {name}: no agent of this name{_suggestion(name, AGENTS)}; expected auto, {', '.join(AGENTS)}"
        )
    made: type[rl.Agent] = getattr(rl, found)
    return made


def agent_settings(cls: type[rl.Agent], given: Iterable[str], env: Any) -> dict[str, Any]:
    """Arguments of an agent from NAME=VALUE; the discount is that of a decision process, if none is given."""
    names = [name for name in cls._arguments if name != "random_state"]
    settings: dict[str, Any] = {}
    if "discount" in names and isinstance(env, MDPEnvironment):
        settings["discount"] = env.mdp.discount
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or name not in names:
            raise ParameterError(
                f"--set {one}: expected NAME=VALUE{_suggestion(name, names)}; arguments of {cls.__name__} are "
                f"{', '.join(names)}"
            )
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings
