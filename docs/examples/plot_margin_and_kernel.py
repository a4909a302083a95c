"""
A margin in another space
=========================

A support vector machine separates classes with the widest margin, in the space of its kernel. Two arguments decide
how it bends: how much an error costs, and how far a row reaches.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import epicycle as ep

X, y = make_moons(160, noise=0.25, random_state=1)
X_new, y_new = make_moons(4000, noise=0.25, random_state=2)
A, B = np.meshgrid(np.linspace(-1.7, 2.7, 180), np.linspace(-1.3, 1.8, 140))
grid = np.column_stack([A.ravel(), B.ravel()])

# %%
# From a nearly straight line to islands around single rows. The numbers are the support vectors, and the accuracy on
# new rows; on the rows of the fit it would rise to the end.

figure, axes = plt.subplots(2, 3, figsize=(11, 5.6), layout="constrained", sharex=True, sharey=True)
for row, C in zip(axes, (0.3, 30.0), strict=True):
    for ax, gamma in zip(row, (0.1, 1.0, 30.0), strict=True):
        model = ep.SVC(C=C, gamma=gamma).fit(X, y)
        score = model.decision_function(grid).reshape(A.shape)
        ax.contourf(A, B, score > 0, levels=[-0.5, 0.5, 1.5], colors=["C0", "C1"], alpha=0.15)
        ax.contour(A, B, score, levels=[-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"], linewidths=0.9)
        for label in (0, 1):
            ax.plot(*X[y == label].T, ".", color=f"C{label}", ms=5)
        support = X[model.support_]
        ax.plot(*support.T, "o", mfc="none", mec="0.3", ms=7, mew=0.6)
        right = np.mean(model.predict(X_new) == y_new)
        ax.set(title=f"C = {C:g}, gamma = {gamma:g}: {len(support)} vectors, {right:.1%}", xticks=[], yticks=[])
plt.show()

# %%
# However the boundary looks, the objective is convex, and how far it is from its minimum is known:

print(model.certificate_)
