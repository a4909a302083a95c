"""A kernel density as a detector: a shape that no normal density has, leaving rows out, the bandwidth by likelihood."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(2)
angle = rng.uniform(0, 2 * np.pi, 400)
ring = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(1, 0.07, (400, 1))
odd = np.array([[0.0, 0.1], [1.0, 1.0], [-1.5, 0.3]])
X = np.concatenate([ring, odd])
figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.6), layout="constrained")
a, b = np.meshgrid(np.linspace(-1.9, 1.9, 120), np.linspace(-1.7, 1.7, 120))
grid = np.column_stack([a.ravel(), b.ravel()])
models = {
    "normal": ep.GaussianAnomalyDetector(covariance="multivariate", contamination=0.02),
    "kernels": ep.KernelDensityAnomalyDetector(bandwidth="likelihood", contamination=0.02),
}
axes[0].plot(*ring.T, ".", color="0.6", ms=3)
axes[0].plot(*odd.T, "x", color="k", ms=8, mew=2)
for (name, model), colour in zip(models.items(), ("C0", "C1"), strict=True):
    model.fit(X)
    axes[0].contour(a, b, model.decision_function(grid).reshape(a.shape), levels=[0.0], colors=colour)
    axes[0].plot([], [], color=colour, label=name)
axes[0].set(title="thresholds of 2% of the rows", xlabel="x1", ylabel="x2")
axes[0].legend(loc="upper left", fontsize=8)

model = models["kernels"]
own = model.density_.score_samples(model._standardised(X))  # with the row's own kernel
left = model.score_samples(X)
order = np.argsort(left)[:60]
axes[1].plot(own[order], color="0.6", label="with its own kernel")
axes[1].plot(left[order], color="C1", label="without")
axes[1].set(title="the 60 most unusual rows", xlabel="rank", ylabel="log-density")
axes[1].legend(fontsize=8)

widths = np.geomspace(0.02, 1.5, 25)
scores = [ep.KernelDensityAnomalyDetector(bandwidth=h).fit(X).score_samples(X).mean() for h in widths]
axes[2].semilogx(widths, scores, color="0.5")
axes[2].axvline(model.bandwidth_, color="C1", lw=1.2, label='"likelihood"')
axes[2].axvline(len(X) ** (-1 / 6), color="C2", lw=1.2, ls="--", label='"scott"')
axes[2].set(title="mean score of the rows of the fit", xlabel="bandwidth", ylim=(-8, None))
axes[2].legend(fontsize=8)
plt.show()
