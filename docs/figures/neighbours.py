"""Regions of the nearest neighbours of two classes, for one and for many neighbours, and the error left out."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import KNeighborsClassifier

rng = np.random.default_rng(4)
n = 180
y = rng.integers(0, 2, n)
angle = rng.uniform(0, np.pi, n) + np.pi * y
X = np.column_stack([np.cos(angle) + y, np.sin(angle) + 0.35 * y]) + 0.28 * rng.standard_normal((n, 2))

counts = np.unique(np.round(np.geomspace(1, 120, 24)).astype(int))
errors = [1 - KNeighborsClassifier(int(k)).fit(X, y).score(None, y) for k in counts]
best = int(counts[int(np.argmin(errors))])

figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-1.9, 2.9, 220), np.linspace(-1.6, 2.0, 180)), axis=-1)
for axis, k in zip(axes, (1, best), strict=False):
    p = KNeighborsClassifier(k).fit(X, y).predict_proba(grid.reshape(-1, 2))[:, 1].reshape(grid.shape[:2])
    axis.contourf(grid[..., 0], grid[..., 1], p, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.35)
    axis.contour(grid[..., 0], grid[..., 1], p, levels=[0.5], colors="black", linewidths=0.9)
    for c, colour, marker in ((0, "#0072B2", "o"), (1, "#D55E00", "^")):
        axis.scatter(*X[y == c].T, s=12, c=colour, marker=marker, linewidths=0)
    axis.set(xticks=[], yticks=[], title=f"{k} neighbour{'s' * (k > 1)}")
axes[2].plot(counts, errors, "o-", color="#0072B2", ms=3.5)
axes[2].axvline(best, color="#6E6E6E", lw=0.9, ls=":")
axes[2].set(xscale="log", xlabel="neighbours", ylabel="error, each row left out", title="How many?")
axes[2].set_ylim(bottom=0)
axes[2].grid(alpha=0.25)
