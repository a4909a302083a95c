"""Local outlier factors of a dense and a thin cluster and a row beside the dense one."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(2)
X = np.concatenate(
    [rng.normal((-2, 0), 0.12, (120, 2)), rng.normal((2, 0), 0.9, (120, 2)), [[-1.0, 0.6], [-0.2, -2.2]]]
)
model = ep.LocalOutlierFactor(n_neighbors=15).fit(X)
factor = -model.negative_outlier_factor_
found = factor > -model.offset_
figure, ax = plt.subplots(figsize=(7.6, 4.2), layout="constrained")
ax.plot(*X.T, ".", color="0.35", ms=3)
ax.scatter(*X.T, s=60 * (factor - 0.9).clip(0) ** 1.2, facecolors="none", edgecolors=np.where(found, "C1", "C0"))
for i in (-2, -1):
    ax.annotate(f"{factor[i]:.1f}", X[i], xytext=(12, 6), textcoords="offset points", color="C1")
ax.set(title="local outlier factors; orange above 1.5", xlabel="x1", ylabel="x2", aspect="equal")
plt.show()
