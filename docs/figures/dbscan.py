"""DBSCAN: clusters of any shape, the effect of eps, and time against the number of rows."""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import epicycle as ep

rng = np.random.default_rng(0)
X, _ = make_moons(500, noise=0.06, random_state=0)
X = np.vstack([X, rng.uniform([-1.6, -1.1], [2.6, 1.6], (80, 2))])
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
model = ep.DBSCAN(eps=0.15, min_samples=6).fit(X)
noise = model.labels_ < 0
axes[0].scatter(*X[~noise].T, c=[f"C{c}" for c in model.labels_[~noise]], s=9)
axes[0].scatter(*X[noise].T, c="0.6", marker="x", s=14, lw=0.8)
axes[0].set(title="clusters, and noise as crosses", xticks=[], yticks=[])

widths = np.linspace(0.04, 0.5, 24)
models = [ep.DBSCAN(eps=eps, min_samples=6).fit(X) for eps in widths]
axes[1].plot(widths, [m.labels_.max() + 1 for m in models], marker="o", ms=3, label="clusters")
axes[1].plot(widths, [100 * (m.labels_ < 0).mean() for m in models], marker="s", ms=3, label="noise, % of rows")
axes[1].set(title="the choice of eps", xlabel="eps")
axes[1].legend(frameon=False)

sizes, seconds = 2 ** np.arange(12, 18), []
for n in sizes:
    rows = rng.normal(size=(n, 3))
    started = time.perf_counter()
    ep.DBSCAN(eps=2.0 / n ** (1 / 3), min_samples=10).fit(rows)
    seconds.append(time.perf_counter() - started)
axes[2].loglog(sizes, seconds, marker="o", ms=4, label="measured")
axes[2].loglog(sizes, seconds[-1] * sizes / sizes[-1], color="0.6", ls="--", label="proportional to n")
axes[2].set(title="normal rows, 3 columns", xlabel="rows", ylabel="seconds")
axes[2].legend(frameon=False)
plt.show()
