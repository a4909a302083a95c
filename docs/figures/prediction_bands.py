"""Intervals of predictions, and standard errors that hold where variances differ."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(0, 10, size=45))
y = 1.5 + 0.8 * x + 1.2 * rng.normal(size=45)
grid = np.linspace(-2, 12, 200)[:, None]
model = ep.LinearRegression().fit(x[:, None], y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
for kind, alpha, label in (("prediction", 0.18, "a new y"), ("confidence", 0.4, "the mean of y")):
    middle, low, high = model.predict_interval(grid, kind=kind)
    left.fill_between(grid[:, 0], low, high, color="C0", alpha=alpha, lw=0, label=f"95 % for {label}")
left.plot(grid[:, 0], middle, color="C0")
left.plot(x, y, "o", color="k", ms=3.5)
left.set(xlabel="x", ylabel="y", xlim=(-2, 12))
left.legend(loc="upper left", frameon=False)

kinds = ["nonrobust", "HC0", "HC3"]
draws, spread = 400, 0.1 + 0.35 * np.abs(x - 5)
targets = 1.5 + 0.8 * x[:, None] + spread[:, None] * rng.normal(size=(45, draws))
true = np.std(ep.LinearRegression().fit(x[:, None], targets).coef_[:, 0])
for i, kind in enumerate(kinds):
    fit = ep.LinearRegression(cov_type=kind).fit(x[:, None], targets)
    errors = [np.sqrt(fit.covariance(target=t)[0, 0]) for t in range(draws)]
    parts = right.violinplot(errors, positions=[i], widths=0.7, showextrema=False)
    parts["bodies"][0].set(facecolor=f"C{i}", alpha=0.6)
    right.plot(i, np.median(errors), "o", color=f"C{i}", ms=5)
right.axhline(true, color="k", lw=1, ls="--", label="true spread of the slope")
right.set_xticks(range(len(kinds)), kinds)
right.set(ylabel="estimated standard error", title="noise that grows towards both ends", ylim=(0, None))
right.legend(loc="lower right", frameon=False)
plt.show()
