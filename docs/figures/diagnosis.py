"""Bias and variance by learning curves, an ablation, and slices with more error than the rest."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(200, 1))
y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=200)
figure, axes = plt.subplots(2, 2, figsize=(10.4, 7.0), layout="constrained")
ep.diagnose.bias_variance(ep.LinearRegression(), X, y, n_jobs=1).plot(axes[0, 0])
axes[0, 0].set_title("a line through a wave: high bias")
deep = ep.DecisionTreeRegressor(random_state=0)
ep.diagnose.bias_variance(deep, X, y, desired=ep.PolynomialRegression(degree=9), n_jobs=1).plot(axes[0, 1])
axes[0, 1].set_title("a deep tree: high variance")

Z = rng.normal(size=(400, 6))
target = 3 * Z[:, 0] + Z[:, 3] + rng.normal(size=400)
groups = {"dose": [0, 1], "age": [2, 3], "town": [4, 5]}
ep.diagnose.ablation(ep.Ridge(), Z, target, groups, n_jobs=1).plot(axes[1, 0])
axes[1, 0].set_title("ablation: what is lost without each group")

U = rng.uniform(size=(1200, 3))
noisy = U[:, 0] + rng.normal(size=1200) * np.where(U[:, 1] > 0.7, 2.0, 0.2)
ep.diagnose.slices(ep.LinearRegression(), U, noisy, max_slices=4, n_jobs=1).plot(axes[1, 1])
axes[1, 1].set_title("slices: where the errors are")
plt.show()
