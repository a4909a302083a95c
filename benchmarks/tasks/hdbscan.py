"""HDBSCAN of rows in five dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "1 - adjusted Rand index with the first implementation's labels"


def make(directory: Path, quick: bool) -> Data:
    n = 5_000 if quick else 200_000
    rng = np.random.default_rng(63)
    means = rng.uniform(-10, 10, size=(30, 5))
    return {"X": means[rng.integers(0, 30, n)] + rng.normal(size=(n, 5))}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import HDBSCAN

            return HDBSCAN(min_cluster_size=50, min_samples=10), data["X"]
        import hdbscan

        # Here a row is not counted among its own neighbours; without the approximation that is the default.
        model = hdbscan.HDBSCAN(
            min_cluster_size=50, min_samples=9, core_dist_n_jobs=-1, approx_min_span_tree=library == "approximate"
        )
        return model, data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    return {"labels": np.asarray(model.fit(X).labels_)}


def different(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    from sklearn.metrics import adjusted_rand_score

    first = next(iter(solutions.values()))["labels"]
    return {
        name: {MEASURE: 1 - float(adjusted_rand_score(first, solution["labels"]))}
        for name, solution in solutions.items()
    }


TASK = Task(
    name="hdbscan",
    title="HDBSCAN, 200,000 x 5, 30 clusters",
    description="""\
Normal clusters, some of which touch. The peer is the hdbscan package on all processors, with an exact spanning tree;
distances that are equal may be merged in another order, which moves a few rows.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("hdbscan", "peer", fit, setup=setup("exact")),
    ),
    quality=different,
    tolerance=0.02,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
