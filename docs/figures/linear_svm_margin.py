"""A linear support vector machine with its margin, and how its two solvers close the duality gap."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(4)
y = np.repeat([1, 0], 60)
X = rng.normal(size=(120, 2)) + np.outer(2 * y - 1, [1.3, 1.0])
model = ep.LinearSVC(loss="hinge", C=0.5, tol=1e-8).fit(X, y)
margin = np.where(y == 1, 1, -1) * model.decision_function(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
grid = np.linspace(-4.5, 4.5, 200)
A, B = np.meshgrid(grid, grid)
score = model.decision_function(np.column_stack([A.ravel(), B.ravel()])).reshape(A.shape)
left.contour(A, B, score, levels=[-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"], linewidths=1)
for label, colour in ((0, "C0"), (1, "C1")):
    rows = y == label
    left.scatter(*X[rows].T, s=14, color=colour)
inside = margin <= 1 + 1e-6
left.scatter(*X[inside].T, s=60, facecolors="none", edgecolors="0.2", linewidths=0.8, label="on the margin or beyond")
left.set(title="hinge, C = 0.5", xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), aspect="equal")
left.legend(loc="lower right", fontsize=8)

n = 5000
Z = rng.normal(size=(n, 20))
t = Z @ rng.normal(size=20) / 4 + rng.normal(size=n) > 0
for solver, style in (("newton", "-o"), ("dual-cd", "-")):
    with ep.config(on_nonconvergence="ignore"):
        fit = ep.LinearSVC(loss="hinge", tol=1e-6, solver=solver, random_state=0, max_iter=300).fit(Z, t)
    right.semilogy(np.arange(1, fit.n_iter_ + 1), np.minimum(fit.history_.gap, 1), style, ms=3, label=f'"{solver}"')
right.set(xlabel="passes over 5,000 x 20 rows", ylabel="relative duality gap", xscale="log", title="two solvers")
right.legend()
right.grid(alpha=0.3)
plt.show()
