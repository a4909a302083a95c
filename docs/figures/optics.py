"""OPTICS: rows, their reachability plot with the clusters between steep slopes, and cuts at one height."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle import plot
from epicycle.cluster import cluster_optics_dbscan

rng = np.random.default_rng(3)
parts = [([0, 0], 0.25, 150), ([3, 0.5], 0.9, 150), ([1.2, 4], 0.5, 100)]
X = np.vstack([m + s * rng.normal(size=(n, 2)) for m, s, n in parts] + [rng.uniform([-2, -3], [7, 7], (50, 2))])
model = ep.OPTICS(min_samples=15, min_cluster_size=0.1).fit(X)
cut = cluster_optics_dbscan(
    reachability=model.reachability_, core_distances=model.core_distances_, ordering=model.ordering_, eps=0.6
)
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
noise = model.labels_ < 0
axes[0].scatter(*X[noise].T, c="0.6", marker="x", s=14, lw=0.8)
axes[0].scatter(*X[~noise].T, c=[plot.CYCLE[c % len(plot.CYCLE)] for c in model.labels_[~noise]], s=9)
axes[0].set(title="clusters between steep slopes", xticks=[], yticks=[])
plot.reachability(model.reachability_, model.ordering_, model.labels_, axes[1])
axes[1].set(title="their reachability")
plot.reachability(model.reachability_, model.ordering_, cut, axes[2], eps=0.6)
axes[2].set(title="cut at eps = 0.6")
plt.show()
