"""Small environments for agents with networks."""

from types import SimpleNamespace

import numpy as np


class Cart:
    """A cart that is to stand at zero: x' = x + 0.5 u, reward -x^2 for ten steps. Best: u = -2 x."""

    action_space = SimpleNamespace(shape=(1,), low=-3.0, high=3.0)

    def reset(self, *, seed=None, options=None):
        self.x, self.steps = np.random.default_rng(seed).uniform(-1, 1), 0
        return np.array([self.x]), {}

    def step(self, action):
        self.x += 0.5 * float(np.ravel(action)[0])
        self.steps += 1
        return np.array([self.x]), -(self.x**2), False, self.steps == 10, {}


class Forever:
    """One state, reward 1 a step; the episode is over after five steps, by a cut or by an end."""

    observation_space, action_space = SimpleNamespace(n=1), SimpleNamespace(n=2)

    def __init__(self, ends):
        self.ends = ends

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return 0, {}

    def step(self, action):
        self.steps += 1
        over = self.steps == 5
        return 0, 1.0, over and self.ends, over and not self.ends, {}


class Spot:
    """An image with a spot on the left or on the right; action 0 or 1 says where, and the episode is over."""

    observation_space = SimpleNamespace(dtype=np.uint8)
    action_space = SimpleNamespace(n=2)

    def reset(self, *, seed=None, options=None):
        rng = np.random.default_rng(seed)
        self.side = int(rng.integers(2))
        self.image = np.zeros((6, 6, 1), dtype=np.uint8)
        self.image[rng.integers(6), 3 * self.side + rng.integers(3)] = 255
        return self.image, {}

    def step(self, action):
        return self.image, float(action == self.side), True, False, {}


class Push(Forever):
    """`Forever` with one continuous action, which counts for nothing."""

    action_space = SimpleNamespace(shape=(1,), low=-1.0, high=1.0)


class Aim:
    """One step with the reward -(a - 0.3)^2, a being half of the action, which lies between -2 and 2."""

    observation_space, action_space = SimpleNamespace(n=1), SimpleNamespace(shape=(1,), low=-2.0, high=2.0)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, -((float(action[0]) / 2 - 0.3) ** 2), True, False, {}


class Reach:
    """An image with a bright column; a continuous action says where it is, and the episode is over."""

    observation_space = SimpleNamespace(dtype=np.uint8)
    action_space = SimpleNamespace(shape=(1,), low=-1.0, high=1.0)

    def reset(self, *, seed=None, options=None):
        self.column = int(np.random.default_rng(seed).integers(6))
        self.image = np.zeros((6, 6, 1), dtype=np.uint8)
        self.image[:, self.column] = 255
        return self.image, {}

    def step(self, action):
        return self.image, -((float(action[0]) - (self.column - 2.5) / 2.5) ** 2), True, False, {}
