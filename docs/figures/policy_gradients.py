"""A rod on a strong motor: the variance of four estimators of the gradient, and two optimisers on fixed scenarios."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import InvertedPendulum
from epicycle.rl import Pegasus, Reinforce, gradient_variance

rod = InvertedPendulum(max_torque=30).environment(max_steps=30)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
found = gradient_variance(Reinforce(discount=0.9, random_state=0).learn(rod, 60), rod, 200)
names = ["return", "reward_to_go", "baseline", "pathwise"]
left.barh([name.replace("_", " ") for name in names], [found[name]["variance"] for name in names])
left.set_xscale("log")
left.set_xlabel("variance of the gradient of an episode")

m = 8
for optimizer in ("nelder-mead", "bfgs"):
    agent = Pegasus(scenarios=m, optimizer=optimizer, random_state=0).learn(rod, 24_000)
    whole = len(agent.history_["return"]) // m * m
    means = agent.history_["return"][:whole].reshape(-1, m).mean(axis=1)
    right.plot(agent.history_["steps"][m - 1 : whole : m], np.maximum.accumulate(means), label=optimizer)
right.set_xlabel("step")
right.set_ylabel("best mean return so far")
right.legend()
fig.tight_layout()
