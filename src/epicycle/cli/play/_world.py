"""``epicycle play ENV``: an agent learns, one episode is recorded, the policy is evaluated, a report is written."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from epicycle import rl
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder, write_folder
from epicycle.cli._report import files_of
from epicycle.cli._train import default_folder
from epicycle.cli.play._episode import RandomAgent, recorded_episode, small_world
from epicycle.cli.play._setup import agent_class, agent_settings, environment_named
from epicycle.core._exceptions import ConvergenceWarning, EpicycleError
from epicycle.report._plain import plain
from epicycle.rl._evaluation import Evaluation, evaluate
from epicycle.rl._interaction import Interaction
from epicycle.stats._summary import central_quantile

Array = np.ndarray
_BINS, _CONFIDENCE = 30, 0.95
_EVALUATION = 1_000_003  # added to the seed of learning, so that other episodes are played


def run_world(
    name: str,
    *,
    agent: str,
    steps: int,
    settings: list[str],
    seeds: int,
    episodes: int,
    max_steps: int,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Learn, watch, evaluate, write the folder, print the result."""
    folder = check_folder(out if out is not None else f"{default_folder(name)}-play")
    env = environment_named(name)
    cls = agent_class(agent, env)
    arguments = agent_settings(cls, settings, env)
    learnt = _learn(cls, arguments, env, steps, range(seed, seed + seeds), verbose=0 if as_json else 1)
    found = [one.evaluate(env, episodes, seed=s + _EVALUATION, max_steps=max_steps) for s, one in learnt]
    world = Interaction(env, seed + _EVALUATION)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows how many episodes were cut off
        chance = evaluate(
            RandomAgent(world, seed), world, episodes, deterministic=True, max_steps=max_steps, confidence=_CONFIDENCE
        )
    first = learnt[0][1]
    episode = recorded_episode(first, _drawn(name, env), seed + _EVALUATION)
    told = {
        "environment": name,
        **_told(learnt, found),
        "random": _numbers(chance),
        "evaluated": episodes,
        "confidence": _CONFIDENCE,
        "episode": episode,
        "world": small_world(first, env),
    }
    record = {"title": f"{cls.__name__} on {name}", "agent": told}
    write_folder(folder, {**files_of(record), "agent.epi": first.save})
    if as_json:
        short = {key: value for key, value in told.items() if key not in ("episode", "world")}
        print(json.dumps({**plain(short), "folder": os.fspath(folder)}, indent=2))
    else:
        print_result(told, folder)


def _learn(
    cls: type[rl.Agent], arguments: dict[str, Any], env: Any, steps: int, seeds: range, *, verbose: int
) -> list[tuple[int, rl.Agent]]:
    """An agent for each seed; none more after an interrupt, which keeps what was learnt."""
    learnt: list[tuple[int, rl.Agent]] = []
    for seed in seeds:
        made: Any = cls
        one: rl.Agent = made(**arguments, random_state=seed).learn(env, steps, verbose=verbose)
        learnt.append((seed, one))
        if one._progress["made"] < one._progress["goal"]:
            break
    return learnt


def _told(learnt: list[tuple[int, rl.Agent]], found: list[Evaluation]) -> dict[str, Any]:
    """The agents and their evaluations, as text."""
    first = learnt[0][1]
    return {
        "agent": repr(first),
        "name": type(first).__name__,
        "steps": first._progress["goal"],
        "interrupted": any(one._progress["made"] < one._progress["goal"] for _, one in learnt),
        "curve": learning_curve([one.history_ for _, one in learnt]),
        "runs": [
            {
                "seed": seed,
                "steps": one._progress["made"],
                "episodes": one._log.n_episodes,
                **_numbers(evaluation),
                "length": float(evaluation.lengths.mean()),
            }
            for (seed, one), evaluation in zip(learnt, found, strict=True)
        ],
        "certificate": plain(first.certificate_),
    }


def _drawn(name: str, env: Any) -> Any:
    """The environment once more, with pictures if it draws any."""
    try:
        return environment_named(name, drawn=True)
    except EpicycleError:  # of Gymnasium, and draws in another way or not at all
        return env


def _numbers(found: Evaluation) -> dict[str, Any]:
    return {"mean": found.mean, "low": found.low, "high": found.high, "truncated": found.n_truncated}


def learning_curve(histories: list[Any]) -> dict[str, Any] | None:
    """Returns over the steps: means of the episodes in a piece of the steps, and over the seeds, with interval."""
    last = max((h["steps"][-1] for h in histories if len(h["steps"])), default=0)
    if not last:
        return None
    edges = np.linspace(0, last, _BINS + 1)
    means = np.full((len(histories), _BINS), np.nan)
    for row, history in zip(means, histories, strict=True):
        at = np.clip(np.searchsorted(edges, history["steps"], side="left") - 1, 0, _BINS - 1)
        sums, counts = (np.bincount(at, weights=w, minlength=_BINS) for w in (history["return"], None))
        row[counts > 0] = sums[counts > 0] / counts[counts > 0]
    there = np.isfinite(means).any(axis=0)
    n = np.isfinite(means).sum(axis=0)[there]
    mean, spread = np.nanmean(means[:, there], axis=0), np.full(there.sum(), np.nan)
    for j in np.flatnonzero(n > 1):
        across = means[:, there][:, j]
        spread[j] = central_quantile(_CONFIDENCE, int(n[j]) - 1) * np.nanstd(across, ddof=1) / np.sqrt(n[j])
    return {
        "steps": edges[1:][there].tolist(),
        "mean": mean.tolist(),
        "low": (mean - spread).tolist(),
        "high": (mean + spread).tolist(),
    }


def print_result(found: dict[str, Any], folder: Path) -> None:
    """Print the returns beside those of random actions, the certificate, and what was written."""
    width, runs = terminal_width(sys.stdout), found["runs"]

    def say(text: str) -> None:
        print(wrapped(text, width))

    for run in runs:
        say(
            f"seed {run['seed']}: return {run['mean']:.5g}, between {run['low']:.5g} and {run['high']:.5g} at "
            f"{found['confidence']:.0%}, after {run['steps']:,} steps and {run['episodes']:,} episodes"
        )
    chance = found["random"]
    say(f"random actions: {chance['mean']:.5g}, between {chance['low']:.5g} and {chance['high']:.5g}")
    episode = found["episode"]
    say(f"an episode of seed {runs[0]['seed']}: return {episode['return']:.5g}, {episode['length']:,} steps")
    if episode["note"]:
        say(episode["note"])
    certificate = found["certificate"]
    verdict = "" if certificate["kind"] == "none" else " (holds)" if certificate["holds"] else " (does not hold)"
    say(f"certificate: {certificate['kind']}{verdict}; {certificate['meaning']}")
    say(f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}")
