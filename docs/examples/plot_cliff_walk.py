"""
The safe path and the short one
===============================

A walk along a cliff costs 1 for each step and 100 for a fall. Two agents explore in the same way, with one action in
ten at random. Q-learning learns the best policy, which walks along the edge; SARSA learns what its own steps lead to,
and keeps away from it.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import MDPEnvironment, worlds
from epicycle.rl import SARSA, QLearning

cliff = MDPEnvironment(worlds.cliff_walk(), start=(3, 0), max_steps=1000)
short = QLearning(learning_rate=0.5, discount=1.0, random_state=0).learn(cliff, 100_000)
safe = SARSA(learning_rate=0.1, discount=1.0, random_state=0).learn(cliff, 300_000)

# %%
# Without random actions the short path is better. While learning it is not: who walks along the edge falls now and
# then.

for agent in (short, safe):
    online = agent.history_["return"][-1000:].mean()
    print(f"{type(agent).__name__:10s} learnt {agent.evaluate(cliff, 5, seed=0).mean:.0f}, while learning {online:.1f}")
print(short.certificate_)


# %%
# Values of the states, and the paths of the two policies from the start on the lower left.


def path(agent):
    """Cells from the start to the goal."""
    state, _ = cliff.reset(seed=0)
    cells, over = [cliff.mdp.states[state]], False
    while not over:
        state, _, terminated, truncated, _ = cliff.step(agent.act(state))
        cells.append(cliff.mdp.states[state])
        over = terminated or truncated
    return np.array(cells, dtype=float)


fig, axes = plt.subplots(2, 1, figsize=(7, 4.6), layout="constrained")
for ax, agent in zip(axes, (short, safe), strict=True):
    values = np.full((4, 12), np.nan)
    for (row, column), value in zip(cliff.mdp.states, agent.values_, strict=True):
        values[int(row), int(column)] = value
    values[3, 11] = 0.0
    image = ax.imshow(values, cmap="viridis", vmin=-30, vmax=0)
    cells = path(agent)
    ax.plot(cells[:, 1], cells[:, 0], color="w", lw=3, marker="o", ms=4)
    ax.text(5.5, 3, "cliff", ha="center", va="center")
    ax.set_title(f"{type(agent).__name__}: {len(cells) - 1} steps")
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
fig.colorbar(image, ax=axes, label="value")
plt.show()
