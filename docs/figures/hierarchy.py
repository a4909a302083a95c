"""Three linkages of one data set, and how the time of a fit grows with the rows."""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import epicycle as ep
from epicycle import plot

moons, _ = make_moons(300, noise=0.06, random_state=0)
figure, axes = plt.subplots(2, 3, figsize=(10.4, 5.8), layout="constrained", height_ratios=(1, 1.1))
for ax, below, linkage in zip(axes[0], axes[1], ("single", "average", "ward"), strict=True):
    model = ep.AgglomerativeClustering(2, linkage=linkage).fit(moons)
    ax.scatter(*moons.T, c=[plot.CYCLE[c] for c in model.labels_], s=7)
    ax.set(title=f"{linkage} linkage, two clusters", xticks=[], yticks=[])
    if linkage == "ward":
        continue
    plot.dendrogram(model, ax=below, most=30)
    below.set_xticks([])

rng = np.random.default_rng(0)
sizes = np.array([250, 500, 1000, 2000, 4000])
last = axes[1, 2]
for linkage, algorithm in (("single", "vectors"), ("ward", "vectors"), ("average", "matrix")):
    seconds = []
    for n in sizes:
        X = rng.normal(size=(n, 10))
        model = ep.AgglomerativeClustering(linkage=linkage, algorithm=algorithm, n_jobs=1)
        best = np.inf
        for _ in range(2):
            started = time.perf_counter()
            model.fit(X)
            best = min(best, time.perf_counter() - started)
        seconds.append(best)
    last.plot(sizes, seconds, marker="o", ms=4, label=linkage)
last.plot(sizes, seconds[-1] * (sizes / sizes[-1]) ** 2, color="0.5", ls="--", lw=1, label="square of the rows")
last.set(xscale="log", yscale="log", xlabel="rows, ten columns", ylabel="seconds")
last.set_xticks(sizes, [str(n) for n in sizes])
last.minorticks_off()
last.legend(frameon=False)
plt.show()
