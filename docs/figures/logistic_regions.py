"""Logistic regression for two classes and softmax regression for three, on two measurements of the iris data."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import epicycle as ep

X, y = load_iris(return_X_y=True)
X = X[:, [2, 3]] + np.random.default_rng(0).uniform(-0.04, 0.04, size=(150, 2))
colours, markers = ["#0072B2", "#E69F00", "#009E73"], ["o", "s", "^"]
names = ["setosa", "versicolor", "virginica"]
a, b = np.meshgrid(np.linspace(0.7, 7.1, 240), np.linspace(-0.1, 2.7, 200))
grid = np.column_stack([a.ravel(), b.ravel()])

figure, panels = plt.subplots(1, 2, figsize=(9.2, 3.8), sharey=True, layout="constrained")
for ax, classes in zip(panels, ([1, 2], [0, 1, 2]), strict=True):
    rows = np.isin(y, classes)
    model = ep.LogisticRegression(C=10.0).fit(X[rows], y[rows])
    probability = model.predict_proba(grid).reshape(*a.shape, -1)
    if len(classes) == 2:
        lines = ax.contour(
            a,
            b,
            probability[..., 1],
            levels=[0.05, 0.25, 0.5, 0.75, 0.95],
            colors="0.45",
            linewidths=[0.8, 0.8, 1.8, 0.8, 0.8],
        )
        ax.clabel(lines, fontsize=8, fmt="%.2f")
        ax.set_title("two classes: P(virginica)")
    else:
        for k, c in enumerate(classes):
            ax.contourf(a, b, probability[..., k], levels=[0.5, 0.9, 1.01], colors=[colours[c]] * 2, alpha=0.16)
        for k in (0, 2):  # where class k is as probable as the best of the others
            lead = probability[..., k] - np.delete(probability, k, axis=-1).max(axis=-1)
            ax.contour(a, b, lead, levels=[0], colors="0.3", linewidths=1.4)
        ax.set_title("three classes: regions above 0.5 and 0.9")
    for c in classes:
        ax.plot(*X[y == c].T, markers[c], ms=4.5, color=colours[c], mec="white", mew=0.5, label=names[c])
    ax.grid(False)
    ax.set(xlabel="petal length, cm", xlim=(2.7 if len(classes) == 2 else 0.7, 7.1), ylim=(-0.1, 2.7))
    ax.legend(loc="lower left" if len(classes) == 2 else "upper left")
panels[0].set_ylabel("petal width, cm")
plt.show()
