"""Regret of three ways to explore the river, and what was tried."""

import matplotlib.pyplot as plt

from epicycle.control import MDPEnvironment, ModelBasedAgent, worlds

river = MDPEnvironment(worlds.river_swim(), start=0)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
for exploration in ("optimistic", "posterior", "greedy"):
    agent = ModelBasedAgent(exploration=exploration, random_state=0).learn(river, 3000)
    agent.plot(ax=left)
    right.plot(agent.rewards_.cumsum(), label=exploration)
left.set_ylim(0, 1500)
left.set_title("what the plans lost")
left.legend()
right.set_title("what was earned")
right.set_xlabel("step")
right.set_ylabel("sum of rewards")
fig.tight_layout()
