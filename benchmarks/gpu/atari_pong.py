"""Pong of the Atari 2600: the learning curve, from pictures of 84 x 84 in stacks of four.

Preprocessing of Mnih et al. (2015) by ale-py: every fourth frame, the larger of the last two, grey. A game is won by
21 points; random actions lose by about 20. Needs ``pip install ale-py``.

    python -m benchmarks.gpu.atari_pong --out DIR --seeds 1 --minutes 9
    python -m benchmarks.gpu.atari_pong --out DIR --seeds 1 --minutes 9 --agent dqn
"""

from __future__ import annotations

from typing import Any

from benchmarks.gpu._agents import agent_arguments, agents_of_images, run


def games(n: int) -> Any:
    """Games side by side, which ale-py steps on all threads."""
    from ale_py.vector_env import AtariVectorEnv

    return AtariVectorEnv("pong", n)


class OneGame:
    """One game of the same kind, as an environment that is not a vector of them."""

    def __init__(self) -> None:
        self.inner = games(1)
        self.observation_space, self.action_space = self.inner.single_observation_space, self.inner.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a game."""
        return self.inner.reset(seed=seed)[0][0], {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act."""
        import numpy as np

        seen, reward, ended, cut, _ = self.inner.step(np.array([action]))
        return seen[0], float(reward[0]), bool(ended[0]), bool(cut[0]), {}


def main() -> None:
    from epicycle.rl import LinearDecay

    given = agent_arguments(__doc__ or "", steps=10_000_000, minutes=9)
    many = 4 if given.quick else 128 if given.agent == "ppo" else 16
    rate = LinearDecay(5e-4, 1e-5, given.steps)
    ppo = {"hidden": (512,), "learning_rate": rate, "n_steps": 64, "batch_size": 2048}
    dqn = {
        "hidden": (512,),
        "learning_rate": 1e-4,
        "buffer_size": 200_000,
        "learning_starts": 20_000,
        "target_every": 5000,
        "epsilon": LinearDecay(1.0, 0.01, 200_000),
    }
    run(
        "atari_pong",
        given,
        agent_for=agents_of_images(given, many, ppo=ppo, dqn=dqn),
        env_for=lambda: games(many),
        test_env=OneGame,
        episodes=20,
        longest=30_000,
    )


if __name__ == "__main__":
    main()
