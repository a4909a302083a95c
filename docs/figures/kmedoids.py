"""K-medoids: medoids and means beside outliers, and the sum of distances from several kinds of starts."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

import epicycle as ep

X, _ = make_blobs(240, centers=[[0, 0], [5, 1], [1.5, 5]], cluster_std=0.8, random_state=0)
X = np.vstack([X, np.random.default_rng(0).normal([11, 9], size=(14, 2))])
figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
medoids = ep.KMedoids(3, random_state=0).fit(X)
means = ep.KMeans(3, n_init=5, random_state=0).fit(X)
axes[0].scatter(*X.T, c=[f"C{c}" for c in medoids.labels_], s=8)
axes[0].scatter(*medoids.cluster_centers_.T, marker="*", s=160, c="black", edgecolor="white", label="medoids")
axes[0].scatter(*means.cluster_centers_.T, marker="X", s=80, c="white", edgecolor="black", label="centers of k-means")
axes[0].set(xticks=[], yticks=[])
axes[0].legend(loc="upper left")

many, _ = make_blobs(1500, centers=25, cluster_std=1.2, random_state=1)
for init, marker in zip(("random", "k-medoids++", "lab", "build"), "osD^", strict=True):
    history = ep.KMedoids(25, init=init, random_state=2).fit(many).history_
    objective = np.asarray(history["objective"])
    axes[1].plot(range(1, len(objective) + 1), objective, marker=marker, ms=4, label=f"start: {init}")
axes[1].set(xlabel="round over all rows", ylabel="sum of distances")
axes[1].locator_params(axis="x", integer=True)
axes[1].set_ylim(top=objective[0] + 32)
axes[1].legend(ncols=2)
plt.show()
