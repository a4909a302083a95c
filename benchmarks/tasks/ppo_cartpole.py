"""PPO on the pole of Gymnasium."""

from __future__ import annotations

from typing import Any

from benchmarks.tasks._agents import agent_task

EPOCHS, STEPS, BATCH, RATE = 10, 1024, 64, 1e-3


def ours(seed: int) -> Any:
    from epicycle.rl import PPO

    return PPO((64, 64), n_steps=STEPS, batch_size=BATCH, n_epochs=EPOCHS, learning_rate=RATE, random_state=seed)


def theirs(env: Any, seed: int) -> Any:
    from stable_baselines3 import PPO

    settings = {"n_steps": STEPS, "batch_size": BATCH, "n_epochs": EPOCHS, "learning_rate": RATE}
    return PPO("MlpPolicy", env, **settings, policy_kwargs={"net_arch": [64, 64]}, seed=seed, device="cpu")


TASK = agent_task(
    "ppo_cartpole",
    "CartPole-v1",
    51_200,
    ours,
    theirs,
    title="PPO on CartPole: 51,200 steps, two layers of 64, five seeds",
    aim=475.0,
    scale=500.0,
    slack=25.0,
)
