"""
How much risk is worth a shorter way
====================================

A robot on a grid slips to the side one time in five. Its best policy depends on what a step costs: where steps are
cheap it takes the long way around danger, where they hurt it runs, even into the pit.
"""

import matplotlib.pyplot as plt

from epicycle.control import value_iteration, worlds

# %%
# The 4 x 3 world of Russell and Norvig: +1 and -1 end the walk. Each plan comes with a bound on its distance from the
# best one.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
for ax, cost in zip(axes, (-0.01, -0.04, -2.0), strict=True):
    plan = value_iteration(worlds.russell_norvig_grid(step_reward=cost))
    plan.plot_grid(ax=ax)
    ax.set_title(f"a step costs {-cost:g}")
    print(f"{-cost:g} a step: {plan.certificate}")
plt.show()
