"""A pole on a cart, by the same number of steps: agents that see numbers against a table of boxes and chance."""

from types import SimpleNamespace

import numpy as np
import pytest

from epicycle.control import CartPole
from epicycle.rl import (
    DQN,
    PPO,
    ActorCritic,
    CrossEntropyMethod,
    LinearDecay,
    LinearSARSA,
    QLearning,
    Reinforce,
    TileCoding,
)

STEPS, LONGEST = 10_000, 200
POLE = CartPole().environment(max_steps=LONGEST)
EDGES = ([-0.8, 0.8], [-0.5, 0.5], [-0.1, -0.02, 0.0, 0.02, 0.1], [-0.87, 0.87])


class Boxes:
    """The pole as 162 boxes of its four numbers (Barto, Sutton and Anderson 1983)."""

    observation_space, action_space = SimpleNamespace(n=162), SimpleNamespace(n=2)

    def box(self, x):
        found = 0
        for value, edges in zip(np.asarray(x)[[0, 1, 2, 3]], EDGES, strict=True):
            found = found * (len(edges) + 1) + int(np.searchsorted(edges, value))
        return found

    def reset(self, **given):
        x, info = POLE.reset(**given)
        return self.box(x), info

    def step(self, action):
        x, *rest = POLE.step(action)
        return (self.box(x), *rest)


@pytest.fixture(scope="module")
def chance():
    random, lengths = np.random.default_rng(0), []
    for seed in range(100):
        POLE.reset(seed=seed)
        lengths.append(0)
        over = False
        while not over:
            _, _, ended, cut, _ = POLE.step(int(random.integers(2)))
            lengths[-1], over = lengths[-1] + 1, ended or cut
    return np.mean(lengths)


@pytest.fixture(scope="module")
def table(chance):
    means = [
        QLearning(learning_rate=0.3, exploration=0.1, discount=0.99, random_state=seed)
        .learn(Boxes(), STEPS)
        .evaluate(Boxes(), 50, seed=1)
        .mean
        for seed in range(3)
    ]
    assert np.mean(means) > 1.5 * chance  # boxes learn, too
    return np.mean(means)


BOUNDS = ([-2.4, -3.0, -0.21, -3.5], [2.4, 3.0, 0.21, 3.5])
MAKERS = {
    "LinearSARSA": lambda: LinearSARSA(
        TileCoding(*BOUNDS, n_tiles=6, n_tilings=8), learning_rate=0.3, discount=0.99, trace_decay=0.8, random_state=0
    ),
    "Reinforce": lambda: Reinforce(learning_rate=0.1, random_state=0),
    "CrossEntropyMethod": lambda: CrossEntropyMethod(random_state=0),
    "ActorCritic": lambda: ActorCritic(n_envs=8, learning_rate=3e-3, random_state=0),
    "DQN": lambda: DQN((64,), learning_rate=2e-3, epsilon=LinearDecay(1.0, 0.05, 3000), random_state=0),
    "PPO": lambda: PPO(n_envs=4, n_steps=64, batch_size=128, n_epochs=6, learning_rate=2e-3, random_state=0),
}


@pytest.mark.parametrize("name", MAKERS)
def test_agents_beat_chance_and_a_table_of_boxes(name, chance, table):
    found = MAKERS[name]().learn(POLE, STEPS).evaluate(POLE, 30, seed=1)
    assert found.low > 3 * chance
    assert found.mean > table
