"""K-means of many rows from the same starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "distortion, relative excess over the least"


def make(directory: Path, quick: bool) -> Data:
    n, p, k = (10_000, 20, 16) if quick else (400_000, 20, 64)
    rng = np.random.default_rng(61)
    means = 2 * rng.normal(size=(k, p))
    X = means[rng.integers(0, k, n)] + rng.normal(size=(n, p))
    return {"X": X, "start": X[rng.choice(n, k, replace=False)]}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import KMeans
        else:
            from sklearn.cluster import KMeans
        return KMeans(len(data["start"]), init=data["start"], n_init=1, tol=0, max_iter=100), data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    return {"centers": np.asarray(model.fit(X).cluster_centers_)}


def distortions(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    X = data["X"]
    found = {}
    for name, solution in solutions.items():
        centers = solution["centers"]
        scores = [(part @ centers.T * -2 + (centers**2).sum(axis=1)).min(axis=1) for part in np.array_split(X, 50)]
        found[name] = float(np.concatenate(scores).sum() + (X**2).sum())
    least = min(found.values())
    return {name: {MEASURE: value / least - 1} for name, value in found.items()}


TASK = Task(
    name="kmeans",
    title="KMeans, 400,000 x 20, 64 clusters, the same first centres, 100 rounds at most",
    description="""\
Rows around 64 means whose clusters overlap. All start from the same rows and go on until no label changes or 100
rounds are done; the distortion may be 1e-6 above the least of them.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
    ),
    quality=distortions,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=2.0),),
)
