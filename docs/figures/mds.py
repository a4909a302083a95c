"""A map from distances alone, from their order alone, and what a circle's own distances prove."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist, squareform

import epicycle as ep

rng = np.random.default_rng(4)
places = rng.uniform(size=(50, 2)) * [1.6, 1.0]
D = squareform(pdist(places))
noisy = D * squareform(np.exp(0.15 * rng.normal(size=50 * 49 // 2)))

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.5), layout="constrained")
for ax, options, title in (
    (left, {}, "distances with 15% noise"),
    (middle, {"metric_mds": False}, "the order of the same distances"),
):
    model = ep.MDS(metric="precomputed", max_iter=2000, **options).fit(noisy)
    truth, found, error = procrustes(places, model.embedding_)
    ax.plot(*truth.T, "o", mfc="none", color="0.4", label="true places")
    ax.plot(*found.T, ".", color="C0", label="found")
    for a, b in zip(truth, found, strict=True):
        ax.plot(*np.array([a, b]).T, "-", color="0.7", lw=0.8, zorder=0)
    ax.set(title=title, xlabel=f"{error:.1%} of the variance missed", xticks=[], yticks=[], aspect="equal")
left.legend(loc="upper left", fontsize=8)
angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
arc = np.abs(angle[:, None] - angle)
arc = np.minimum(arc, 2 * np.pi - arc)
chord = 2 * np.sin(arc / 2)
for distances, name, mark in ((chord, "chords of a circle", "o"), (arc, "arcs of a circle", "s")):
    n = len(distances)
    H = np.eye(n) - 1 / n
    right.plot(np.linalg.eigvalsh(-0.5 * H @ distances**2 @ H)[::-1], mark, ms=3.5, mfc="none", label=name)
right.axhline(0, color="0.6", lw=0.8)
right.set(title="eigenvalues of doubly centred squares", xlabel="number", yscale="symlog")
right.legend()
plt.show()
