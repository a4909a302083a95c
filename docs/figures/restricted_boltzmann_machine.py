"""Digits as bits, what a restricted Boltzmann machine draws beside them, and the weights of some of its hidden bits."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle import RestrictedBoltzmannMachine

X = (load_digits().images > 7).astype(float)
model = RestrictedBoltzmannMachine(64, max_iter=60, n_moves=3, learning_rate_init=0.02, random_state=0).fit(X)
drawn = model.sample(24, random_state=0)
weights = model.module_.machine.weight.detach().numpy().reshape(-1, 8, 8)
strongest = np.argsort(-np.abs(weights).max(axis=(1, 2)))[:24]

fig, parts = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
for ax, images, title in (
    (parts[0], X[:24], "digits as bits"),
    (parts[1], drawn, "bits that are drawn"),
    (parts[2], weights[strongest], "weights of hidden bits"),
):
    sheet = np.full((4 * 9 - 1, 6 * 9 - 1), np.nan)
    for i, image in enumerate(images):
        row, column = divmod(i, 6)
        sheet[9 * row : 9 * row + 8, 9 * column : 9 * column + 8] = image / np.abs(image).max()
    signed = title.startswith("weights")
    ax.imshow(sheet, cmap="RdBu_r" if signed else "gray", vmin=-1 if signed else 0, vmax=1)
    ax.set_title(title, fontsize=9)
    ax.set_axis_off()
fig.get_layout_engine().set(wspace=0.06)
plt.show()
