"""Rows in five parts, the energy that a model gives to every point, rows that its chains come to, and odd rows."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import EnergyBasedModel

rng = np.random.default_rng(0)
angle = 2 * np.pi * rng.integers(0, 5, 1000) / 5
X = 2 * np.column_stack([np.sin(angle), np.cos(angle)]) + 0.3 * rng.normal(size=(1000, 2))
model = EnergyBasedModel(
    hidden_layer_sizes=(64, 64), learning_rate_init=0.01, n_moves=5, batch_size=128, n_chains=128, max_iter=60,
    n_levels=0, random_state=0,
)  # fmt: skip
model.fit(X)
drawn = model.sample(1000, random_state=0)
a, b = np.meshgrid(np.linspace(-3.2, 3.2, 160), np.linspace(-3.2, 3.2, 160))
energy = model.energy(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
odd = rng.uniform(-3, 3, (80, 2))
limit = np.quantile(model.energy(X), 0.99)
strange = model.energy(odd) > limit

fig, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained", sharex=True, sharey=True)
axes[0].plot(*X.T, ".", ms=2, color="0.5")
axes[1].contourf(a, b, np.minimum(energy, energy.min() + 8), levels=20, cmap="Blues_r")
axes[2].plot(*drawn.T, ".", ms=2, color="C0")
axes[3].contour(a, b, energy, levels=[limit], colors="0.6", linewidths=1)
axes[3].plot(*odd[strange].T, "x", ms=4, color="C1")
axes[3].plot(*odd[~strange].T, "o", ms=3, color="C0")
titles = ("rows", "energy, dark where it is low", "rows that are drawn", "new rows, odd ones crossed")
for ax, title in zip(axes, titles, strict=True):
    ax.set_title(title, fontsize=9)
    ax.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), xticks=[], yticks=[], aspect="equal")
plt.show()
