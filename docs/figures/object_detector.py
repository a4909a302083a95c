"""Shapes in images, the boxes that a detector found, and its maps of their centres."""

import matplotlib.pyplot as plt
import numpy as np

from epicycle import ObjectDetector

KINDS = np.array(["disc", "square", "triangle"])
rng = np.random.default_rng(0)
rows, columns = np.mgrid[:40, :40] + 0.5
X, y = rng.normal(0, 0.2, (246, 40, 40)), []
for image in X:
    boxes, labels = [], []
    for half in (0, 20)[: rng.integers(1, 3)]:
        kind, size = rng.integers(3), rng.integers(9, 16)
        u0, v0 = half + 10 + rng.uniform(-2, 2), rng.uniform(8, 32)
        u, v = rows - u0, columns - v0
        shapes = {
            0: u**2 + v**2 < size**2 / 4,
            1: np.maximum(abs(u), abs(v)) < size / 2,
            2: (abs(u) < size / 2) & (abs(v) < (u + size / 2) / 2),
        }
        inside = shapes[int(kind)]
        image[inside] += 1
        boxes.append([v0 - size / 2, u0 - size / 2, v0 + size / 2, u0 + size / 2])
        labels.append(KINDS[kind])
    y.append((boxes, labels))
model = ObjectDetector(channels=8, max_iter=14, batch_size=4, learning_rate_init=0.02, random_state=0)
model.fit(X[:240], y[:240])

figure, axes = plt.subplots(2, 6, figsize=(9.2, 3.5), layout="constrained")
for top, below, image, found, heat in zip(
    *axes, X[240:], model.predict(X[240:]), model.heat_maps(X[240:]), strict=True
):
    top.imshow(image, cmap="gray", extent=(0, 40, 40, 0))
    for (left, upper, right, lower), label, score in zip(found.boxes, found.labels, found.scores, strict=True):
        colour = ("C3", "C2", "C0")[list(KINDS).index(label)]
        top.plot([left, right, right, left, left], [upper, upper, lower, lower, upper], color=colour, lw=1.6)
        top.annotate(f"{label} {score:.1f}", (left, upper), fontsize=7, color=colour, va="bottom")
    below.imshow(heat, extent=(0, 40, 40, 0))
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
axes[0, 0].set_ylabel("found")
axes[1, 0].set_ylabel("maps of centres")
plt.show()
