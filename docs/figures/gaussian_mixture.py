"""Mixtures of normals: components as ellipses, the criterion against k, and rows with missing entries."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import epicycle as ep


def ellipse(ax, mean, covariance, colour):
    angle = np.linspace(0, 2 * np.pi, 100)
    points = mean[:, None] + 2 * np.linalg.cholesky(covariance) @ [np.cos(angle), np.sin(angle)]
    ax.plot(*points, color=colour)


flowers = load_iris().data
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.5), layout="constrained")
model = ep.GaussianMixture(3, n_init=5, random_state=0, tol=1e-6, max_iter=500).fit(flowers)
label = model.predict(flowers)
axes[0].scatter(flowers[:, 0], flowers[:, 2], c=[f"C{a}" for a in label], s=8)
for a in range(3):
    ellipse(axes[0], model.means_[a, [0, 2]], model.covariances_[a][np.ix_([0, 2], [0, 2])], f"C{a}")
axes[0].set(title="iris: three components", xlabel="sepal length", ylabel="petal length")

for kind in ("full", "tied", "diag", "spherical"):
    mixture = ep.GaussianMixture(covariance_type=kind, n_init=2, reg_covar=1e-3, random_state=0, max_iter=500)
    chosen = mixture.choose_k(flowers, range(1, 8))
    axes[1].plot(list(chosen.scores), list(chosen.scores.values()), marker="o", ms=3, label=kind)
axes[1].set(title="BIC: the lower the better", xlabel="number of components")
axes[1].legend(frameon=False)

rng = np.random.default_rng(0)
shares, gaps = (0.0, 0.15, 0.3, 0.45), {"integrated out": [], "means filled in": []}
for share in shares:
    holes = np.where(rng.random(flowers.shape) < share, np.nan, flowers)
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    for name, table in zip(gaps, (holes, filled), strict=True):
        found = ep.GaussianMixture(3, n_init=2, random_state=0, max_iter=500, reg_covar=1e-3).fit(table)
        gaps[name].append(found.score(flowers))
for name, scores in gaps.items():
    axes[2].plot(shares, scores, marker="o", ms=3, label=name)
axes[2].set(title="missing entries", xlabel="share of entries missing", ylabel="log-likelihood of full rows")
axes[2].legend(frameon=False)
plt.show()
