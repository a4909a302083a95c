"""`read_mdp`: decision processes from JSON files and from maps drawn as text."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from epicycle.control.mdp._mdp import CRITERIA, MDP
from epicycle.control.mdp._mdp_inputs import SUM_TOLERANCE
from epicycle.core._exceptions import DataFileError, EpicycleError

_KEYS = ("transitions", "rewards", "states", "actions", "terminal", "discount", "criterion")
_ENTRY = ("state", "action", "next", "probability", "reward")
_SETTINGS = {"discount", "slip", "step_reward"}


def read_mdp(path: str | os.PathLike[str], *, discount: float | None = None) -> MDP:
    r"""Decision process of a file: JSON, or a map of a grid as text.

    A JSON file is an object with

    - ``transitions``: a list of objects with the keys ``state``, ``action``, ``next``, ``probability`` (1 by default)
      and ``reward`` (0 by default), or of lists of these five in this order; or nested lists of shape (S, A, S);
    - ``rewards``: rewards of states, an object ``{"state": number}``, which are added to those of the entries; with
      nested lists a list (S,), (S, A) or (S, A, S);
    - ``terminal``: a list of states where the process ends, or an object ``{"state": value}``;
    - ``discount`` (0.99 by default), ``criterion``, and, for nested lists, labels ``states`` and ``actions``.

    Any other file is a map for :func:`worlds.grid_world`: lines such as ``slip: 0.2``, ``step_reward: -0.04``,
    ``discount: 0.95`` or ``G: 10`` (the reward of a character, where the process ends) may stand above it.

    Parameters
    ----------
    path : str or path
        The file; a name that ends in ``.json`` is JSON.
    discount : float, optional
        In the place of the discount of the file.

    Returns
    -------
    MDP

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from epicycle.control import policy_iteration, read_mdp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "grid.txt")
    ...     _ = file.write_text("step_reward: -0.04\nslip: 0.2\n\n...+\n.#.-\n....\n")
    ...     mdp = read_mdp(file, discount=1.0)
    >>> policy_iteration(mdp).values[0].round(3)
    np.float64(0.812)
    """
    file = Path(path)
    try:
        content = file.read_text("utf-8")
    except UnicodeDecodeError:
        raise DataFileError(f"{file}: expected text, JSON or the map of a grid, got other bytes") from None
    except OSError as error:
        raise DataFileError(f"{file}: {error.strerror or error}") from error
    read = _from_json if file.suffix.lower() == ".json" else _from_map
    try:
        return read(content, discount)
    except DataFileError as error:
        raise DataFileError(f"{file}: {error}") from None
    except EpicycleError as error:
        raise DataFileError(f"{file}: {error}") from error


# ------------------------------------------------------------------------------------------------ JSON


def _from_json(content: str, discount: float | None) -> MDP:
    try:
        given = json.loads(content)
    except json.JSONDecodeError as error:
        raise DataFileError(f"line {error.lineno}, column {error.colno}: {error.msg}; expected JSON") from None
    except RecursionError:
        raise DataFileError("brackets are nested too deeply; expected an object with 'transitions'") from None
    if not isinstance(given, dict) or "transitions" not in given:
        raise DataFileError("expected an object with the key 'transitions'")
    unknown = sorted(set(given) - set(_KEYS))
    if unknown:
        raise DataFileError(f"key {unknown[0]!r}: expected one of {', '.join(_KEYS)}")
    gamma = _number("discount", given.get("discount", 0.99)) if discount is None else discount
    criterion = given.get("criterion")
    if criterion is not None and criterion not in CRITERIA:
        raise DataFileError(f"criterion: got {criterion!r}; expected one of {', '.join(CRITERIA)}")
    listed = given["transitions"]
    if not isinstance(listed, list) or not listed:
        raise DataFileError("transitions: expected a list that is not empty")
    if _is_entry(listed[0]):
        return _from_entries(given, listed, gamma, criterion)
    options = {name: given.get(name) for name in ("states", "actions")}
    for name, labels in options.items():
        if labels is not None and not isinstance(labels, list):
            raise DataFileError(f"{name}: expected a list of labels")
    if "rewards" not in given:
        raise DataFileError("rewards: missing; expected numbers of shape (S,), (S, A) or (S, A, S)")
    P, R = _nested("transitions", listed), _nested("rewards", given["rewards"])
    terminal = given.get("terminal")
    if terminal is not None and not isinstance(terminal, list):
        raise DataFileError("terminal: expected a list of states with nested transitions")
    return MDP(P, R, gamma, terminal=terminal, criterion=criterion, **options)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) or (
        isinstance(entry, list) and bool(entry) and not any(isinstance(part, list) for part in entry)
    )


def _nested(name: str, lists: Any) -> np.ndarray:
    try:
        return np.asarray(lists, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataFileError(f"{name}: expected nested lists of numbers, all of one length at each depth") from None


def _from_entries(given: dict[str, Any], listed: list[Any], discount: float, criterion: str | None) -> MDP:
    steps: dict[str, dict[str, list[tuple[float, str, float]]]] = {}
    order: dict[str, None] = {}
    for i, entry in enumerate(listed):
        state, action, after, p, reward = _entry(i, entry)
        order.setdefault(state)
        order.setdefault(after)
        steps.setdefault(state, {}).setdefault(action, []).append((p, after, reward))
    for state, actions in steps.items():
        for action, entries in actions.items():
            total = sum(p for p, _, _ in entries)
            if abs(total - 1) > SUM_TOLERANCE:
                raise DataFileError(
                    f"transitions: the probabilities of state {state!r}, action {action!r} add up to {total:.9g}; "
                    "expected 1"
                )
    final = _by_state("terminal", given.get("terminal", []), order)
    extra = _by_state("rewards", given.get("rewards", {}), order)
    dead = [s for s in order if s not in steps and s not in final]
    if dead:
        raise DataFileError(
            f"state {dead[0]!r} has no action; expected transitions from it, or its name in 'terminal' "
            f"({len(dead)} such states)"
        )
    for name in ("states", "actions"):
        if name in given:
            raise DataFileError(f"{name}: not used with a list of transitions, which names them")

    def step(state: str, action: str) -> list[tuple[float, str, float]]:
        return [(p, after, r + extra.get(state, 0.0)) for p, after, r in steps[state][action]]

    acts: Callable[[str], list[str]] = lambda s: [] if s in final else list(steps[s])  # noqa: E731
    mdp = MDP.from_function(step, list(order), acts, discount, criterion=criterion)
    for i, state in enumerate(order):
        mdp.terminal_values_[i] = final.get(state, 0.0) + (extra.get(state, 0.0) if state in final else 0.0)
    return mdp


def _entry(i: int, entry: Any) -> tuple[str, str, str, float, float]:
    at = f"transitions[{i}]"
    if isinstance(entry, dict):
        unknown = sorted(set(entry) - set(_ENTRY))
        missing = [key for key in _ENTRY[:3] if key not in entry]
        if unknown or missing:
            said = f"unknown key {unknown[0]!r}" if unknown else f"no key {missing[0]!r}"
            raise DataFileError(f"{at}: {said}; expected {', '.join(_ENTRY)}")
        parts = [entry[key] for key in _ENTRY[:3]] + [entry.get("probability", 1.0), entry.get("reward", 0.0)]
    elif isinstance(entry, list) and 3 <= len(entry) <= 5:
        parts = [*entry, *(1.0, 0.0)[len(entry) - 3 :]]
    else:
        raise DataFileError(f"{at}: got {json.dumps(entry)[:60]}; expected state, action, next, probability, reward")
    state, action, after = (_label(f"{at}, {key}", part) for key, part in zip(_ENTRY[:3], parts[:3], strict=True))
    p, reward = _number(f"{at}, probability", parts[3]), _number(f"{at}, reward", parts[4])
    if p < 0:
        raise DataFileError(
            f"{at}, probability: got {p:g} for state {state!r}, action {action!r}; expected none below 0"
        )
    return state, action, after, p, reward


def _label(at: str, given: Any) -> str:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise DataFileError(f"{at}: got {json.dumps(given)[:60]}; expected a name or a number")
    return str(given)


def _number(at: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise DataFileError(f"{at}: got {json.dumps(given)[:60]}; expected a finite number")
    return float(given)


def _by_state(name: str, given: Any, states: dict[str, None]) -> dict[str, float]:
    if isinstance(given, list):
        given = {_label(name, s): 0.0 for s in given}
    if not isinstance(given, dict):
        raise DataFileError(f"{name}: expected an object of states with numbers")
    for state in given:
        if state not in states:
            raise DataFileError(f"{name}: {state!r} is none of the states")
    return {state: _number(f"{name}, state {state!r}", value) for state, value in given.items()}


# ------------------------------------------------------------------------------------------------ maps


def _from_map(content: str, discount: float | None) -> MDP:
    from epicycle.control.worlds import grid_world  # worlds are made of processes

    lines = [line.rstrip() for line in content.rstrip().splitlines()]
    at = next((i for i, line in enumerate(lines) if line and ":" not in line), None)
    if at is None:
        raise DataFileError("no map of a grid; expected lines of '#', '.', '+', '-' and characters with a reward")
    settings, rewards = _settings(lines[:at])
    if discount is not None:
        settings["discount"] = discount
    known = {"#", ".", " ", "+", "-", *rewards}
    for i, line in enumerate(lines[at:], start=at + 1):
        bad = next((j for j, character in enumerate(line) if character not in known), None)
        if bad is not None:
            raise DataFileError(
                f"line {i}, column {bad + 1}: {line[bad]!r}; expected '#', '.', '+', '-' or a character whose reward "
                f"stands above the map, such as '{line[bad]}: 1'"
            )
    return grid_world("\n".join(lines[at:]), rewards=rewards, **settings)


def _settings(lines: list[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Settings and rewards of characters that stand above a map."""
    settings: dict[str, float] = {}
    rewards: dict[str, float] = {}
    for i, line in enumerate(lines, start=1):
        if not line:
            continue
        name, _, value = (part.strip() for part in line.partition(":"))
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise DataFileError(f"line {i}: got {value!r} for {name!r}; expected a finite number")
        if name not in _SETTINGS and len(name) != 1:
            names = ", ".join(sorted(_SETTINGS))
            raise DataFileError(f"line {i}: got {name!r}; expected {names}, or a character and its reward")
        (settings if name in _SETTINGS else rewards)[name] = number
    return settings, rewards
