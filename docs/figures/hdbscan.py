"""HDBSCAN: clusters of different densities, what one eps finds, and the hierarchy."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram

import epicycle as ep

rng = np.random.default_rng(3)
parts = [([0, 0], 0.25, 150), ([3, 0.5], 0.9, 150), ([1.2, 4], 0.5, 100)]
X = np.vstack([m + s * rng.normal(size=(n, 2)) for m, s, n in parts] + [rng.uniform([-2, -3], [7, 7], (50, 2))])
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
for ax, model, title in (
    (axes[0], ep.HDBSCAN(min_cluster_size=15).fit(X), "HDBSCAN"),
    (axes[1], ep.DBSCAN(eps=0.25, min_samples=10).fit(X), "DBSCAN, eps = 0.25"),
):
    noise = model.labels_ < 0
    strength = getattr(model, "probabilities_", np.ones(len(X)))
    ax.scatter(*X[noise].T, c="0.6", marker="x", s=14, lw=0.8)
    ax.scatter(*X[~noise].T, c=[f"C{c}" for c in model.labels_[~noise]], s=4 + 14 * strength[~noise])
    ax.set(title=title, xticks=[], yticks=[])
model = ep.HDBSCAN(min_cluster_size=15).fit(X)
with plt.rc_context({"lines.linewidth": 0.5}):
    dendrogram(model.linkage_, ax=axes[2], no_labels=True, color_threshold=0, above_threshold_color="0.3")
axes[2].set(title="hierarchy", ylabel="mutual reachability distance", xlabel="rows")
plt.show()
