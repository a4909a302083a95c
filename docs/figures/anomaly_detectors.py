"""Normal densities as detectors: joint columns, a transform, the threshold of the largest F1."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(4)
z = rng.normal(size=(400, 1))
X = np.hstack([z, 0.8 * z + 0.35 * rng.normal(size=(400, 1))])
odd = np.array([[1.2, -1.1]])
figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.5), layout="constrained")
a, b = np.meshgrid(np.linspace(-3.5, 3.5, 140), np.linspace(-3, 3, 140))
grid = np.column_stack([a.ravel(), b.ravel()])
axes[0].plot(*X.T, ".", color="0.6", ms=3)
for covariance, colour in (("independent", "C0"), ("multivariate", "C1")):
    model = ep.GaussianAnomalyDetector(covariance=covariance, contamination=0.02).fit(X)
    axes[0].contour(a, b, model.decision_function(grid).reshape(a.shape), levels=[0.0], colors=colour)
    axes[0].plot([], [], color=colour, label=covariance)
axes[0].plot(*odd.T, "x", color="k", ms=8, mew=2)
axes[0].set(title="thresholds of 2% of the rows", xlabel="x1", ylabel="x2")
axes[0].legend(loc="upper left")

column = rng.lognormal(0, 0.9, size=(2000, 1))
model = ep.GaussianAnomalyDetector(transforms="auto").fit(column)
standard = (column - column.mean()) / column.std()
axes[1].hist(standard, bins=np.linspace(-4, 6, 60), color="0.7", density=True, label="column")
y = model._columns().standardised(column)
axes[1].hist(y, bins=np.linspace(-4, 6, 60), color="C2", alpha=0.6, density=True, label=model.transforms_["x0"])
t = np.linspace(-4, 6, 300)
axes[1].plot(t, np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi), color="k", lw=1)
axes[1].set(title="a transform chosen by likelihood", xlabel="standard deviations")
axes[1].legend()

rows = np.concatenate([rng.normal(size=(600, 2)), rng.normal(size=(40, 2)) * 1.2 + 3])
label = np.arange(640) >= 600
model = ep.GaussianAnomalyDetector().fit(rows, label)
scores = model.score_samples(rows)
cuts = np.linspace(scores.min(), scores.max(), 300)
hits = np.array([(scores[label] < c).sum() for c in cuts])
told = np.array([(scores < c).sum() for c in cuts])
axes[2].plot(cuts, hits / np.maximum(told, 1), color="0.6", label="precision")
axes[2].plot(cuts, hits / 40, color="0.6", ls="--", label="recall")
axes[2].plot(cuts, 2 * hits / (told + 40), color="C0", label="F1")
axes[2].axvline(model.offset_, color="C1", lw=1.2, label="threshold")
axes[2].set(title="labelled rows choose the threshold", xlabel="log-density")
axes[2].legend(loc="center left", fontsize=8)
plt.show()
