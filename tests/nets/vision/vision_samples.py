"""Small images for the networks that look at them."""

import numpy as np
from net_samples import Sample
from shapes import drawn_shapes

ARCHITECTURE = [["conv", 4, 3], "batch_norm", "relu", ["max_pool", 2], ["dropout", 0.2]]


def bars(n):
    """Noisy 8 x 8 images of a bar, light or dark, that stands, lies, or leans."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n) if n > 3 else np.arange(n) % 3
    X = rng.normal(0, 0.3, (n, 8, 8)).astype(np.float32)
    place, shade = rng.integers(1, 7, n), rng.choice([-1.5, 1.5], n)
    for i in range(n):
        if y[i] == 0:
            X[i, :, place[i]] += shade[i]
        elif y[i] == 1:
            X[i, place[i], :] += shade[i]
        else:
            X[i] += shade[i] * np.eye(8)
    return X, np.array(["stands", "lies", "leans"])[y]


def boxes(n):
    X, targets, _ = drawn_shapes(n, 12, most=1, smallest=4, largest=6)
    return X, targets


def masks(n):
    X, _, found = drawn_shapes(n, 12, most=1, smallest=4, largest=6)
    return X, found


_TINY = {"channels": 2, "depth": 1, "max_iter": 2, "batch_size": 128}
SAMPLES = {
    "ConvNetClassifier": Sample(
        bars, {"architecture": ARCHITECTURE, "max_iter": 3, "batch_size": 32}, solvers=("adamw", "momentum")
    ),
    "ObjectDetector": Sample(boxes, {**_TINY, "cell": 2}, solvers=("adamw",)),
    "Segmenter": Sample(masks, _TINY, solvers=("adamw",)),
}
