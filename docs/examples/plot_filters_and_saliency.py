r"""
Filters of a network, and what it looks at
==========================================

A convolution slides small filters over an image,

.. math:: (z * w)_{uvk} = \sum_{i,j,c} w_{ijck} \, z_{u+i,\,v+j,\,c},

so that a stroke is found wherever it is. Here are the filters that a network learns from 500 digits, what they make of
an image, and three ways to ask which pixels an answer rests on: the size of the gradient, Grad-CAM (the last maps,
weighted by their mean gradients), and occlusion (how far the score falls where a square is covered).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import epicycle as ep

X, y = load_digits(return_X_y=True)
X = X.reshape(-1, 8, 8)
rows = np.random.default_rng(0).permutation(len(y))
train, test = rows[:500], rows[500:]
layers = [["conv", 12, 3], "relu", ["conv", 24, 3], "relu", ["max_pool", 2], "flatten"]
settings = {"learning_rate_init": 0.005, "batch_size": 32, "max_iter": 12, "random_state": 0}
network = ep.ConvNetClassifier(layers, shift=1, **settings).fit(X[train], y[train])
unmoved = ep.ConvNetClassifier(layers, **settings).fit(X[train], y[train])
settings = {"learning_rate_init": 0.005, "batch_size": 32, "max_iter": 30, "tol": None, "random_state": 0}
dense = ep.MLPClassifier(64, **settings).fit(X[train].reshape(-1, 64), y[train])

# %%
# All see the same digits, and are asked for new ones that lie where they were, or one pixel further to the right. One
# of the networks saw its digits moved about in every epoch (`shift=1`). Where digits lie as they did, convolutions make
# fewer errors than the perceptron; where they have moved, most of the gain comes from the training images that were
# moved, since the last layer still has a weight for each place.
for pixels in (0, 1):
    moved = np.pad(X[test], ((0, 0), (0, 0), (pixels, 0)))[:, :, :8]
    print(
        f"moved by {pixels}: trained on moved digits {network.score(moved, y[test]):.3f}, without "
        f"{unmoved.score(moved, y[test]):.3f}, perceptron {dense.score(moved.reshape(-1, 64), y[test]):.3f}"
    )

# %%
# Do the maps point at what matters? If the eight pixels that a map calls most important are made empty, answers should
# suffer more than if eight pixels are drawn by lot. So they do, most of all by the occlusion, which measures just that;
# Grad-CAM is coarse on images that are so small.
images, labels = X[test][:300], y[test][:300]
maps = {name: network.saliency(images, method=name) for name in ("gradient", "grad_cam", "occlusion")}
for name, values in {**maps, "by lot": np.random.default_rng(1).random(images.shape)}.items():
    hidden = images.reshape(300, 64).copy()
    np.put_along_axis(hidden, np.argsort(-values.reshape(300, 64), axis=1)[:, :8], 0, axis=1)
    print(f"without eight pixels, {name:8} {network.score(hidden.reshape(-1, 8, 8), labels):.3f}")

# %%
# Filters, what they find in the first of the digits below, and for each digit the three maps. Red pixels of the
# occlusion speak for the answer, blue ones against it. A map of Grad-CAM can be empty: it keeps what speaks for a class
# after gradients were averaged over places, which suits networks that end with a mean over places, and not this one.
shown = [int(np.flatnonzero(labels == digit)[0]) for digit in range(8)]
found = network.activations(images[shown[:1]], layer=2)[0]
lines = {"filter": network.filters_[:8, :, :, 0], "its map": found.transpose(2, 0, 1)[:8], "image": images[shown]}
lines |= {name: values[shown] for name, values in maps.items()}
figure, axes = plt.subplots(6, 8, figsize=(8, 6.2), layout="constrained")
for line, (name, pictures) in zip(axes, lines.items(), strict=True):
    signed = name in ("filter", "occlusion")
    for ax, picture in zip(line, pictures, strict=True):
        size = np.abs(picture).max() or 1
        ax.imshow(picture, cmap="RdBu_r" if signed else "gray", vmin=-size if signed else 0, vmax=size)
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
    line[0].set_ylabel(name.replace("_", "-"))
for ax, label in zip(axes[2], network.predict(images[shown]), strict=True):
    ax.set_title(str(label), fontsize=9, pad=2)
plt.show()
