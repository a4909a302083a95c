"""
What a few rows say about a line
================================

Least squares gives one line. A posterior gives all of them, with their weights: where rows are few the lines fan out,
and a prediction carries that beside the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(4)
x = np.sort(rng.uniform(-1, 1, 24))
y = 0.4 + 1.2 * x + 0.3 * rng.normal(size=24)
grid = np.linspace(-2, 2, 100)[:, None]

figure, axes = plt.subplots(1, 3, figsize=(12, 3.7), layout="constrained", sharey=True)
for ax, n in zip(axes, (3, 8, 24), strict=True):
    rows = np.sort(rng.permutation(24)[:n])
    model = ep.BayesianRidge().fit(x[rows, None], y[rows])
    mean, std = model.predict(grid, return_std=True)
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color="C0", alpha=0.2, lw=0, label="95% of new rows")
    ax.plot(grid[:, 0], mean, color="C0", label="posterior mean")
    line = ep.LinearRegression().fit(x[rows, None], y[rows])
    ax.plot(grid[:, 0], line.predict(grid), color="C1", ls="--", label="least squares")
    ax.plot(x[rows], y[rows], "k.", ms=6)
    ax.set(xlabel="x", title=f"{n} rows", ylim=(-3, 4))
axes[0].legend(fontsize=8, loc="upper left")
axes[0].set_ylabel("y")
plt.show()

# %%
# The evidence chooses how much to shrink: no rows are held out for it.

print(f"precision of the noise {model.alpha_:.2f} (truth {1 / 0.3**2:.2f}), of the coefficients {model.lambda_:.2f}")
print(model.certificate_)
