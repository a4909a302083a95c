"""K-means: clusters, J from several starts, and J against k with its lower bound."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, make_blobs

import epicycle as ep

X, _ = make_blobs(400, centers=6, cluster_std=1.1, random_state=8)
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
model = ep.KMeans(6, random_state=0).fit(X)
axes[0].scatter(*X.T, c=[f"C{c}" for c in model.labels_], s=7)
axes[0].scatter(*model.cluster_centers_.T, marker="X", s=90, c="black", edgecolor="white")
axes[0].set(title="clusters and centers", xticks=[], yticks=[])

runs = ep.KMeans(6, init="random", n_init=3, random_state=1, tol=0).fit(X).history_
start = np.asarray(runs["start"])
for number in range(3):
    objective = np.asarray(runs["objective"])[start == number]
    axes[1].plot(range(1, len(objective) + 1), objective, marker="o", ms=3, label=f"start {number + 1}")
axes[1].set(title="J after every round", xlabel="round", ylabel="J")
axes[1].legend(frameon=False)

flowers = load_iris().data
sizes = range(1, 8)
models = [ep.KMeans(k, n_init=5, random_state=0).fit(flowers) for k in sizes]
axes[2].plot(sizes, [m.inertia_ for m in models], marker="o", ms=4, label="J")
axes[2].plot(sizes, [m.lower_bound_ for m in models], marker="s", ms=4, label="lower bound")
axes[2].set(title="iris", xlabel="number of clusters", yscale="symlog", ylim=(0, None))
axes[2].legend(frameon=False)
plt.show()
