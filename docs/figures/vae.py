"""Digits, their reconstructions, digits that are drawn, and digits along entries of the code."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle import VAE

X = load_digits().images / 16
model = VAE(8, decoder="bernoulli", hidden_layer_sizes=(128, 64), max_iter=40, learning_rate_init=0.003, random_state=0)
model.fit(X)
codes = np.random.default_rng(1).normal(size=(40, 8))
strongest = np.argsort(-model.code_divergences_)[:5]
parts = {
    "digits and their reconstructions": np.stack([X[:20], model.reconstruct(X[:20])], axis=1).reshape(5, 8, 8, 8),
    "means of digits that are drawn": model.decode(codes).reshape(5, 8, 8, 8),
    "along five entries of the code": model.latent_traversal(strongest, n_steps=8),
}
fig, axes = plt.subplots(1, 3, figsize=(9, 2.4), layout="constrained")
for ax, (title, images) in zip(axes, parts.items(), strict=True):
    ax.imshow(np.pad(images, [(0, 0)] * 2 + [(0, 1)] * 2).transpose(0, 2, 1, 3).reshape(45, 72), cmap="gray")
    ax.set_title(title, fontsize=9)
    ax.set_axis_off()
plt.show()
