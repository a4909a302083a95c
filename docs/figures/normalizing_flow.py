"""Two moons, rows that are drawn, the density, and the codes that rows have."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from epicycle import NormalizingFlow

X, y = make_moons(1500, noise=0.06, random_state=0)
model = NormalizingFlow(max_iter=50, learning_rate_init=0.005, random_state=0).fit(X)
drawn, Z = model.sample(1500, random_state=0), model.transform(X)
a, b = np.meshgrid(np.linspace(-1.5, 2.5, 160), np.linspace(-1, 1.5, 120))
density = np.exp(model.score_samples(np.column_stack([a.ravel(), b.ravel()]))).reshape(a.shape)

fig, axes = plt.subplots(1, 4, figsize=(11, 2.9), layout="constrained")
colours = np.array(["#2a6fbb", "#d1722c"])[y]
axes[0].scatter(*X.T, s=2, c=colours)
axes[1].scatter(*drawn.T, s=2, c="0.4")
axes[2].contourf(a, b, np.sqrt(density), levels=20, cmap="Blues")
axes[3].scatter(*Z.T, s=2, c=colours)
titles = ("rows", "rows that are drawn", "density (its root)", "codes of the rows, z = f(x)")
for ax, title in zip(axes, titles, strict=True):
    ax.set_title(title, fontsize=9)
    ax.set(xticks=[], yticks=[])
for ax in axes[:3]:
    ax.set(xlim=(-1.5, 2.5), ylim=(-1, 1.5))
axes[3].set_aspect("equal")
plt.show()
