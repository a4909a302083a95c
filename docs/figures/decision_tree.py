"""A tree for the iris flowers, and the path of its pruning on noisier data."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_iris

import epicycle as ep

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6), width_ratios=(1.9, 1), layout="constrained")
iris = load_iris(as_frame=True)
ep.DecisionTreeClassifier(max_depth=3).fit(iris.data, iris.target_names[iris.target]).plot(ax=left)

X, y = load_diabetes(return_X_y=True)
train = np.random.default_rng(0).permutation(len(y)) < 300
path = ep.DecisionTreeRegressor(min_samples_leaf=3).cost_complexity_pruning_path(X[train], y[train])
alphas = path.ccp_alphas[path.ccp_alphas > 0][::3]
fits = [ep.DecisionTreeRegressor(min_samples_leaf=3, ccp_alpha=a).fit(X[train], y[train]) for a in alphas]
for rows, name, colour in ((train, "training rows", "C0"), (~train, "other rows", "C1")):
    errors = [np.mean((m.predict(X[rows]) - y[rows]) ** 2) for m in fits]
    right.step(alphas, errors, where="post", color=colour, label=name)
right.set(xscale="log", xlabel="ccp_alpha", ylabel="mean squared error", title="pruning a tree of the diabetes data")
right.legend()
plt.show()
