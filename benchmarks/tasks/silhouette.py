"""Silhouettes of all rows of a clustering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "largest difference from differences of rows, on 200 rows"


def make(directory: Path, quick: bool) -> Data:
    n, p, k = (4_000, 10, 8) if quick else (50_000, 10, 8)
    rng = np.random.default_rng(71)
    labels = rng.integers(0, k, n)
    return {"X": 2 * rng.normal(size=(k, p))[labels] + rng.normal(size=(n, p)), "labels": labels}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle.metrics import silhouette_samples
        else:
            from sklearn.metrics import silhouette_samples
        return silhouette_samples, data

    return prepare


def run(ready: tuple[Any, Data]) -> Solution:
    silhouette_samples, data = ready
    return {"values": np.asarray(silhouette_samples(data["X"], data["labels"]))}


def differences(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    X, labels = data["X"], data["labels"]
    indicator = labels[:, None] == np.arange(labels.max() + 1)
    sums = np.array([np.sqrt(((X - row) ** 2).sum(axis=1)) @ indicator for row in X[:200]])
    size = indicator.sum(axis=0)
    own = np.arange(200), labels[:200]
    a = sums[own] / (size[labels[:200]] - 1)
    means = sums / size
    means[own] = np.inf
    expected = (means.min(axis=1) - a) / np.maximum(means.min(axis=1), a)
    return {name: {MEASURE: float(np.abs(s["values"][:200] - expected).max())} for name, s in solutions.items()}


TASK = Task(
    name="silhouette",
    title="Silhouettes of 50,000 x 10 rows in 8 clusters",
    description="""\
The mean distance of every row to the rows of each cluster: 2.5 billion distances, exact to 1e-10.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", run, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", run, setup=setup("scikit-learn")),
    ),
    quality=differences,
    tolerance=1e-10,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=3.0),),
)
