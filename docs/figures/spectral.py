"""Spectral clustering: rings that k-means cannot separate, the eigenvectors that do, and the eigengap."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_circles

import epicycle as ep

X, _ = make_circles(500, factor=0.45, noise=0.05, random_state=1)
figure, axes = plt.subplots(1, 4, figsize=(12.4, 3.3), layout="constrained")
round_clusters = ep.KMeans(2, random_state=0).fit(X).labels_
model = ep.SpectralClustering(2, affinity="rbf", gamma=40, random_state=0).fit(X)
for axis, labels, title in ((axes[0], round_clusters, "k-means"), (axes[1], model.labels_, "spectral clustering")):
    axis.scatter(*X.T, c=[f"C{c}" for c in labels], s=7)
    axis.set(title=title, xticks=[], yticks=[], aspect="equal")

u = ep.SpectralEmbedding(2, affinity="rbf", gamma=40, random_state=0).fit_transform(X)
axes[2].scatter(*u.T, c=[f"C{c}" for c in model.labels_], s=7)
axes[2].set(title="two eigenvectors", xlabel="second", ylabel="third", xticks=[], yticks=[])

blobs, _ = make_blobs(400, centers=4, cluster_std=1.1, random_state=8)
values = ep.SpectralEmbedding(9, affinity="rbf", gamma=0.5, random_state=0).fit(blobs).eigenvalues_[:10]
axes[3].plot(np.arange(1, len(values) + 1), values, "o", ms=5)
axes[3].axvspan(4.1, 4.9, color="0.9")
axes[3].set(title="four clusters: the eigengap", xlabel="number", ylabel="eigenvalue")
plt.show()
