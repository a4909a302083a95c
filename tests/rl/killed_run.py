"""``python -m tests.rl.killed_run NAME FILE``: an agent learns slowly and writes checkpoints, until it is killed."""

import sys
import time
from types import SimpleNamespace

from epicycle.control import CartPole, MDPEnvironment, worlds
from epicycle.rl import DQN, PPO, SARSA, CrossEntropyMethod, LinearSARSA, QLearning, TileCoding
from epicycle.search import AlphaZero, TicTacToe

STEPS, EVERY = 3000, 400
POLE = ([-2.4, -3.0, -0.21, -3.0], [2.4, 3.0, 0.21, 3.0])
AGENTS = {
    "QLearning": lambda: QLearning(random_state=3),
    "SARSA": lambda: SARSA(trace_decay=0.7, random_state=3),
    "LinearSARSA": lambda: LinearSARSA(TileCoding(*POLE, n_tiles=3, n_tilings=2), random_state=3),
    "CrossEntropyMethod": lambda: CrossEntropyMethod(population=5, random_state=3),
    "DQN": lambda: DQN((8,), learning_starts=100, batch_size=8, prioritized=True, random_state=3),
    "PPO": lambda: PPO((8,), n_steps=32, n_envs=2, batch_size=16, n_epochs=2, random_state=3),
}


class Slow:
    """An environment whose steps take a millisecond, where asked for."""

    def __init__(self, inner, pause, n_states, n_actions):
        self.inner, self.pause = inner, pause
        self.observation_space, self.action_space = SimpleNamespace(n=n_states), SimpleNamespace(n=n_actions)

    def reset(self, **given):
        return self.inner.reset(**given)

    def step(self, action):
        time.sleep(self.pause)
        return self.inner.step(action)


def environment(name, pause=0.0):
    if name in ("QLearning", "SARSA"):
        return Slow(MDPEnvironment(worlds.grid_world("...+\n.#.-\n...."), max_steps=30), pause, 11, 4)
    return Slow(CartPole().environment(max_steps=50), pause, None, 2)


def learner():
    settings = {"channels": 4, "blocks": 0, "simulations": 6, "games": 4, "steps": 4, "batch_size": 8}
    return AlphaZero(TicTacToe(), **settings, random_state=3)


if __name__ == "__main__":
    name, file = sys.argv[1:]
    if name == "AlphaZero":
        learner().learn(10_000, checkpoint=file)
    else:
        AGENTS[name]().learn(environment(name, 0.001), STEPS, checkpoint=file, checkpoint_every=EVERY)
