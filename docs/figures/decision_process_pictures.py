"""Policy and values of the car rental, values of the gambler."""

import matplotlib.pyplot as plt

from epicycle.control import policy_iteration, worlds

fig, axes = plt.subplots(1, 3, figsize=(12, 3.4))
rental = policy_iteration(worlds.car_rental())
rental.plot_policy(ax=axes[0])
rental.plot_values(ax=axes[1])
for ax in axes[:2]:
    ax.invert_yaxis()
    ax.set_xlabel("cars at the second place")
    ax.set_ylabel("cars at the first place")
policy_iteration(worlds.gambler()).plot_values(ax=axes[2])
axes[2].set_xlabel("capital")
axes[2].set_xlim(0, 98.9)
fig.tight_layout()
