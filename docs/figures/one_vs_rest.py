"""Regions of three classes: one classifier a class, and softmax regression."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
centres = np.array([[-3.0, 0.0], [0.0, 0.4], [3.0, 0.0]])
y = np.repeat(np.arange(3), 120)
X = centres[y] + rng.normal(size=(360, 2)) * [0.8, 0.9]
a, b = np.meshgrid(np.linspace(-5.5, 5.5, 300), np.linspace(-3.2, 3.6, 200))
points = np.column_stack([a.ravel(), b.ravel()])

figure, panels = plt.subplots(1, 2, figsize=(9.2, 3.7), sharey=True, layout="constrained")
models = {"softmax regression": ep.LogisticRegression(), "one classifier a class": ep.OneVsRest()}
for ax, (title, model) in zip(panels, models.items(), strict=True):
    model.fit(X, y)
    regions = model.predict(points).reshape(a.shape)
    ax.contourf(a, b, regions, levels=[-0.5, 0.5, 1.5, 2.5], colors=["C0", "C1", "C2"], alpha=0.18)
    if title.startswith("one"):
        for k, part in enumerate(model.estimators_):
            scores = part.decision_function(points).reshape(a.shape)
            ax.contour(a, b, scores, levels=[0.0], colors=f"C{k}", linewidths=1.6)
    for k in range(3):
        ax.scatter(*X[y == k].T, s=9, color=f"C{k}", lw=0)
    ax.set(title=f"{title}: {model.score(X, y):.0%} right", xlabel="$x_1$", xlim=(-5.5, 5.5), ylim=(-3.2, 3.6))
    ax.grid(False)
panels[0].set_ylabel("$x_2$")
plt.show()
