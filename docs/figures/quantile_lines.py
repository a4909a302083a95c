"""Quantile lines of data whose spread grows, and least absolute deviations beside least squares."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 4, 300))
y = 1 + x + (0.2 + 0.5 * x) * rng.normal(size=300)
taus = [0.05, 0.25, 0.5, 0.75, 0.95]
model = ep.QuantileRegressor(quantile=taus, alpha=0).fit(x[:, None], y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
left.plot(x, y, ".", color="0.6", ms=4)
ends = np.array([[0.0], [4.0]])
for tau, line in zip(taus, model.predict(ends).T, strict=True):
    left.plot(ends[:, 0], line, color="C0", lw=2.2 if tau == 0.5 else 1.2)
    left.annotate(f"{tau:g}", (4.0, line[1]), (4, 0), textcoords="offset points", va="center", fontsize=9)
left.set(xlabel="x", ylabel="y", title="a line for each quantile", xlim=(0, 4.45))

z = np.linspace(0, 4, 25)
t = 0.5 + z + 0.25 * rng.normal(size=25)
t[-4:] = [0.2, 0.4, 0.1, 0.3]
right.plot(z, t, ".", color="0.3", ms=6)
for estimator, label, style in (
    (ep.LinearRegression(), "least squares", "--"),
    (ep.QuantileRegressor(alpha=0), "least absolute deviations", "-"),
):
    right.plot(ends[:, 0], estimator.fit(z[:, None], t).predict(ends), style, label=label)
right.set(xlabel="x", ylabel="y", title="four outliers")
right.legend(loc="upper left")
plt.show()
