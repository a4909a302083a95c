"""Bandwidths of a density, and what a tolerance buys."""

import time

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(3)
rows = np.concatenate([rng.normal(-1.5, 0.5, 150), rng.normal(1.5, 1.0, 150)])[:, None]
grid = np.linspace(-5, 6, 500)[:, None]
figure, axes = plt.subplots(1, 2, figsize=(10.6, 3.7), layout="constrained")
for h, colour in ((0.05, "0.75"), (0.35, "C0"), (1.5, "C1")):
    density = np.exp(ep.KernelDensity(bandwidth=h).fit(rows).score_samples(grid))
    axes[0].plot(grid, density, color=colour, label=f"h = {h:g}", lw=1.6 if h == 0.35 else 1.1)
axes[0].plot(rows, np.full(len(rows), -0.012), "|", color="0.4", ms=5, alpha=0.5)
axes[0].set(title="300 rows, three bandwidths", xlabel="x", ylabel="density")
axes[0].legend()

X = rng.normal(size=(20_000, 2))
Q = rng.normal(size=(400, 2))
exact = np.exp(ep.KernelDensity(bandwidth=0.3, n_jobs=1).fit(X).score_samples(Q))
tolerances, errors, seconds = [10.0**-k for k in range(6, 0, -1)], [], []
for rtol in tolerances:
    model = ep.KernelDensity(bandwidth=0.3, rtol=rtol, n_jobs=1).fit(X)
    model.score_samples(Q[:1])
    began = time.perf_counter()
    found = np.exp(model.score_samples(Q))
    seconds.append(time.perf_counter() - began)
    errors.append(np.max(np.abs(found / exact - 1)))
axes[1].loglog(tolerances, tolerances, color="0.6", ls="--", label="bound")
axes[1].loglog(tolerances, errors, "o-", label="largest error of 400 densities")
axes[1].set(title="20,000 rows", xlabel="rtol", ylabel="relative error")
axes[1].legend(loc="lower center")
other = axes[1].twinx()
other.loglog(tolerances, 1e3 * np.array(seconds) / len(Q), "s-", color="C1", ms=4)
other.set_ylabel("ms for each density", color="C1")
other.grid(False)
plt.show()
