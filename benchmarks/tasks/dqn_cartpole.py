"""Deep Q-learning on the pole of Gymnasium, with the settings of RL Baselines3 Zoo and a rate that falls."""

from __future__ import annotations

from typing import Any

from benchmarks.tasks._agents import agent_task

STEPS, RATE, LAST_RATE, BATCH, FIRST = 50_000, 2.3e-3, 1e-4, 64, 1000
EVERY, UPDATES, TARGET, EXPLORE = 256, 128, 10, 8_000


def ours(seed: int) -> Any:
    from epicycle.rl import DQN, LinearDecay

    return DQN(
        (256, 256),
        learning_rate=LinearDecay(RATE, LAST_RATE, STEPS),
        batch_size=BATCH,
        learning_starts=FIRST,
        train_every=EVERY,
        gradient_steps=UPDATES,
        target_every=TARGET,
        double=False,
        epsilon=LinearDecay(1.0, 0.04, EXPLORE),
        random_state=seed,
    )


def theirs(env: Any, seed: int) -> Any:
    from stable_baselines3 import DQN

    return DQN(
        "MlpPolicy",
        env,
        learning_rate=lambda left: LAST_RATE + (RATE - LAST_RATE) * left,
        batch_size=BATCH,
        buffer_size=100_000,
        learning_starts=FIRST,
        train_freq=EVERY,
        gradient_steps=UPDATES,
        target_update_interval=TARGET,
        exploration_fraction=EXPLORE / STEPS,
        exploration_final_eps=0.04,
        policy_kwargs={"net_arch": [256, 256]},
        seed=seed,
        device="cpu",
    )


TASK = agent_task(
    "dqn_cartpole",
    "CartPole-v1",
    STEPS,
    ours,
    theirs,
    title="Deep Q-learning on CartPole: 50,000 steps, two layers of 256, five seeds",
    aim=475.0,
    scale=500.0,
    slack=25.0,
)
