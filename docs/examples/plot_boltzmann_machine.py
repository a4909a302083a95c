"""
Bars and stripes
================

A restricted Boltzmann machine gives a row of bits x the probability

.. math:: p(x) = \\frac1Z \\sum_h e^{b'x + c'h + h'Wx}

with hidden bits h. Its gradient needs an expectation over the model itself, by chains (Gibbs sampling) or by a sum
over all states. On images of 4 x 4 bits that are bars or stripes everything can be summed: the normaliser Z, the
log-likelihood, and the likelihood that no model can exceed, since the distribution of the images is known.
"""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import RestrictedBoltzmannMachine, WakeSleep

# %%
# A coin decides between rows and columns, and one more coin for each of the four whether it is on. There are 30
# images; the mean log-probability of a row is at most minus the entropy, about -3.38 nats. Independent bits reach
# -11.09.
lines = np.array([[i >> k & 1 for k in range(4)] for i in range(16)], dtype=float)
bars = np.repeat(lines[:, :, None], 4, axis=2)
both = np.concatenate([bars, bars.transpose(0, 2, 1)])  # 32 equally likely outcomes
X = np.tile(both, (16, 1, 1))
images, times = np.unique(both.reshape(32, 16), axis=0, return_counts=True)
share = times / 32
images = images.reshape(-1, 4, 4)
best = np.sum(share * np.log(share))
print(f"best {best:.2f}, independent bits {16 * np.log(0.5):.2f}")

# %%
# Three machines differ in how they find the expectation in the gradient: by a sum over all states, by chains that go
# on from step to step, or by chains that start at the rows and make one move (contrastive divergence). The sum comes
# nearest to the entropy. Chains from the rows lose most of the three: images that they seldom come to are never
# corrected. The fourth is a Helmholtz machine of two hidden layers, learnt by wake-sleep, which draws downwards and
# needs no chains at all. All log-likelihoods below are sums over all states, none is an estimate.
options = {"batch_size": 128, "max_iter": 150, "random_state": 0}
models = {
    "enumeration": RestrictedBoltzmannMachine(10, method="enumeration", learning_rate_init=0.05, **options),
    "persistent chains": RestrictedBoltzmannMachine(10, method="persistent", learning_rate_init=0.05, **options),
    "chains from rows": RestrictedBoltzmannMachine(10, method="contrastive", learning_rate_init=0.05, **options),
    "wake-sleep": WakeSleep((10, 4), learning_rate_init=0.1, **{**options, "max_iter": 200}),
}
found, mass = {"independent bits": 16 * np.log(0.5)}, {}
for name, model in models.items():
    model.fit(X)
    log_p = model.exact_log_likelihood(images) if name == "wake-sleep" else model.score_samples(images)
    found[name], mass[name] = share @ log_p, np.exp(log_p).sum()
    print(f"{name:17}  log-likelihood {found[name]:6.2f}, probability of the 30 images {mass[name]:.2f}")

# %%
# Draws of the machine with the exact gradient, by 200 moves of Gibbs sampling, and of the Helmholtz machine, one
# layer after the other: many are bars or stripes, others nearly so. A hidden bit of the former looks for whole rows
# or columns.
chosen = models["enumeration"]
weights = chosen.module_.machine.weight.detach().numpy().reshape(-1, 4, 4)
parts = {
    "rows": X[np.random.default_rng(0).integers(0, len(X), 20)],
    "drawn by Gibbs sampling": chosen.sample(20, random_state=0),
    "drawn after wake-sleep": models["wake-sleep"].sample(20, random_state=0),
    "weights": weights[:10] / np.abs(weights).max(),
}
fig, axes = plt.subplots(1, 5, figsize=(12, 3), layout="constrained", width_ratios=[1, 1, 1, 0.55, 1.4])
for ax, (title, pictures) in zip(axes, parts.items(), strict=False):
    columns, signed = len(pictures) // 5, title == "weights"
    sheet = np.full((5 * 5 - 1, 5 * columns - 1), np.nan)
    for i, picture in enumerate(pictures):
        row, column = divmod(i, columns)
        sheet[5 * row : 5 * row + 4, 5 * column : 5 * column + 4] = picture
    ax.imshow(sheet, cmap="RdBu_r" if signed else "Blues", vmin=-1 if signed else -0.25, vmax=1)
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()
axes[4].barh(list(found), [-value for value in found.values()], color=["0.6", "C0", "C0", "C0", "C1"])
axes[4].axvline(-best, color="0.3", ls="--", lw=1)
axes[4].set(xlabel="minus log-likelihood, nats", title="dashed: the least possible")
axes[4].invert_yaxis()
plt.show()
