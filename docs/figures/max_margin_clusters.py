"""Maximum margin clustering: half-moons with a Gaussian kernel, and long clusters with a linear one."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_moons

import epicycle as ep

rng = np.random.default_rng(0)
moons = make_moons(200, noise=0.06, random_state=3)[0]
sticks = np.column_stack([10 * rng.random(200), np.repeat([0.0, 3.0], 100) + 0.4 * rng.normal(size=200)])
blobs = make_blobs(180, centers=3, random_state=5, cluster_std=1.2)[0]
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.6), layout="constrained")
for ax, X, title, model in (
    (axes[0], moons, "Gaussian kernel", ep.MaxMarginClustering(kernel="rbf", gamma=10.0, C=10.0, random_state=0)),
    (axes[1], sticks, "linear", ep.MaxMarginClustering(random_state=0)),
    (axes[2], blobs, "linear, three clusters", ep.MaxMarginClustering(3, random_state=0)),
):
    model.fit(X)
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    A, B = np.meshgrid(np.linspace(low[0], high[0], 160), np.linspace(low[1], high[1], 160))
    grid = np.column_stack([A.ravel(), B.ravel()])
    ax.contourf(
        A, B, model.predict(grid).reshape(A.shape), levels=[-0.5, 0.5, 1.5, 2.5], colors=["C0", "C1", "C2"], alpha=0.12
    )
    if model.n_clusters == 2:
        score = model.decision_function(grid).reshape(A.shape)
        ax.contour(A, B, score, levels=[-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"], linewidths=0.8)
    ax.scatter(*X.T, c=[f"C{c}" for c in model.labels_], s=9)
    ax.set(title=f"{title}\nJ = {model.objective_:.1f}, none is below {model.lower_bound_:.1f}")
    ax.set_xticks([])
    ax.set_yticks([])
plt.show()
