"""Carbon dioxide at Mauna Loa: four parts of a kernel, learnt until 2003, and what they say of the years after."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle.kernel import Gaussian, Periodic, RationalQuadratic

folder = Path(__file__).parent if "__file__" in globals() else Path()  # Sphinx runs it in its folder
table = np.loadtxt(folder / "mauna_loa_co2.txt")
x = (1958 + np.arange(len(table))[:, None] + (np.arange(12) + 0.5) / 12).ravel()
y = table.ravel()
early, late = np.isfinite(y) & (x < 2004), np.isfinite(y) & (x >= 2004)
level = y[early].mean()

year = Periodic(1.3, bounds={"period": "fixed"})  # a period of one year, which is known
kernel = (
    66.0**2 * Gaussian(67.0)  # a smooth rise
    + 2.4**2 * (Gaussian(90.0) * year)  # seasons, that may change slowly
    + 0.66**2 * RationalQuadratic(1.2, alpha=0.78)  # irregularities of some years
    + 0.18**2 * Gaussian(0.13)  # and of some weeks, beside independent noise
)
model = ep.GaussianProcessRegressor(kernel, noise=0.19**2).fit(x[early, None], y[early] - level)

grid = np.linspace(1958, 2020, 900)[:, None]
mean, interval = model.predict(grid, return_interval=True, include_noise=True)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained", width_ratios=(1.25, 1))
for axes in (left, right):
    axes.fill_between(grid[:, 0], *(interval + level).T, color="C0", alpha=0.3, lw=0, label="95 % of a month")
    axes.plot(grid, mean + level, color="C0", lw=0.8)
    axes.plot(x[early], y[early], "k.", ms=2.5, label="545 months, learnt from")
    axes.plot(x[late], y[late], ".", color="C3", ms=2.5, label="after them")
    axes.axvline(2004, color="0.6", lw=0.8, ls="--")
    axes.set(xlabel="year")
left.set(
    ylabel="CO$_2$ in parts per million", title=f"log marginal likelihood {model.log_marginal_likelihood_value_:.1f}"
)
left.legend(loc="upper left")
right.set(xlim=(1999, 2020), ylim=(362, 415), xticks=range(2000, 2021, 5), title="continued")
plt.show()
