"""The ten-armed testbed, and the regret of a linear bandit."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.rl import Bandit, LinearArms, LinUCB, NormalArms

testbed = NormalArms(np.random.default_rng(0).standard_normal((500, 10)))
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
for label, strategy, amount in (
    ("greedy", "epsilon_greedy", 0.0),
    ("epsilon 0.1", "epsilon_greedy", 0.1),
    ("UCB, c = 2", "ucb", 2.0),
    ("Thompson", "thompson", 1.0),
    ("gradient", "gradient", 0.1),
):
    result = Bandit(10, strategy=strategy, amount=amount).simulate(testbed, 600, seed=1)
    result.plot("mean_reward", ax=left, label=label, lw=1)
left.legend(fontsize=8)
left.set_title("ten arms")

arms = LinearArms([0.5, -0.2, 0.8, 0.1], n_arms=20)
for width in (0.1, 0.5, 2.0):
    LinUCB(4, width=width).simulate(arms, 600, runs=10, seed=0).plot(ax=right, label=f"LinUCB, c = {width}")
right.legend(fontsize=8)
right.set_title("arms with features")
fig.tight_layout()
