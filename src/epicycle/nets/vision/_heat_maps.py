r"""From boxes to maps and back (Zhou, Wang and Krähenbühl 2019, "Objects as points").

On a grid of cells of s x s pixels the map of a class is 1 at the cell of an object's centre and falls off around it as
a Gaussian of its width and height; four more maps give, near a centre (c_x, c_y) of a box of size (w, h), its place in
the units of the cell, ((c_x - x) / s, (c_y - y) / s), and (log w / s, log h / s).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.ndimage import maximum_filter
from scipy.special import expit

from epicycle.nets.vision._boxes import non_max_suppression
from epicycle.nets.vision._detections import Detections

#: Standard deviation of the Gaussian, in sides of the box, and at least in cells.
_SPREAD, _LEAST_SPREAD = 0.12, 0.4
#: Cells where the Gaussian is above this learn the box.
_NEAR = 0.2
#: Largest logarithm of a side in cells that a box is given: such sides reach beyond any image.
_LARGEST = 10.0


class Boxes:
    """Boxes and class numbers of images as maps: K of heat (-1 beyond the image), 4 of boxes, 1 of their weights."""

    def __init__(self, n_classes: int, cell: int) -> None:
        self.n_classes, self.cell = n_classes, cell

    def mirrored(self, target: Any, width: int) -> Any:
        """The boxes of the image that is mirrored, left and right."""
        boxes, labels = target
        return np.column_stack([width - boxes[:, 2], boxes[:, 1], width - boxes[:, 0], boxes[:, 3]]), labels

    def encoded(self, targets: Sequence[Any], sizes: Sequence[tuple[int, int]], shape: tuple[int, int]) -> np.ndarray:
        """The maps, of shape (n, K + 5, rows, columns)."""
        rows, columns = (-(-side // self.cell) for side in shape)
        maps = np.zeros((len(targets), self.n_classes + 5, rows, columns), dtype=np.float32)
        for image, (boxes, labels), size in zip(maps, targets, sizes, strict=True):
            heat = image[: self.n_classes]
            for box, label in zip(boxes, labels, strict=True):
                self._draw(image, box, int(label))
            height, width = (-(-side // self.cell) for side in size)
            heat[:, height:], heat[:, :, width:] = -1.0, -1.0
        return maps

    def _draw(self, image: np.ndarray, box: np.ndarray, label: int) -> None:
        """Add a box to the maps; where boxes are close, the nearer centre is learnt."""
        K, (rows, columns) = self.n_classes, image.shape[1:]
        centre = (box[:2] + box[2:]) / (2 * self.cell)
        sides = (box[2:] - box[:2]) / self.cell
        j, i = (int(min(max(c, 0), n - 1)) for c, n in zip(centre, (columns, rows), strict=True))
        spread = np.maximum(_SPREAD * sides, _LEAST_SPREAD)
        y, x = np.arange(rows), np.arange(columns)
        near = np.exp(-0.5 * (((y - i) / spread[1]) ** 2)[:, None] - 0.5 * ((x - j) / spread[0]) ** 2)
        np.maximum(image[label], near, out=image[label])
        mine = (near > _NEAR) & (near > image[-1])
        image[K][mine] = np.broadcast_to(centre[0] - x - 0.5, mine.shape)[mine]
        image[K + 1][mine] = np.broadcast_to((centre[1] - y - 0.5)[:, None], mine.shape)[mine]
        image[K + 2][mine], image[K + 3][mine] = np.log(sides)
        image[-1][mine] = near[mine]


def decoded(
    maps: np.ndarray, size: tuple[int, int], classes: np.ndarray, cell: int, threshold: float, overlap: float, most: int
) -> Detections:
    """The boxes at the peaks of the heat maps, of shape (K + 4, rows, columns), after non-maximum suppression."""
    K = len(classes)
    heat = maps[:K]
    peak = (heat == maximum_filter(heat, size=(1, 3, 3), mode="nearest")) & (expit(heat) >= threshold)
    labels, rows, columns = np.nonzero(peak)
    scores = expit(heat[labels, rows, columns].astype(np.float64))
    best = np.argsort(-scores, kind="stable")[:most]
    labels, rows, columns, scores = (a[best] for a in (labels, rows, columns, scores))
    dx, dy, log_width, log_height = maps[K:, rows, columns].astype(np.float64)
    half = 0.5 * cell * np.exp(np.minimum([log_width, log_height], _LARGEST))
    x, y = cell * (columns + 0.5 + dx), cell * (rows + 0.5 + dy)
    boxes = np.column_stack([x - half[0], y - half[1], x + half[0], y + half[1]])
    height, width = size
    boxes = np.clip(boxes, 0, [width, height, width, height])
    kept = non_max_suppression(boxes, scores, labels, overlap)
    return Detections(boxes[kept], classes[labels[kept]], scores[kept])
