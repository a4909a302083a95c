"""Rows around eight points, rows that a generator draws in the course of a fit, and what it covers."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from epicycle import GAN

rng = np.random.default_rng(0)
angle = 2 * np.pi * rng.integers(0, 8, 1000) / 8
X = 2 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(1000, 2))

fig, axes = plt.subplots(1, 4, figsize=(11, 2.7), layout="constrained")
axes[0].plot(*X.T, ".", ms=2, color="0.5")
axes[0].set_title("rows", fontsize=9)
for ax, epochs in zip(axes[1:3], (20, 200), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of regions that few epochs leave out
        model = GAN(n_codes=4, hidden_layer_sizes=(64, 64), batch_size=128, max_iter=epochs, random_state=0).fit(X)
    ax.plot(*model.sample(1000, random_state=0).T, ".", ms=2, color="C0")
    ax.set_title(f"drawn after {epochs} epochs", fontsize=9)
for ax in axes[:3]:
    ax.set(xlim=(-2.7, 2.7), ylim=(-2.7, 2.7), xticks=[], yticks=[], aspect="equal")
axes[3].plot(model.history_["coverage"], color="C0")
axes[3].set_title("coverage of the real rows", fontsize=9)
axes[3].set(xlabel="epoch", ylim=(0, 1.05))
plt.show()
