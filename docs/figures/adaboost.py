"""The votes of a committee of stumps, and the bound on its training error."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(400, 2))
y = (X[:, 0] ** 2 + X[:, 1] ** 2 < 2.2).astype(int)
model = ep.AdaBoostClassifier(n_estimators=120).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
grid = np.linspace(-2, 2, 300)
A, B = np.meshgrid(grid, grid)
F = model.votes(np.column_stack([A.ravel(), B.ravel()])).reshape(A.shape)
limit = np.abs(F).max()
left.contourf(A, B, F, levels=np.linspace(-limit, limit, 21), cmap="RdBu_r", alpha=0.8)
left.contour(A, B, F, levels=[0], colors="black", linewidths=1.2)
for label, marker, colour in ((0, "o", "#2b6cb0"), (1, "^", "#c0392b")):
    rows = y == label
    left.plot(X[rows, 0], X[rows, 1], marker, ms=3.5, color=colour, mec="white", mew=0.3)
left.set(xlabel="$x_1$", ylabel="$x_2$", title="the vote of 120 stumps")

rounds = np.arange(1, model.n_estimators_ + 1)
right.plot(
    rounds, model.history_["bound"], color="#555555", label=r"bound $\prod 2\sqrt{\varepsilon_m(1-\varepsilon_m)}$"
)
right.plot(rounds, model.history_["training_error"], color="#c0392b", label="training error")
right.set(xlabel="round", ylim=(0, 1), title="training error under its bound")
right.legend(frameon=False)
plt.show()
