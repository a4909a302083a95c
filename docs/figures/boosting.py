"""Boosted trees on a noisy curve: the fit after a few rounds, and the loss on rows that were kept apart."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, size=600))
truth = np.sin(x) + 0.3 * x
y = truth + 0.4 * rng.normal(size=600)
train = rng.permutation(600) < 400
grid = np.linspace(0, 10, 500)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
left.plot(x[train], y[train], ".", color="0.75", ms=3)
for rounds, colour in ((3, "C1"), (20, "C2"), (100, "C0")):
    model = ep.GradientBoostingRegressor(n_estimators=rounds, max_leaf_nodes=4).fit(x[train, None], y[train])
    left.plot(grid, model.predict(grid[:, None]), color=colour, lw=1.6, label=f"{rounds} rounds")
left.plot(x, truth, "k:", lw=1.2, label="truth")
left.set(xlabel="x", ylabel="y", title="trees of four leaves, learning rate 0.1")
left.legend(loc="upper left")

for rate, colour in ((0.05, "C0"), (0.3, "C1")):
    model = ep.GradientBoostingRegressor(n_estimators=150, learning_rate=rate, max_leaf_nodes=8)
    model.fit(x[train, None], y[train])
    apart = [np.mean((y[~train] - p) ** 2) / 2 for p in model.staged_predict(x[~train, None])]
    right.plot(apart, color=colour, label=f"rate {rate}, rows kept apart")
    right.plot(model.history_.objective, "--", color=colour, lw=1.2, label=f"rate {rate}, training rows")
right.set(xlabel="round", ylabel="mean loss", title="the training loss falls, the other does not", yscale="log")
right.legend()
plt.show()
