"""Probabilities of the mode and averaged over the posterior, in the plane of two features."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import BayesianLogisticRegression

rng = np.random.default_rng(2)
X = np.concatenate([rng.normal([-1, 0], 0.6, (12, 2)), rng.normal([1, 0.5], 0.6, (12, 2))])
y = np.repeat([0, 1], 12)
grid = np.stack(np.meshgrid(np.linspace(-6, 6, 200), np.linspace(-6, 6, 200)), axis=-1)
figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.8), layout="constrained")
for ax, method, title in zip(axes, ("map", "laplace"), ("the mode", "averaged over the posterior"), strict=True):
    model = BayesianLogisticRegression(method, alpha=0.1).fit(X, y)
    p = model.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(200, 200)
    shades = ax.contourf(grid[..., 0], grid[..., 1], p, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.4)
    ax.contour(grid[..., 0], grid[..., 1], p, levels=[0.1, 0.3, 0.5, 0.7, 0.9], colors="black", linewidths=0.8)
    for c, colour, marker in ((0, "#0072B2", "o"), (1, "#D55E00", "^")):
        ax.scatter(*X[y == c].T, s=16, c=colour, marker=marker, linewidths=0)
    ax.set(xticks=[], yticks=[], title=title)
figure.colorbar(shades, ax=axes, label="P(y = 1)", shrink=0.85)
plt.show()
