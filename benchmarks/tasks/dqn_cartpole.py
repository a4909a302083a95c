"""Deep Q-learning on the pole of Gymnasium."""

from __future__ import annotations

from typing import Any

from benchmarks.tasks._agents import agent_task

STEPS, RATE, BATCH, FIRST, TRAIN, TARGET = 50_000, 2.3e-3, 64, 1000, 4, 500


def ours(seed: int) -> Any:
    from epicycle.rl import DQN, LinearDecay

    return DQN(
        (256, 256),
        learning_rate=RATE,
        batch_size=BATCH,
        learning_starts=FIRST,
        train_every=TRAIN,
        target_every=TARGET,
        double=False,
        epsilon=LinearDecay(1.0, 0.04, STEPS // 5),
        random_state=seed,
    )


def theirs(env: Any, seed: int) -> Any:
    from stable_baselines3 import DQN

    return DQN(
        "MlpPolicy",
        env,
        learning_rate=RATE,
        batch_size=BATCH,
        buffer_size=100_000,
        learning_starts=FIRST,
        train_freq=TRAIN,
        target_update_interval=TARGET,
        exploration_fraction=0.2,
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
    aim=0.0,
    scale=500.0,
    slack=150.0,
)
