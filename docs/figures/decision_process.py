"""Values and policy of the 4 x 3 grid, and how the bound of value iteration falls against its residual."""

import matplotlib.pyplot as plt

from epicycle.control import modified_policy_iteration, value_iteration, worlds

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), width_ratios=[1.2, 1])
value_iteration(worlds.russell_norvig_grid()).plot_grid(ax=left)
left.set_title("the 4 x 3 grid")
mdp = worlds.random_mdp(2000, 8, discount=0.99, random_state=0)
for label, planner in (("value iteration", value_iteration), ("modified policy iteration", modified_policy_iteration)):
    planner(mdp, tol=1e-10).plot(ax=right, label=label, marker=".")
right.set_title("2,000 states, discount 0.99")
right.legend()
fig.tight_layout()
