"""Linear and quadratic boundaries between two normal classes, and a projection that tells three classes apart."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from epicycle import GaussianDiscriminantAnalysis, LinearDiscriminantAnalysis

COLOURS, MARKERS = ("#0072B2", "#D55E00", "#009E73"), ("o", "^", "s")
rng = np.random.default_rng(3)
y = rng.integers(0, 2, 300)
wide = rng.normal(size=(300, 2)) @ [[1.1, 0.5], [0.0, 0.7]]
narrow = rng.normal(size=(300, 2)) @ [[0.4, -0.2], [0.0, 0.3]] + [1.3, 0.6]
X = np.where(y[:, None], narrow, wide)

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-3, 3.2, 220), np.linspace(-2.6, 2.6, 200)), axis=-1)
for ax, structure, title in zip(axes, ("shared", "per-class"), ("One covariance", "One for each class"), strict=False):
    p = GaussianDiscriminantAnalysis(structure).fit(X, y).predict_proba(grid.reshape(-1, 2))[:, 1]
    p = p.reshape(grid.shape[:2])
    ax.contourf(grid[..., 0], grid[..., 1], p, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.35)
    ax.contour(grid[..., 0], grid[..., 1], p, levels=[0.5], colors="black", linewidths=0.9)
    for c in range(2):
        ax.scatter(*X[y == c].T, s=10, c=COLOURS[c], marker=MARKERS[c], linewidths=0)
    ax.set(xticks=[], yticks=[], xlim=(-3, 3.2), ylim=(-2.6, 2.6), title=title)

wine, grower = load_wine(return_X_y=True)
Z = LinearDiscriminantAnalysis().fit_transform(wine, grower)
for c in range(3):
    axes[2].scatter(*Z[grower == c].T, s=10, c=COLOURS[c], marker=MARKERS[c], linewidths=0, label=f"grower {c + 1}")
axes[2].set(xlabel="first direction", ylabel="second direction", title="Wine, projected")
axes[2].legend(frameon=False, fontsize=8)
