"""Silhouettes of two clusterings of the same rows, and the stability of k-means against data without clusters."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle.metrics import cluster_stability, silhouette_samples

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(c, 0.7, size=(60, 2)) for c in ((0, 0), (4, 0), (2, 3.5))])
uniform = rng.uniform(X.min(axis=0), X.max(axis=0), size=X.shape)

figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
for ax, k in zip(axes[:2], (3, 5), strict=True):
    labels = ep.KMeans(k, n_init=5, random_state=0).fit_predict(X)
    values = silhouette_samples(X, labels)
    order = np.lexsort((values, labels))
    ax.barh(np.arange(len(X)), values[order], height=1.0, color=[f"C{c}" for c in labels[order]])
    ax.axvline(values.mean(), color="0.2", linestyle="--", linewidth=1)
    ax.set(title=f"{k} clusters, mean {values.mean():.2f}", xlabel="silhouette", yticks=[], xlim=(-0.3, 1))

numbers = range(2, 7)
for rows, name, marker in ((X, "three groups", "o"), (uniform, "uniform", "s")):
    found = [cluster_stability(ep.KMeans(k, n_init=3), rows, random_state=0) for k in numbers]
    axes[2].plot(numbers, [f.mean for f in found], marker=marker, label=name)
    better = [(k, f.mean) for k, f in zip(numbers, found, strict=True) if f.verdict != "no better than chance"]
    if better:
        axes[2].plot(
            *zip(*better, strict=True), "o", markersize=13, fillstyle="none", color="0.3", label="beyond chance"
        )
axes[2].set(title="stability of k-means", xlabel="number of clusters", ylabel="adjusted Rand index", ylim=(0, 1.05))
axes[2].legend(loc="lower left", fontsize=8)
plt.show()
