"""K-medoids of a matrix of distances from the same starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "sum of distances, relative excess over the least"


def make(directory: Path, quick: bool) -> Data:
    n, k = (1_000, 10) if quick else (10_000, 50)
    rng = np.random.default_rng(64)
    X = 3 * rng.normal(size=(k, 10))[rng.integers(0, k, n)] + rng.normal(size=(n, 10))
    squares = (X**2).sum(axis=1)
    D = np.sqrt(np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))
    D = (D + D.T) / 2
    np.fill_diagonal(D, 0)
    return {"D": D, "start": rng.choice(n, k, replace=False)}


def prepare(data: Data) -> Any:
    from epicycle import KMedoids

    return KMedoids(len(data["start"]), metric="precomputed", init=data["start"]), data["D"]


def fit(ready: Any) -> Solution:
    model, D = ready
    return {"medoids": model.fit(D).medoid_indices_}


def prepare_peer(data: Data) -> Any:
    import kmedoids  # imported before the clock starts

    assert kmedoids
    return data["D"], data["start"].astype(np.uint64)


def fit_peer(ready: Any) -> Solution:
    import kmedoids

    D, start = ready
    return {"medoids": np.asarray(kmedoids.fasterpam(D, start).medoids).astype(np.int64)}


def excesses(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    found = {name: float(data["D"][s["medoids"]].min(axis=0).sum()) for name, s in solutions.items()}
    least = min(found.values())
    return {name: {MEASURE: value / least - 1} for name, value in found.items()}


TASK = Task(
    name="kmedoids",
    title="KMedoids, distances of 10,000 rows, 50 clusters, the same first medoids",
    description="""\
Rows around 50 means whose clusters overlap; the distances are given. All start from the same rows and swap until no
swap helps. Which swap is made first differs, and so does the local optimum: the sum may be 1% above the least.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=prepare),
        Implementation("kmedoids (FasterPAM)", "peer", fit_peer, setup=prepare_peer),
    ),
    quality=excesses,
    tolerance=0.01,
    targets=(Target("speed against the kmedoids package", speedup_over_best_peer(), at_least=1.0),),
)
