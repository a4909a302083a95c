"""
Clusters of any shape
=====================

Five sets of points in the plane, five methods. Each finds the shapes that its objective describes, and none finds all
of them: the picture is the quickest way to see what an objective asks for.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons

import epicycle as ep

n, rng = 500, np.random.default_rng(0)
stretched = make_blobs(n, centers=3, random_state=170)[0] @ [[0.6, -0.6], [-0.4, 0.8]]
tables = {
    "rings": make_circles(n, factor=0.5, noise=0.05, random_state=0)[0],
    "moons": make_moons(n, noise=0.06, random_state=0)[0],
    "unequal spread": make_blobs(n, cluster_std=[1.0, 2.5, 0.5], random_state=170)[0],
    "stretched": stretched,
    "nothing": rng.uniform(size=(n, 2)),
}
tables = {name: (X - X.mean(axis=0)) / X.std(axis=0) for name, X in tables.items()}

# %%
# Centres, components with covariances, merging by average distance, nearness by a kernel, and density. All but the
# last are told the number of clusters; HDBSCAN finds it, and leaves noise out.


def methods(k: int) -> dict[str, object]:
    return {
        "KMeans": ep.KMeans(k, random_state=0),
        "GaussianMixture": ep.GaussianMixture(k, n_init=3, random_state=0),
        "Agglomerative": ep.AgglomerativeClustering(k, linkage="average"),
        "Spectral": ep.SpectralClustering(k, gamma=20.0, random_state=0),
        "HDBSCAN": ep.HDBSCAN(min_cluster_size=25),
    }


figure, axes = plt.subplots(5, 5, figsize=(10, 9.6), layout="constrained")
for row, (name, X) in zip(axes, tables.items(), strict=True):
    count = 2 if name in ("rings", "moons") else 3
    for ax, (title, method) in zip(row, methods(count).items(), strict=True):
        labels = method.fit_predict(X)
        ax.scatter(*X.T, s=5, c=["0.75" if k < 0 else f"C{k % 6}" for k in labels])
        ax.set(xticks=[], yticks=[])
        if ax in axes[0]:
            ax.set_title(title)
    row[0].set_ylabel(name)
plt.show()

# %%
# In the last row there is nothing to find. ``epicycle cluster`` tests that before it says how many clusters there
# are; here the silhouette, which is 1 for compact clusters far apart, is a first hint.

for name, X in tables.items():
    labels = ep.KMeans(3, random_state=0).fit_predict(X)
    print(f"{name:15} silhouette of three centres {ep.metrics.silhouette_score(X, labels):.2f}")
