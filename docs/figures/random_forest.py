"""Out-of-bag error beside the test error, two kinds of importance, and quantiles from the leaves."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 6))
y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.5 * X[:, 3] + 0.5 * rng.normal(size=3000)
train = np.arange(3000) < 1000
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.5, 3.7), layout="constrained")

forest = ep.RandomForestRegressor(n_estimators=150, oob_score=True, max_features=0.5, random_state=0)
forest.fit(X[train], y[train])
trees = np.array([tree.predict(X[~train]) for tree in forest.estimators_])
means = np.cumsum(trees, axis=0) / np.arange(1, 151)[:, None]
left.plot(np.arange(1, 151), forest.history_.objective, label="out of bag")
left.plot(np.arange(1, 151), np.mean((means - y[~train]) ** 2, axis=1), label="new rows")
left.set(xlabel="trees", ylabel="mean squared error", title="the out-of-bag error is honest")
left.legend()

rise, error = forest.permutation_importances(X[train], y[train])
place = np.arange(6)
middle.barh(place - 0.2, forest.feature_importances_, 0.38, label="impurity (share)")
middle.barh(place + 0.2, rise / rise.sum(), 0.38, xerr=2 * error / rise.sum(), label="shuffled, out of bag (share)")
middle.set(yticks=place, yticklabels=[f"x{j}" for j in place], title="what features are worth")
middle.invert_yaxis()
middle.legend(loc="lower right")

x = rng.uniform(0, 1, size=2000)
noisy = np.sin(6 * x) + (0.05 + 0.5 * x) * rng.normal(size=2000)
quantile = ep.RandomForestRegressor(n_estimators=200, min_samples_leaf=25, keep_leaf_values=True, random_state=0)
quantile.fit(x[:, None], noisy)
grid = np.linspace(0, 1, 300)
low, half, high = quantile.predict_quantiles(grid[:, None], (0.05, 0.5, 0.95)).T
right.plot(x, noisy, ".", color="0.8", ms=2)
right.fill_between(grid, low, high, color="C0", alpha=0.25, lw=0, label="5% to 95%")
right.plot(grid, half, color="C0", label="median")
right.set(xlabel="x", ylabel="y", title="quantiles from the leaves")
right.legend()
plt.show()
