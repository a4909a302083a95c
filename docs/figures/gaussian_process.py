"""Functions before and after the data; the interval of the function and of an observation; inducing rows."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep
from epicycle.kernel import Gaussian, Matern

rng = np.random.default_rng(3)
grid = np.linspace(0, 10, 300)[:, None]
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.6), layout="constrained", sharey=True)


def band(axes, interval, colour, label, alpha=0.25):
    axes.fill_between(grid[:, 0], interval[:, 0], interval[:, 1], color=colour, alpha=alpha, lw=0, label=label)


kernel = 1.0 * Gaussian(1.0)
x = np.array([1.0, 2.2, 3.0, 5.5, 7.0])[:, None]
y = np.sin(x[:, 0]) + 0.3 * x[:, 0] - 1
exact = ep.GaussianProcessRegressor(kernel, noise=1e-6, optimizer=None).fit(x, y)
mean, interval = exact.predict(grid, return_interval=True)
prior = np.linalg.cholesky(kernel(grid) + 1e-8 * np.eye(300)) @ rng.normal(size=(300, 3))
left.plot(grid, prior, color="0.75", lw=0.9)
band(left, interval, "C0", "95 %")
left.plot(grid, exact.sample_y(grid, 4, random_state=0), color="C0", lw=0.9)
left.plot(x, y, "ko", ms=5)
left.set(title="drawn before (grey) and after five points", xlabel="x", ylabel="f")
left.legend(loc="upper left")

x = np.concatenate([rng.uniform(0, 6, 45), rng.uniform(8, 10, 12)])[:, None]
y = np.sin(x[:, 0]) + 0.1 * x[:, 0] + 0.3 * rng.normal(size=57)
model = ep.GaussianProcessRegressor(1.0 * Matern(1.0, nu=2.5)).fit(x, y)
mean, of_f = model.predict(grid, return_interval=True)
_, of_y = model.predict(grid, return_interval=True, include_noise=True)
band(middle, of_y, "C1", "95 % of y", 0.2)
band(middle, of_f, "C0", "95 % of f", 0.35)
middle.plot(grid, mean, color="C0", lw=1.6)
middle.plot(x, y, "k.", ms=4)
middle.plot(grid, np.sin(grid) + 0.1 * grid, "k:", lw=1.2)
middle.set(title=f"noise learnt: {model.noise_variance_**0.5:.2f} (0.30)", xlabel="x", ylim=(-3.2, 3.2))
middle.legend(loc="lower left", ncols=2)

x = rng.uniform(0, 10, 3000)[:, None]
y = np.sin(x[:, 0]) + 0.1 * x[:, 0] + 0.3 * rng.normal(size=3000)
few = ep.GaussianProcessRegressor(1.0 * Matern(1.0, nu=2.5), n_inducing=20, random_state=0).fit(x, y)
mean, of_f = few.predict(grid, return_interval=True)
right.plot(x, y, ",", color="0.6")
band(right, of_f, "C0", "95 % of f", 0.5)
right.plot(grid, mean, color="C0", lw=1.6)
right.plot(few.X_fit_[:, 0], np.full(len(few.X_fit_), -2.9), "|", color="C3", ms=12, label="20 inducing rows")
right.set(title="3,000 rows", xlabel="x")
right.legend(loc="upper left")
plt.show()
