"""Breakout of MinAtar (Young and Tian 2019): the learning curve over three seeds.

Images of 10 x 10 with four channels, sticky actions, growing difficulty. PPO learns from 64 games at once, DQN with
the memory, target and exploration of the paper. Needs ``pip install minatar``.

    python -m benchmarks.gpu.minatar_breakout --out DIR --minutes 9
    python -m benchmarks.gpu.minatar_breakout --out DIR --agent dqn --steps 1000000
"""

from __future__ import annotations

from typing import Any

from benchmarks.gpu._agents import agent_arguments, run
from benchmarks.gpu._report import device


def game() -> Any:
    """One game, with the three actions that do something."""
    import gymnasium
    from minatar.gym import register_envs

    if "MinAtar/Breakout-v1" not in gymnasium.registry:
        register_envs()
    return gymnasium.make("MinAtar/Breakout-v1", disable_env_checker=True)


def main() -> None:
    given = agent_arguments(__doc__ or "", steps=5_000_000, minutes=9)
    many = 4 if given.quick else 64

    def agent_for(seed: int) -> Any:
        from epicycle.rl import DQN, PPO, LinearDecay

        shared = {"device": device(), "random_state": seed}
        if given.agent == "ppo":
            settings = {"n_steps": 16, "batch_size": 32, "n_epochs": 2} if given.quick else {}
            large = {"n_steps": 128, "batch_size": 1024, "n_epochs": 4, "entropy_weight": 0.01, "clip_gradient": 0.5}
            rate = LinearDecay(1e-3, 1e-5, given.steps)
            return PPO((128,), activation="relu", learning_rate=rate, **large | settings, **shared)
        return DQN(
            (128,),
            learning_rate=2.5e-4,
            buffer_size=100_000,
            batch_size=32,
            learning_starts=100 if given.quick else 5000,
            train_every=1 if many == 1 else many,
            gradient_steps=1 if given.quick else many // 4,
            target_every=1000,
            epsilon=LinearDecay(1.0, 0.1, given.steps // 10),
            **shared,
        )

    run(
        "minatar_breakout",
        given,
        agent_for=agent_for,
        env_for=lambda: [game() for _ in range(many)],
        test_env=game,
        episodes=100,
        longest=20_000,
    )


if __name__ == "__main__":
    main()
