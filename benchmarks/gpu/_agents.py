"""What the scripts of agents share: learning by some seeds up to a time, curves over the steps, evaluation."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu._report import Figures, arguments, device

POINTS = 40  # of a learning curve


def agent_arguments(description: str, steps: int, minutes: float) -> argparse.Namespace:
    """The arguments of all scripts, and --agent, --steps, --seeds, --minutes."""
    parser = arguments(description)
    parser.add_argument("--agent", choices=["ppo", "dqn"], default="ppo")
    parser.add_argument("--steps", type=int, default=steps, help="steps of each seed")
    parser.add_argument("--seeds", type=int, default=3, help="agents that learn, one after the other")
    parser.add_argument("--minutes", type=float, default=minutes, help="time to learn, for all seeds together")
    given = parser.parse_args()
    if given.quick:
        given.steps, given.seeds, given.minutes = min(given.steps, 600), min(given.seeds, 2), min(given.minutes, 1.0)
    return given


def agents_of_images(
    given: argparse.Namespace, many: int, *, ppo: Mapping[str, Any], dqn: Mapping[str, Any]
) -> Callable[[int], Any]:
    """Agents by their seeds, for so many games at once that are seen as images: PPO, or DQN."""

    def agent_for(seed: int) -> Any:
        from epicycle.rl import DQN, PPO

        settings: dict[str, Any]
        if given.agent == "ppo":
            settings = {"activation": "relu", "n_epochs": 4, "entropy_weight": 0.01, "clip_gradient": 0.5, **ppo}
            few = {"n_steps": 16, "batch_size": 32, "n_epochs": 1}
        else:
            settings = {"batch_size": 32, "train_every": many, "gradient_steps": many // 4, **dqn}
            few = {"buffer_size": 500, "learning_starts": 100, "gradient_steps": 1}
        settings |= {**(few if given.quick else {}), "device": device(), "random_state": seed}
        return PPO(**settings) if given.agent == "ppo" else DQN(**settings)

    return agent_for


def run(
    name: str,
    given: argparse.Namespace,
    *,
    agent_for: Callable[[int], Any],
    env_for: Callable[[], Any],
    test_env: Callable[[], Any],
    episodes: int,
    longest: int,
) -> None:
    """Learn, evaluate, and write NAME.json and NAME_curves.csv.

    These have mean returns by steps, returns of the greedy policies, and those of random actions.
    """
    figures = Figures(given.out, name)
    if given.quick:
        episodes, longest = 2, 200
    chance = random_returns(test_env(), episodes, longest)
    figures.add(agent=repr(agent_for(0)), random_actions=float(np.mean(chance)))
    curves: list[np.ndarray] = []
    means: list[float] = []
    seconds: list[float] = []
    made: list[int] = []
    for seed in range(given.seeds):
        agent, env, began = agent_for(seed), env_for(), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the time ran out is in the figures
            agent.learn(env, given.steps, time_limit=60 * given.minutes / given.seeds, verbose=1)
            seconds.append(time.perf_counter() - began)
            close(env)
            made.append(int(agent._progress["made"]))
            found = agent.evaluate(test_env(), episodes, seed=1_000_000, max_steps=longest)
        agent.save(given.out / f"{name}_{seed}.epi")
        curves.append(curve(agent.history_, given.steps))
        means.append(found.mean)
        write_curves(given.out / f"{name}_curves.csv", given.steps, curves)
        mean, around = interval(np.array(means))
        figures.add(
            seeds=seed + 1,
            steps_made=made,
            steps_a_second=[m / s for m, s in zip(made, seconds, strict=True)],
            greedy_return_of_each_seed=means,
            greedy_return=mean,
            plus_minus=around,
            curve_steps=(given.steps * np.arange(1, POINTS + 1) / POINTS).tolist(),
            curve_mean=np.ma.masked_invalid(curves).mean(axis=0).filled(np.nan).tolist(),
        )


def curve(history: Any, steps: int) -> np.ndarray:
    """Mean return of the episodes that ended in each part of the steps; the last one before where none did."""
    at = np.minimum((np.asarray(history["steps"]) - 1) * POINTS // steps, POINTS - 1).astype(int)
    found, returns = np.full(POINTS, np.nan), np.asarray(history["return"])
    for part in range(POINTS):
        found[part] = returns[at == part].mean() if (at == part).any() else found[part - 1] if part else np.nan
    return found


def write_curves(path: Path, steps: int, curves: list[np.ndarray]) -> None:
    """The curves as columns, for a figure."""
    header = ",".join(["steps", *(f"seed_{seed}" for seed in range(len(curves)))])
    rows = np.column_stack([steps * np.arange(1, POINTS + 1) / POINTS, *curves])
    np.savetxt(path, rows, delimiter=",", header=header, comments="", fmt="%.6g")


def interval(means: np.ndarray) -> tuple[float, float]:
    """Mean over the seeds, and half of the 95% interval for what other seeds would give."""
    from scipy.stats import t

    n = len(means)
    around = float(t.ppf(0.975, n - 1) * means.std(ddof=1) / n**0.5) if n > 1 else float("nan")
    return float(means.mean()), around


def random_returns(env: Any, episodes: int, longest: int) -> list[float]:
    """Returns of actions that are drawn evenly."""
    rng, found = np.random.default_rng(0), []
    for episode in range(episodes):
        env.reset(seed=episode)
        total, over, length = 0.0, False, 0
        while not over and length < longest:
            _, reward, ended, cut, _ = env.step(int(rng.integers(env.action_space.n)))
            total, over, length = total + float(reward), ended or cut, length + 1
        found.append(total)
    return found


def close(env: Any) -> None:
    """Close an environment or a list of them."""
    for one in env if isinstance(env, list) else [env]:
        one.close()
