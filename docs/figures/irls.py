"""Iteratively reweighted least squares on the breast cancer data: weights, and how fast it converges."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import epicycle as ep

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
x = X["mean radius"].to_numpy()
sick = (y == 0).to_numpy()

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
grid = np.linspace(x.min(), x.max(), 300)
w, b = 0.0, 0.0
for step in range(1, 6):
    p = 1 / (1 + np.exp(-(b + w * x)))
    weight = p * (1 - p)  # the curvature of each row's loss
    response = b + w * x + (sick - p) / weight
    A = np.column_stack([x, np.ones_like(x)])
    w, b = np.linalg.solve(A.T @ (weight[:, None] * A), A.T @ (weight * response))
    left.plot(grid, 1 / (1 + np.exp(-(b + w * grid))), color=plt.cm.viridis((step - 1) / 4.5), label=f"step {step}")
left.scatter(x, sick, s=5, color="0.4", alpha=0.4, lw=0, zorder=0)
left.set(xlabel="mean radius", ylabel="probability of cancer", title="weighted least squares, again and again")
left.legend(loc="center right")

Z = (X - X.mean()) / X.std()
for label, columns, colour in (("3 features", 3, "C0"), ("8 features", 8, "C2")):
    model = ep.LogisticRegression(C=np.inf, solver="newton", tol=1e-14).fit(Z.iloc[:, :columns], y)
    excess = model.history_.objective - model.history_.objective[-1]
    right.semilogy(np.where(excess > 1e-13, excess, np.nan), "o-", ms=4, color=colour, label=label)
told = Z.iloc[:, :3].assign(told=np.where(np.arange(len(y)) < 20, (y == 0), 0.0))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model = ep.LogisticRegression(C=np.inf, solver="newton").fit(told, y)
rows = model.history_.objective[:-1]
right.semilogy((rows - model.history_.objective[-1])[:16], "o-", ms=4, color="C1", label="3 and a separating one")
right.set(xlabel="iteration", ylabel="objective above its best value", title="quadratic, unless classes are separated")
right.legend()
plt.show()
