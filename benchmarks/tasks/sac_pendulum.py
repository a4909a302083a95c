"""SAC on the pendulum of Gymnasium."""

from __future__ import annotations

from typing import Any

from benchmarks.tasks._agents import agent_task


def ours(seed: int) -> Any:
    from epicycle.rl import SAC

    return SAC((256, 256), learning_rate=1e-3, batch_size=256, learning_starts=500, random_state=seed)


def theirs(env: Any, seed: int) -> Any:
    from stable_baselines3 import SAC

    settings = {"learning_rate": 1e-3, "batch_size": 256, "learning_starts": 500, "buffer_size": 100_000}
    return SAC("MlpPolicy", env, **settings, policy_kwargs={"net_arch": [256, 256]}, seed=seed, device="cpu")


TASK = agent_task(
    "sac_pendulum",
    "Pendulum-v1",
    6000,
    ours,
    theirs,
    title="SAC on Pendulum: 6,000 steps, two layers of 256, five seeds",
    aim=-200.0,
    scale=1000.0,
    slack=50.0,
)
