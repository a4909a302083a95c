"""Discs, squares and triangles with noise: the true areas, those that a network found, and how sure it is."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import Segmenter

rng = np.random.default_rng(0)
rows, columns = np.mgrid[:32, :32] + 0.5
X, y = rng.normal(0, 0.35, (144, 32, 32)), np.zeros((144, 32, 32), dtype=int)
for image, mask in zip(X, y, strict=True):
    for half in (0, 16):
        kind, size, shade = rng.integers(3), rng.integers(10, 15), 1.0
        u, v = rows - half - 8 + rng.uniform(-1, 1), columns - 8 - rng.integers(0, 16)
        shapes = {
            0: u**2 + v**2 < size**2 / 4,
            1: np.maximum(abs(u), abs(v)) < size / 2,
            2: (abs(u) < size / 2) & (abs(v) < (u + size / 2) / 2),
        }
        inside = shapes[int(kind)]
        mask[inside], image[inside] = 1 + kind, image[inside] + shade
model = Segmenter(channels=8, depth=2, max_iter=16, batch_size=4, learning_rate_init=0.01, random_state=0)
model.fit(X[:136], y[:136])

shares, found = model.predict_proba(X[136:]), model.predict(X[136:])
pictures = {"image": X[136:], "truth": y[136:], "found": found, "probability": shares.max(axis=3)}
figure, axes = plt.subplots(4, 8, figsize=(8.6, 4.5), layout="constrained")
for line, (name, row) in zip(axes, pictures.items(), strict=True):
    for ax, picture in zip(line, row, strict=True):
        classes = name in ("truth", "found")
        low, high = (0, 3) if classes else (0.25, 1) if name == "probability" else (-1, 2)
        ax.imshow(picture, cmap="viridis" if classes else "gray", vmin=low, vmax=high)
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
    line[0].set_ylabel(name)
figure.suptitle(f"mean overlap on new images: {model.score(X[136:], y[136:]):.2f}", fontsize=10)
plt.show()
