"""Agents with networks against Stable-Baselines3: the same nets, settings, steps and environment, on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Measured, Outcome, Quality, Solution, Target, Task

EPISODES = 50  # of an evaluation, with seeds that no learner met


def returns_of(act: Callable[[Any], Any], name: str) -> np.ndarray:
    """Returns of episodes of a policy that does not learn."""
    import gymnasium

    env, found = gymnasium.make(name), []
    for episode in range(EPISODES):
        observation, _ = env.reset(seed=1_000_000 + episode)
        total, over = 0.0, False
        while not over:
            observation, reward, ended, cut, _ = env.step(act(observation))
            total, over = total + float(reward), ended or cut
        found.append(total)
    return np.array(found)


def agent_task(
    name: str,
    env: str,
    steps: int,
    ours: Callable[[int], Any],
    theirs: Callable[[Any, int], Any],
    *,
    title: str,
    aim: float,
    scale: float,
    slack: float,
) -> Task:
    """A task of learning in an environment of Gymnasium by five seeds.

    `aim` is the mean return that is to be reached, `scale` what the returns are divided by to compare them, and `slack`
    how far below the best mean return counts as equal.
    """

    def make(directory: Path, quick: bool) -> Data:
        return {"seeds": np.arange(1 if quick else 5), "steps": np.array(min(steps, 2000) if quick else steps)}

    def epicycle_agent(data: Data) -> Measured:
        import gymnasium

        seconds, found = 0.0, []
        for seed in data["seeds"].tolist():
            world, agent = gymnasium.make(env), ours(seed)
            begin = time.process_time()
            agent.learn(world, int(data["steps"]))
            seconds += time.process_time() - begin
            found.append(returns_of(agent.act, env))
        return Measured(seconds, {"returns": np.array(found)})

    def stable_baselines(data: Data) -> Measured:
        import gymnasium
        import torch

        torch.set_num_threads(1)
        seconds, found = 0.0, []
        for seed in data["seeds"].tolist():
            agent = theirs(gymnasium.make(env), seed)
            begin = time.process_time()
            agent.learn(int(data["steps"]))
            seconds += time.process_time() - begin
            found.append(returns_of(lambda x, agent=agent: agent.predict(x, deterministic=True)[0], env))
        return Measured(seconds, {"returns": np.array(found)})

    def loss(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
        found, best = {}, max(float(solution["returns"].mean()) for solution in solutions.values())
        for who, solution in solutions.items():
            means = solution["returns"].mean(axis=1)
            around = 2.776 * means.std(ddof=1) / len(means) ** 0.5 if len(means) > 1 else float("nan")
            mean = float(means.mean())
            found[who] = {"below the best": (best - mean) / scale, "return": mean, "+-": float(around)}
        return found

    def mean_return(outcomes: Mapping[str, Outcome]) -> float:
        return outcomes["epicycle"].quality.get("return", float("nan"))

    def steps_a_second(outcomes: Mapping[str, Outcome]) -> float:
        return 5 * steps / outcomes["epicycle"].median

    return Task(
        name=name,
        title=title,
        description="""\
The same networks, optimiser, batches, schedules and number of steps; seconds are those of the processor while
learning, of five seeds together. Quality is the mean return over the seeds, in 50 episodes each that
nobody learnt from, with an interval for what other seeds would give.""",
        make=make,
        implementations=(
            Implementation("epicycle", "epicycle", epicycle_agent, threads=1),
            Implementation("Stable-Baselines3", "peer", stable_baselines, threads=1),
        ),
        quality=loss,
        tolerance=slack / scale,
        targets=(
            Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),
            Target("mean return", mean_return, at_least=aim),
            Target("steps a second", steps_a_second, at_least=0.0),
        ),
        cap=1800.0,
        memory=False,
        defined_in=ours.__module__,
        warm_up=False,
    )
