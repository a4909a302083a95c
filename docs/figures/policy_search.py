"""A pole on a cart: returns while learning, and the variance of three estimators of the gradient."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import CartPole
from epicycle.rl import CrossEntropyMethod, Reinforce, gradient_variance

pole = CartPole().environment(max_steps=100)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
for agent in (Reinforce(random_state=0), CrossEntropyMethod(random_state=0)):
    agent.learn(pole, 12_000).plot(smooth=20, ax=left)
left.legend()

found = gradient_variance(Reinforce(random_state=0).learn(pole, 100), pole, 200)
names = ["return", "reward_to_go", "baseline"]
right.barh([name.replace("_", " ") for name in names], [found[name]["variance"] for name in names])
right.set_xscale("log")
right.set_xlabel("variance of the gradient of an episode")
right.set_xlim(left=0.3 * np.min([found[name]["variance"] for name in names]))
fig.tight_layout()
