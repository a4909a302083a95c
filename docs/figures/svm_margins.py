"""Support vectors and margins: the hard margin between nearest hull points, a soft margin, a Gaussian kernel."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import ConvexHull

import epicycle as ep

rng = np.random.default_rng(4)
apart = np.vstack([rng.normal((-1.7, -0.8), 0.7, (25, 2)), rng.normal((1.7, 1.0), 0.7, (25, 2))])
mixed = np.vstack([rng.normal((-1.0, -0.5), 1.0, (40, 2)), rng.normal((1.0, 0.7), 1.0, (40, 2))])
radius = np.concatenate([rng.uniform(0, 1.3, 45), rng.uniform(1.5, 2.6, 75)])
angle = rng.uniform(0, 2 * np.pi, 120)
rings = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) + 0.12 * rng.normal(size=(120, 2))

cases = (
    ("hard margin", apart, 25, ep.SVC(C=np.inf, kernel="linear")),
    ("soft margin, C = 1", mixed, 40, ep.SVC(C=1.0, kernel="linear")),
    ("Gaussian kernel, C = 10", rings, 45, ep.SVC(C=10.0, gamma=0.6)),
)
figure, panels = plt.subplots(1, 3, figsize=(11.4, 4.1), layout="constrained")
for ax, (title, X, first, model) in zip(panels, cases, strict=True):
    y = (np.arange(len(X)) >= first).astype(int)
    model.fit(X, y)
    reach = np.abs(X).max() + 0.3
    a, b = np.meshgrid(np.linspace(-reach, reach, 250), np.linspace(-reach, reach, 250))
    values = model.decision_function(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
    ax.contourf(a, b, values, levels=[-1e9, 0, 1e9], colors=["C0", "C1"], alpha=0.13)
    ax.contour(a, b, values, levels=[-1, 0, 1], colors="k", linestyles=["--", "-", "--"], linewidths=[0.9, 1.6, 0.9])
    for k in (0, 1):
        ax.scatter(*X[y == k].T, s=16, color=f"C{k}", lw=0, zorder=3)
    ax.scatter(*X[model.support_].T, s=62, facecolors="none", edgecolors="k", lw=0.9, zorder=4)
    if np.isinf(model.C):
        for k in (0, 1):
            corners = X[y == k][ConvexHull(X[y == k]).vertices]
            ax.fill(*corners.T, facecolor="none", edgecolor=f"C{k}", lw=1.1)
        hulls = model.nearest_hull_points()
        ends = np.array([hulls.negative_point, hulls.positive_point])
        ax.plot(*ends.T, "o-", color="C5", ms=5, lw=2.2, zorder=5)
        ax.annotate(
            f"distance {hulls.distance:.2f}", ends.mean(axis=0), (10, -22), textcoords="offset points", color="C5"
        )
    ax.set(title=f"{title}: {len(model.support_)} support vectors", xlabel="$x_1$")
    ax.set_aspect("equal")
    ax.grid(False)
panels[0].set_ylabel("$x_2$")
plt.show()
