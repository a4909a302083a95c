"""A grid with a planted reward, and the rewards that three methods find from the expert's actions."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle.control import policy_iteration, worlds
from epicycle.rl import InverseRL

grid = worlds.grid_world(
    "....+\n.pp..\n.pp..\n.....\n.....", rewards={"p": -1.0}, step_reward=-0.05, slip=0.3, discount=0.9
)
solution = policy_iteration(grid)
planted = np.full(25, -0.05)
planted[grid.is_terminal] = grid.terminal_values_[grid.is_terminal]
arrows = {"N": "\u2191", "E": "\u2192", "S": "\u2193", "W": "\u2190"}
fig, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
titles = ["planted reward", "maximum entropy", "apprenticeship", "linear programming"]
found = [None, *(InverseRL(m).fit(grid, solution.policy) for m in ("max_entropy", "apprenticeship"))]
found.append(InverseRL("linear_programming", penalty=0.5).fit(grid, solution.policy))
for ax, title, model in zip(axes, titles, found, strict=True):
    reward = planted if model is None else model.reward_
    policy = solution.policy if model is None else grid.actions[model.policy_]
    ax.imshow(reward.reshape(5, 5), cmap="RdBu", vmin=-np.abs(reward).max(), vmax=np.abs(reward).max())
    for (row, column), action, end in zip(grid.states, policy, grid.is_terminal, strict=True):
        if not end:
            ax.text(int(column), int(row), arrows[action], ha="center", va="center", fontsize=12)
    ax.set(title=title, xticks=[], yticks=[])
    ax.grid(visible=False)
