"""The same orbit by three methods: which frequencies they use, and how large the circles are."""

import matplotlib.pyplot as plt
import numpy as np

import epicycle as ep

rng = np.random.default_rng(1)
t = np.sort(rng.uniform(0, 30, size=250))
w, r = np.array([1.0, -1.9, 4.3]), np.array([2.0, 1.0, 0.5])
z = np.exp(1j * np.outer(t, w)) @ r + 0.5 * (rng.normal(size=250) + 1j * rng.normal(size=250))

grid = 2 * np.pi / 30 * np.arange(-40, 41)
models = {
    "boosting, three circles": ep.EpicycleRegression(3),
    r"lasso, $\alpha = 0.15$": ep.EpicycleRegression(method="lasso", frequencies=grid[grid != 0], alpha=0.15),
    r"ridge, $\alpha = 1$": ep.EpicycleRegression(method="ridge", frequencies=grid[grid != 0], alpha=1.0),
}
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.2), layout="constrained", sharey=True)
for ax, (title, model) in zip(axes, models.items(), strict=True):
    model.fit(t[:, None], z)
    ax.vlines(model.frequencies_, 0, model.amplitudes_, color="C0", lw=2)
    ax.plot(model.frequencies_, model.amplitudes_, "o", ms=3.5, color="C0")
    ax.plot(w, r, "x", color="C5", ms=8, mew=2, label="truth")
    ax.set(title=title, xlabel="frequency", xlim=(-6, 6), ylim=(0, 2.3))
axes[0].set_ylabel("radius")
axes[0].legend(loc="upper left")
plt.show()
