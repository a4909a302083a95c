"""PPO on the acrobot of Gymnasium, eight environments at once."""

from __future__ import annotations

from typing import Any

from benchmarks.tasks._agents import agent_task

STEPS, ENVIRONMENTS, RATE, LAST_RATE, ENTROPY = 100_000, 8, 2e-3, 1e-4, 0.01
SHARED = {"n_steps": 128, "batch_size": 256, "n_epochs": 8}


def ours(seed: int) -> Any:
    from epicycle.rl import PPO, LinearDecay

    rate = LinearDecay(RATE, LAST_RATE, STEPS)
    return PPO((64, 64), n_envs=ENVIRONMENTS, learning_rate=rate, entropy_weight=ENTROPY, **SHARED, random_state=seed)


def theirs(env: Any, seed: int) -> Any:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    return PPO(
        "MlpPolicy",
        make_vec_env("Acrobot-v1", ENVIRONMENTS, seed=seed),
        learning_rate=lambda left: LAST_RATE + (RATE - LAST_RATE) * left,
        ent_coef=ENTROPY,
        **SHARED,
        policy_kwargs={"net_arch": [64, 64]},
        seed=seed,
        device="cpu",
    )


TASK = agent_task(
    "ppo_acrobot",
    "Acrobot-v1",
    STEPS,
    ours,
    theirs,
    title="PPO on Acrobot: 100,000 steps in eight environments, two layers of 64, five seeds",
    aim=-100.0,
    scale=500.0,
    slack=10.0,
)
