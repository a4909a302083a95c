"""The objects that were found in an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Detections:
    """The objects that were found in one image, best first.

    boxes : ndarray of shape (n, 4)
        Left, top, right and bottom in pixels; the first pixel of an image reaches from 0 to 1.
    labels : ndarray of shape (n,)
    scores : ndarray of shape (n,)
        Between 0 and 1.
    """

    boxes: np.ndarray
    labels: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.boxes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Detections):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((len(self), self.boxes.tobytes()))
