"""The architecture of what looks at images, shared by captions and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicycle.core._parameters import Described, Domain, Integer

_WIDTH = Integer(1)

CHANNELS: Domain = Described(
    "a list of positive integers",
    lambda value: isinstance(value, list | tuple) and len(value) > 0 and all(map(_WIDTH.accepts, value)),
)
CHANNELS_DOC = (
    "channels : list of int, default={default}\n"
    "    Filters of each convolution of 3 x 3; each is followed by a pooling that halves the sides of the image."
)


def image_architecture(images: np.ndarray, weight: np.ndarray | None, channels: Any) -> Mapping[str, Any]:
    """The sizes that an `ImageMemory` is built from."""
    from epicycle.nets.vision._images import channel_moments

    mean, deviation = channel_moments(images, weight)
    return {"mean": mean, "deviation": deviation, "channels": [int(c) for c in channels]}


def cells_of(shape: list[int], channels: Any) -> tuple[int, int]:
    """Rows and columns of the cells that are left of an image of this shape."""
    height, width = shape[:2]
    for _ in channels:
        height, width = -(-height // 2), -(-width // 2)
    return height, width
