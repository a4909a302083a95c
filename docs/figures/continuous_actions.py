"""A rod on a weak motor: returns while SAC and TD3 learn, and how the temperature of SAC keeps the entropy."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import InvertedPendulum
from epicycle.rl import SAC, TD3


class Rod:
    """The simulator with cosine and sine of the angle as observation."""

    def __init__(self):
        self.inner = InvertedPendulum().environment(max_steps=200)
        self.simulator = self.inner.simulator

    def reset(self, *, seed=None, options=None):
        state, info = self.inner.reset(seed=seed)
        return self.seen(state), info

    def step(self, action):
        state, *rest = self.inner.step(action)
        return self.seen(state), *rest

    def seen(self, state):
        return np.array([np.cos(state[0]), np.sin(state[0]), state[1]])


settings = {"hidden": (64, 64), "learning_rate": 1e-3, "batch_size": 128, "learning_starts": 500, "random_state": 0}
soft, hard = (agent.learn(Rod(), 6000) for agent in (SAC(**settings), TD3(**settings)))
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
for agent in (soft, hard):
    agent.plot(smooth=5, ax=left)
left.legend()
history = soft.history_
right.plot(history["steps"], history["entropy"], label="entropy")
right.plot(history["steps"], history["temperature"], label="temperature")
right.axhline(-1, color="grey", linewidth=0.8, linestyle="--")
right.set_xlabel("step")
right.set_title("SAC")
right.legend()
fig.tight_layout()
