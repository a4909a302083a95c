"""Texts for the transformers."""

import numpy as np
from net_samples import Sample

SIZES = {"n_layers": 1, "n_heads": 2, "d_model": 16}


def lines(n):
    """Lines of three words."""
    rng = np.random.default_rng(0)
    words = np.array(["sun", "rain", "wind", "snow"])
    return np.array([" ".join(row) for row in words[rng.integers(0, 4, (n, 3))]], dtype=object), None


def weather(n):
    """Lines, and whether there is sun in them."""
    X, _ = lines(n)
    return X, np.array(["bright" if "sun" in line else "dark" for line in X])


def mirrored(n):
    """Words of three letters, and the same from the end."""
    rng = np.random.default_rng(0)
    X = np.array(["".join(row) for row in np.array(list("abc"))[rng.integers(0, 3, (n, 3))]], dtype=object)
    return X, np.array([word[::-1] for word in X], dtype=object)


_ONE = ("adamw",)
SAMPLES = {
    "GPT": Sample(
        lines, {**SIZES, "context_length": 16, "max_iter": 2, "steps_per_iteration": 5, "dropout": 0.1}, solvers=_ONE
    ),
    "Transformer": Sample(mirrored, {**SIZES, "max_iter": 2, "batch_size": 256, "dropout": 0.1}, solvers=_ONE),
    "BERT": Sample(lines, {**SIZES, "max_iter": 2, "batch_size": 256, "dropout": 0.1}, solvers=_ONE),
    "BERTClassifier": Sample(weather, {"max_iter": 2, "batch_size": 256}, solvers=_ONE),
}
