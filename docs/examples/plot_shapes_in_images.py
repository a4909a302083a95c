"""
Shapes in images
================

Digits are scattered over larger images. A detector learns where they are and which, a segmenter which pixel belongs to
which digit, both from the same pictures.
"""

# %%
# Images of 32 x 32 pixels with one to three handwritten digits of 8 x 8 pixels, threes and sevens, and noise.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from epicycle import ObjectDetector, Segmenter

digits = load_digits()
wanted = np.flatnonzero(np.isin(digits.target, (3, 7)))
train, test = wanted[:280], wanted[280:]


def scattered(chosen, n, seed):
    rng = np.random.default_rng(seed)
    images, targets, masks = rng.normal(0, 1.0, (n, 32, 32)), [], np.zeros((n, 32, 32), dtype=int)
    for image, mask in zip(images, masks, strict=True):
        boxes, labels = [], []
        for quarter in rng.permutation(4)[: rng.integers(1, 4)]:
            i = rng.choice(chosen)
            top, left = 16 * (quarter // 2) + rng.integers(0, 9), 16 * (quarter % 2) + rng.integers(0, 9)
            image[top : top + 8, left : left + 8] += digits.images[i]
            mask[top : top + 8, left : left + 8][digits.images[i] > 4] = digits.target[i]
            boxes.append([left, top, left + 8, top + 8])
            labels.append(digits.target[i])
        targets.append((boxes, labels))
    return images, targets, masks


X, boxes, masks = scattered(train, 250, seed=0)
X_new, boxes_new, masks_new = scattered(test, 60, seed=1)

# %%
# The detector has a map of centres for each digit. Its score is the mean average precision at an overlap of one half.
detector = ObjectDetector(channels=8, max_iter=14, batch_size=4, learning_rate_init=0.02, random_state=0)
detector.fit(X, boxes)
print(
    f"average precision {detector.score(X_new, boxes_new):.3f}, or "
    f"{detector.score(X_new, boxes_new, iou='0.5:0.95'):.3f} over stricter overlaps"
)

# %%
# The segmenter gives a class to every pixel; its score is the mean overlap of the areas.
segmenter = Segmenter(channels=8, depth=2, max_iter=14, batch_size=4, learning_rate_init=0.01, random_state=0)
segmenter.fit(X, masks)
print(f"mean overlap {segmenter.score(X_new, masks_new):.3f}")

# %%
# New images with the boxes that were found above, and the areas below.
figure, axes = plt.subplots(2, 6, figsize=(9.2, 3.4), layout="constrained")
for ax, image, found in zip(axes[0], X_new, detector.predict(X_new[:6]), strict=False):
    ax.imshow(image, cmap="gray_r", extent=(0, 32, 32, 0))
    for (left, top, right, bottom), label in zip(found.boxes, found.labels, strict=True):
        colour = "C0" if label == 3 else "C5"
        ax.plot([left, right, right, left, left], [top, top, bottom, bottom, top], color=colour)
        ax.annotate(str(label), (left, top), color=colour, fontsize=9, va="bottom")
for ax, areas in zip(axes[1], segmenter.predict(X_new[:6]), strict=True):
    colours = np.ones((*areas.shape, 3))
    colours[areas == 3], colours[areas == 7] = (0.0, 0.45, 0.7), (0.84, 0.37, 0.0)
    ax.imshow(colours, extent=(0, 32, 32, 0))
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
plt.show()
