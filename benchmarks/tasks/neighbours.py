"""The ten nearest rows of many queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._boosting import threads

MEASURE = "largest excess of a distance over the least found, relative"
NEIGHBOURS = 10


def make(directory: Path, quick: bool) -> Data:
    n = 5_000 if quick else 100_000
    rng = np.random.default_rng(31)
    # Five factors behind fifty columns: neighbours mean something.
    loadings = rng.standard_normal((5, 50))
    X, Q = (rng.standard_normal((n, 5)) @ loadings + 0.3 * rng.standard_normal((n, 50)) for _ in range(2))
    return {"X": X, "Q": Q}


def epicycle_search() -> Any:
    from epicycle import NearestNeighbors

    return NearestNeighbors(n_neighbors=NEIGHBOURS)


def sklearn_search() -> Any:
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=NEIGHBOURS, n_jobs=threads())


def intelex_search() -> Any:
    from sklearnex.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute", n_jobs=threads())


def run(build: Callable[[], Any]) -> Callable[[Data], Solution]:
    def solve(data: Data) -> Solution:
        distances, rows = build().fit(data["X"]).kneighbors(data["Q"])
        return {"distances": np.asarray(distances), "rows": np.asarray(rows)}

    return solve


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Distances of the rows that were named, computed anew, against the least that anybody found."""
    own = {}
    for name, solution in solutions.items():
        named = np.empty(solution["rows"].shape)
        for i in range(0, len(named), 5_000):
            part = slice(i, i + 5_000)
            differences = data["X"][solution["rows"][part]] - data["Q"][part, None]
            named[part] = np.sqrt(np.einsum("qkp,qkp->qk", differences, differences))
        own[name] = np.sort(named, axis=1)
    best = np.min(list(own.values()), axis=0)
    return {name: {MEASURE: float(np.max(d / best - 1))} for name, d in own.items()}


TASK = Task(
    name="neighbours",
    title="NearestNeighbors, the 10 nearest of 100,000 x 50 rows to each of 100,000 queries",
    description="""\
Rows with five factors behind fifty columns and a little noise. Everybody searches exactly; the distances to the rows
that were named, computed anew, may exceed the least by a millionth.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", run(epicycle_search)),
        Implementation("scikit-learn", "peer", run(sklearn_search)),
        Implementation("scikit-learn-intelex", "peer", run(intelex_search)),
    ),
    quality=quality,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
    cap=300.0,
)
