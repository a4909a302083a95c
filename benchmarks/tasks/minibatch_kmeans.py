"""Mini-batch k-means of many rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._clusters import excesses, fit, model


def make(directory: Path, quick: bool) -> Data:
    n, p, k = (20_000, 20, 16) if quick else (500_000, 20, 64)
    rng = np.random.default_rng(63)
    means = 2 * rng.normal(size=(k, p))
    X = means[rng.integers(0, k, n)] + rng.normal(size=(n, p))
    return {"X": X, "start": means + rng.normal(size=(k, p))}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        estimator = model(library, "MiniBatchKMeans")
        options = {"init": data["start"], "n_init": 1, "max_iter": 2, "max_no_improvement": None, "batch_size": 4096}
        return estimator(len(data["start"]), random_state=0, **options), data["X"]

    return prepare


TASK = Task(
    name="minibatch_kmeans",
    title="MiniBatchKMeans, 500,000 x 20, 64 clusters, the same first centres, two epochs of batches of 4,096",
    description="""\
Rows around 64 means whose clusters overlap. All start from a draw around each mean, so that they end near each other,
and take the same number of batches, each with draws of its own; the last pass finds the labels of all rows. The
distortion may be 1% above the least.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
    ),
    quality=excesses(lambda data: data["X"]),
    tolerance=0.01,
    targets=(Target("speed against scikit-learn", speedup_over_best_peer(), at_least=1.5),),
)
