"""A fit that writes checkpoints, to be killed in a process of its own."""

from pathlib import Path

import numpy as np
import torch  # noqa: F401 - loaded once, by the server that forks the processes

import epicycle as ep


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=400) > 0).astype(int)


def model():
    return ep.MLPClassifier(
        (12, 8), dropout=0.2, batch_size=50, max_iter=300, tol=None, learning_rate="cosine", average=0.9, random_state=3
    )


def fit(file: str) -> None:
    """Begin, or go on from the checkpoint."""
    started = ep.Checkpoint.resume(file) if Path(file).exists() else model()
    started.set_callbacks(ep.Checkpoint(file, every=5)).fit(*problem())
