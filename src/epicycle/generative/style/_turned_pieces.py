"""A network that is trained here, on the images of the style alone: by how many quarter turns were pieces turned?

The answer needs what the images are made of, and no labels (Gidaris, Singh and Komodakis 2018).
"""

from __future__ import annotations

import numpy as np

from epicycle.core._random import stream
from epicycle.nets.vision import ConvNetClassifier

#: Pieces that are cut out, each of which is seen in all four directions; their side, at most.
_PIECES, _SIDE = 128, 24
_LAYERS = [["conv", 16, 3], "relu", ["conv", 32, 3], "relu", ["max_pool", 2], ["conv", 32, 3], "relu"]
_LAYERS += [["max_pool", 2], ["conv", 64, 3], "relu", "global_pool"]


def network_of_pieces(images: list[np.ndarray], seed: int, device: str) -> ConvNetClassifier:
    """The network, trained on pieces of these images."""
    pieces, turns = turned_pieces(images, seed)
    return ConvNetClassifier(
        _LAYERS, max_iter=6, batch_size=64, learning_rate_init=3e-3, device=device, random_state=seed
    ).fit(pieces, turns)


def turned_pieces(images: list[np.ndarray], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(square pieces of the images, by how many quarter turns each was turned)."""
    side = min(_SIDE, *(min(image.shape[:2]) for image in images))
    rng = stream(seed, "pieces")
    found = []
    for i in range(_PIECES):
        image = images[i % len(images)]
        top, left = (int(rng.integers(n - side + 1)) for n in image.shape[:2])
        piece = image[top : top + side, left : left + side]
        found += [np.rot90(piece, k) for k in range(4)]
    return np.stack(found), np.tile(np.arange(4), _PIECES)
