"""Handwritten digits, the filters that a network learnt from them, and the pixels that its answers depend on."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle import ConvNetClassifier

X, y = load_digits(return_X_y=True)
X = X.reshape(-1, 8, 8)
layers = [["conv", 16, 3], "relu", ["conv", 32, 3], "relu", ["max_pool", 2], "flatten", ["linear", 64], "relu"]
model = ConvNetClassifier(layers, shift=1, max_iter=8, learning_rate_init=0.003, random_state=0).fit(X[:1200], y[:1200])
shown = 1200 + np.array([np.flatnonzero(y[1200:] == digit)[0] for digit in range(8)])
maps = {name: model.saliency(X[shown], method=name) for name in ("gradient", "grad_cam", "occlusion")}

fig, axes = plt.subplots(5, 8, figsize=(8, 5.2), layout="constrained")
rows = {"filters": model.filters_[:8, :, :, 0], "images": X[shown], **maps}
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    signed = name in ("filters", "occlusion")
    for ax, picture in zip(line, pictures, strict=True):
        size = np.abs(picture).max()
        ax.imshow(picture, cmap="RdBu_r" if signed else "gray", vmin=-size if signed else 0, vmax=size)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name.replace("_", "-"))
for ax, label in zip(axes[1], model.predict(X[shown]), strict=True):
    ax.set_title(str(label), fontsize=9, pad=2)
plt.show()
