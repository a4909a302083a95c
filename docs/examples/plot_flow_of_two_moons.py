"""
Two moons out of a bell
=======================

A normalising flow bends the normal distribution, by steps that can be undone, until the rows are likely. New rows are
normal draws that went through it. And as every row goes back to one normal code, a flow knows its density: how
unusual a row is can be said as a share.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import epicycle as ep

X, _ = make_moons(1200, noise=0.08, random_state=0)
model = ep.NormalizingFlow(max_iter=30, learning_rate_init=0.005, random_state=0).fit(X)
rng = np.random.default_rng(0)
normal = rng.normal(size=(2000, 2))
print(model.certificate_)

# %%
# On the way: between a code z and its row x(z). Nothing tears, so that a thin bridge is left between the moons. The
# region that holds 90% of what the model draws has a density above the 10% quantile: if the model is right, 90% of
# the rows that it has never seen are inside.

fig, axes = plt.subplots(1, 4, figsize=(12, 3.1), layout="constrained")
there = model.inverse_transform(normal)
for ax, share in zip(axes[:3], (0, 0.5, 1), strict=True):
    at = (1 - share) * normal + share * there
    ax.scatter(*at.T, s=2, c=normal[:, 0], cmap="viridis")
    ax.set(title="normal codes" if share == 0 else "drawn rows" if share == 1 else "half of the way")
    ax.set(xlim=(-3, 3), ylim=(-3, 3), xticks=[], yticks=[], aspect="equal")

levels = np.quantile(model.score_samples(there), [0.1, 0.5])
fresh, _ = make_moons(2000, noise=0.08, random_state=1)
inside = [(model.score_samples(fresh) > level).mean() for level in levels]
a, b = np.meshgrid(np.linspace(-1.6, 2.6, 140), np.linspace(-1.1, 1.6, 110))
density = model.score_samples(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
axes[3].contourf(a, b, density, levels=[*levels, density.max() + 1], colors=["C0", "C0"], alpha=0.3)
axes[3].contour(a, b, density, levels=levels, colors="C0", linewidths=1)
axes[3].plot(*fresh[:400].T, ".", ms=2, color="0.25")
axes[3].set(title=f"regions of 50% and 90% hold\n{inside[1]:.0%} and {inside[0]:.0%} of new rows", xticks=[], yticks=[])
plt.show()
