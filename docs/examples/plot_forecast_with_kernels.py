"""
A forecast that knows its limits
================================

A kernel says what kind of function to expect: a slow rise, a year that repeats, noise. A Gaussian process learns the
sizes of these parts from the series, continues it, and says how far it can be trusted.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle.kernel import Gaussian, Periodic

rng = np.random.default_rng(0)
t = np.arange(0, 12, 1 / 12)
truth = 0.6 * np.sin(2 * np.pi * t / 9) + np.sin(2 * np.pi * t) + 0.4 * np.sin(4 * np.pi * t + 1)
y = truth + 0.2 * rng.normal(size=len(t))
known = t < 8

# %%
# Two kernels on the same months: one expects a smooth function, the other a smooth function and a year.

smooth = 1.0 * Gaussian(1.0)
with_year = 1.0 * Gaussian(4.0) + 1.0 * Periodic(1.0, bounds={"period": "fixed"})
figure, axes = plt.subplots(1, 2, figsize=(11, 3.9), layout="constrained", sharey=True)
for ax, (name, kernel) in zip(axes, {"smooth": smooth, "smooth and a year": with_year}.items(), strict=True):
    model = ep.GaussianProcessRegressor(kernel, noise=0.04).fit(t[known, None], y[known])
    mean, interval = model.predict(t[:, None], return_interval=True, include_noise=True)
    inside = np.mean((y[~known] > interval[~known, 0]) & (y[~known] < interval[~known, 1]))
    ax.fill_between(t, *interval.T, color="C0", alpha=0.25, lw=0, label="95% of new months")
    ax.plot(t, mean, color="C0")
    ax.plot(t[known], y[known], "k.", ms=3)
    ax.plot(t[~known], y[~known], ".", color="C3", ms=3, label="what came")
    ax.axvline(8, color="0.5", lw=1, ls=":")
    ax.set(xlabel="year", title=f"{name}: log evidence {model.log_marginal_likelihood_value_:.0f}")
    error = np.sqrt(np.mean((mean - y)[~known] ** 2))
    print(f"{name:18} error of the next four years {error:.2f}, {inside:.0%} of them inside")
axes[0].legend(loc="lower left", fontsize=8)
plt.show()

# %%
# The evidence prefers the second, from the first eight years alone. The first one knows that it does not know: its
# interval opens within months.
