"""Isolation forest: scores over a plane, paths of two rows, explanations of unusual rows."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(1)
X = np.concatenate([rng.normal((-1.5, 0), 0.6, (250, 2)), rng.normal((1.5, 1), (0.9, 0.3), (250, 2))])
odd = np.array([[3.2, -2.4], [-3.6, 2.6], [0.0, 3.3]])
model = ep.IsolationForest(random_state=0).fit(np.concatenate([X, odd]))
figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.6), width_ratios=(1.2, 1, 0.9), layout="constrained")
a, b = np.meshgrid(np.linspace(-4.5, 4.5, 120), np.linspace(-3.5, 4, 100))
scores = model.score_samples(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
shade = axes[0].contourf(a, b, scores, levels=14, cmap="Blues_r")
axes[0].plot(*X.T, ".", color="0.25", ms=2.5)
axes[0].plot(*odd.T, "x", color="C1", ms=8, mew=2.2)
axes[0].set(title="score of 503 rows", xlabel="x1", ylabel="x2", xlim=(-4.5, 4.5), ylim=(-3.5, 4))
figure.colorbar(shade, ax=axes[0])

trees = model.estimators_
for row, colour, name in ((odd[0], "C1", "an anomaly"), (X[0], "C0", "a row of a cluster")):
    lengths = [tree.predict(row[None])[0] for tree in trees]
    axes[1].hist(lengths, bins=np.arange(0, 17), color=colour, alpha=0.6, label=name)
axes[1].set(title="path lengths in 100 trees", xlabel="length", ylabel="trees")
axes[1].legend()

parts = model.explain(odd)
for j in range(2):
    axes[2].barh(np.arange(3) + 0.2 - 0.4 * j, parts[:, j], height=0.38, color=f"C{2 + j}", label=f"x{j + 1}")
axes[2].set_yticks(range(3), [f"({p:g}, {q:g})" for p, q in odd])
axes[2].invert_yaxis()
axes[2].set(title="what makes them unusual", xlabel="shorter paths, in units of c")
axes[2].legend(loc="lower right")
plt.show()
