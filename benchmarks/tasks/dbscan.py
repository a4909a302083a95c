"""DBSCAN of a million rows in three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "share of rows whose label differs from the first implementation's"


def make(directory: Path, quick: bool) -> Data:
    n = 20_000 if quick else 1_000_000
    rng = np.random.default_rng(62)
    means = rng.uniform(-20, 20, size=(30, 3))
    X = means[rng.integers(0, 30, n)] + rng.normal(size=(n, 3))
    noise = rng.random(n) < 0.1
    X[noise] = rng.uniform(-25, 25, size=(int(noise.sum()), 3))
    return {"X": X, "eps": np.array(0.7 if quick else 0.25)}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import DBSCAN

            return DBSCAN(float(data["eps"]), min_samples=10), data["X"]
        from sklearn.cluster import DBSCAN

        return DBSCAN(eps=float(data["eps"]), min_samples=10, n_jobs=-1), data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    return {"labels": np.asarray(model.fit(X).labels_)}


def different(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    first = next(iter(solutions.values()))["labels"]
    return {name: {MEASURE: float((solution["labels"] != first).mean())} for name, solution in solutions.items()}


TASK = Task(
    name="dbscan",
    title="DBSCAN, 1,000,000 x 3, 30 clusters and a tenth of noise",
    description="""\
Normal clusters that touch each other, and rows at random between them; all implementations find the same labels.
scikit-learn uses all processors.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
    ),
    quality=different,
    tolerance=0.0,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=3.0),),
)
