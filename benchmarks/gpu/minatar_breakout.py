"""Breakout of MinAtar (Young and Tian 2019): the learning curve over three seeds.

Images of 10 x 10 with four channels, sticky actions, growing difficulty. PPO learns from 64 games at once, DQN with
the memory, target and exploration of the paper. Needs ``pip install minatar``.

    python -m benchmarks.gpu.minatar_breakout --out DIR --minutes 9
    python -m benchmarks.gpu.minatar_breakout --out DIR --agent dqn --steps 1000000
"""

from __future__ import annotations

from typing import Any

from benchmarks.gpu._agents import agent_arguments, agents_of_images, run


def game() -> Any:
    """One game, with the three actions that do something."""
    import gymnasium
    from minatar.gym import register_envs

    if "MinAtar/Breakout-v1" not in gymnasium.registry:
        register_envs()
    return gymnasium.make("MinAtar/Breakout-v1", disable_env_checker=True)


def main() -> None:
    from epicycle.rl import LinearDecay

    given = agent_arguments(__doc__ or "", steps=5_000_000, minutes=9)
    many = 4 if given.quick else 64
    rate = LinearDecay(1e-3, 1e-5, given.steps)
    ppo = {"hidden": (128,), "learning_rate": rate, "n_steps": 128, "batch_size": 1024}
    dqn = {
        "hidden": (128,),
        "learning_rate": 2.5e-4,
        "buffer_size": 100_000,
        "learning_starts": 5000,
        "target_every": 1000,
        "epsilon": LinearDecay(1.0, 0.1, given.steps // 10),
    }
    run(
        "minatar_breakout",
        given,
        agent_for=agents_of_images(given, many, ppo=ppo, dqn=dqn),
        env_for=lambda: [game() for _ in range(many)],
        test_env=game,
        episodes=100,
        longest=20_000,
    )


if __name__ == "__main__":
    main()
