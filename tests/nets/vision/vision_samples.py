"""Small images for the networks that look at them."""

import numpy as np
from net_samples import Sample

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


SAMPLES = {
    "ConvNetClassifier": Sample(
        bars, {"architecture": ARCHITECTURE, "max_iter": 3, "batch_size": 32}, solvers=("adamw", "momentum")
    )
}
