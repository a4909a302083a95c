"""Factor models: loadings before and after a rotation, and held-out likelihood against the number of factors."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

import epicycle as ep

rng = np.random.default_rng(0)
W = np.zeros((3, 12))
W[0, :5], W[1, 4:9], W[2, 8:] = 1.0, 1.2, 0.9
noise = rng.uniform(0.2, 2.5, 12)
X = rng.normal(size=(400, 3)) @ W + rng.normal(size=(400, 12)) * np.sqrt(noise)

figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4), width_ratios=(1, 1, 1.3), layout="constrained")
for ax, rotation, title in ((axes[0], None, "loadings"), (axes[1], "varimax", "after varimax")):
    loadings = ep.FactorAnalysis(3, tol=1e-4, rotation=rotation).fit(X).components_
    image = ax.imshow(loadings.T, cmap="RdBu_r", vmin=-1.4, vmax=1.4, aspect="auto")
    ax.set(title=title, xlabel="factor", xticks=range(3), xticklabels=[1, 2, 3])
    ax.grid(False)
axes[0].set_ylabel("column")
figure.colorbar(image, ax=axes[1], shrink=0.8)

sizes = range(8)
for cls, name in ((ep.FactorAnalysis, "factor analysis"), (ep.ProbabilisticPCA, "probabilistic PCA")):
    scores = [cross_val_score(cls(k), X, cv=4).mean() for k in sizes]
    axes[2].plot(sizes, scores, marker="o", ms=4, label=name)
axes[2].set(title="log-likelihood of held-out rows", xlabel="number of factors")
axes[2].legend(frameon=False)
plt.show()
