"""K-means of many rows from the same starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Solution, Target, Task
from benchmarks.tasks._clusters import excesses, fit, model

ROUNDS = 100


def make(directory: Path, quick: bool) -> Data:
    n, p, k = (10_000, 20, 16) if quick else (400_000, 20, 64)
    rng = np.random.default_rng(61)
    means = 2 * rng.normal(size=(k, p))
    X = means[rng.integers(0, k, n)] + rng.normal(size=(n, p))
    return {"X": X, "start": X[rng.choice(n, k, replace=False)]}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        estimator = model(library, "KMeans")
        return estimator(len(data["start"]), init=data["start"], n_init=1, tol=0, max_iter=ROUNDS), data["X"]

    return prepare


def prepare_faiss(data: Data) -> Any:
    """Its rows are of single precision, and it makes all rounds; no row is left out."""
    import faiss

    X, start = data["X"].astype(np.float32), data["start"].astype(np.float32)
    k, p = start.shape
    return faiss.Kmeans(p, k, niter=ROUNDS, nredo=1, max_points_per_centroid=len(X)), X, start


def fit_faiss(ready: tuple[Any, np.ndarray, np.ndarray]) -> Solution:
    trainer, X, start = ready
    trainer.train(X, init_centroids=start)
    return {"centers": trainer.centroids.astype(np.float64)}


TASK = Task(
    name="kmeans",
    title="KMeans, 400,000 x 20, 64 clusters, the same first centres, 100 rounds at most",
    description="""\
Rows around 64 means whose clusters overlap. All start from the same rows and go on until no label changes or 100
rounds are done; the distortion may be 1e-6 above the least of them. faiss has single precision and no other end than
the number of rounds.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
        Implementation("scikit-learn-intelex", "peer", fit, setup=setup("scikit-learn-intelex")),
        Implementation("faiss", "peer", fit_faiss, setup=prepare_faiss),
    ),
    quality=excesses(lambda data: data["X"]),
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=2.0),),
)
