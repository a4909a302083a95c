"""Rows that are drawn by taking noise away: the paths of one model, and the score that it has learnt."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from epicycle import DiffusionModel

X, _ = make_moons(1500, noise=0.06, random_state=0)
model = DiffusionModel(
    hidden_layer_sizes=(64, 64, 64), learning_rate_init=3e-3, batch_size=128, max_iter=60, random_state=0
)
model.fit(X)
fig, axes = plt.subplots(1, 4, figsize=(10, 2.7), layout="constrained", sharex=True, sharey=True)
axes[0].plot(*X.T, ".", ms=2, color="0.5")
axes[0].set_title("rows")
for ax, t in zip(axes[1:3], (250, 50), strict=True):
    x, y = np.meshgrid(np.linspace(-2, 3, 17), np.linspace(-1.5, 2, 15))
    grid = np.column_stack([x.ravel(), y.ravel()])
    score = model.log_density_gradient(grid, t)
    score /= 1 + np.linalg.norm(score, axis=1, keepdims=True) / 4
    ax.plot(*X[:400].T, ".", ms=1, color="0.7")
    ax.quiver(*grid.T, *score.T, color="C0", width=0.005)
    ax.set_title(f"gradient at noise level {t}")
axes[3].plot(*model.sample(1500, random_state=0).T, ".", ms=2, color="C0")
axes[3].set_title("rows that are drawn")
for ax in axes:
    ax.set(xlim=(-2, 3), ylim=(-1.5, 2), xticks=[], yticks=[])
plt.show()
