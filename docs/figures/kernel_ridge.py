"""Kernel ridge regression with three penalties, and the leave-one-out error by which one of them is chosen."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle.kernel import Gaussian

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0, 6, 45))[:, None]
y = np.sin(2 * x[:, 0]) + 0.3 * x[:, 0] + 0.3 * rng.normal(size=45)
line = np.linspace(-0.3, 6.3, 500)[:, None]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.7), layout="constrained")
chosen = ep.KernelRidge("loo", kernel=Gaussian(0.4)).fit(x, y)
left.plot(x, y, "o", color="0.6", ms=4)
for alpha, colour, style in ((1e-6, "C1", "-"), (chosen.alpha_, "C0", "-"), (30.0, "C2", "-")):
    model = ep.KernelRidge(alpha, kernel=Gaussian(0.4)).fit(x, y)
    left.plot(line, model.predict(line), style, color=colour, lw=1.6, label=rf"$\alpha$ = {alpha:.2g}")
left.plot(line, np.sin(2 * line) + 0.3 * line, "k:", lw=1.2, label="truth")
left.set(xlabel="x", ylabel="y", ylim=(-1.6, 3.4), title="no penalty interpolates, a large one flattens")
left.legend(loc="upper left", ncols=2)

grid = np.geomspace(1e-6, 100, 60)
path = ep.KernelRidge(grid, kernel=Gaussian(0.4)).fit(x, y)
right.loglog(path.alphas_, path.loo_errors_[:, 0], color="C0", label="rows left out")
inside = [np.square(y - ep.KernelRidge(a, kernel=Gaussian(0.4)).fit(x, y).predict(x)).mean() for a in grid]
right.loglog(grid, inside, "--", color="C1", label="rows of the fit")
right.plot(chosen.alpha_, chosen.loo_errors_.min(), "o", color="C0", ms=7)
right.set(xlabel=r"$\alpha$", ylabel="mean squared error", ylim=(0.03, 10), title="all penalties from one spectrum")
right.legend(loc="lower right")
plt.show()
