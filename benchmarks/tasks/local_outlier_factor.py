"""Local outlier factors of many rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._boosting import threads

MEASURE = "largest difference from the least factor found, relative"


def make(directory: Path, quick: bool) -> Data:
    n = 5_000 if quick else 100_000
    rng = np.random.default_rng(41)
    return {"X": np.concatenate([rng.standard_normal((n // 2, 10)), 3 + 0.3 * rng.standard_normal((n // 2, 10))])}


def epicycle_factor() -> Any:
    from epicycle import LocalOutlierFactor

    return LocalOutlierFactor()


def sklearn_factor() -> Any:
    from sklearn.neighbors import LocalOutlierFactor

    return LocalOutlierFactor(n_jobs=threads())


def run(build: Callable[[], Any]) -> Callable[[Data], Solution]:
    def solve(data: Data) -> Solution:
        return {"factor": -build().fit(data["X"]).negative_outlier_factor_}

    return solve


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """All factors are exact: whoever differs has other neighbours."""
    least = np.min([s["factor"] for s in solutions.values()], axis=0)
    return {name: {MEASURE: float(np.max(s["factor"] / least - 1))} for name, s in solutions.items()}


TASK = Task(
    name="local_outlier_factor",
    title="LocalOutlierFactor of 100,000 x 10 rows, 20 neighbours",
    description="""\
Two clusters of different density. Everybody searches exactly, so that factors agree to rounding. pyod's factor is
scikit-learn's.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", run(epicycle_factor)),
        Implementation("scikit-learn", "peer", run(sklearn_factor)),
    ),
    quality=quality,
    tolerance=1e-6,
    targets=(Target("speed against scikit-learn", speedup_over_best_peer(), at_least=2.0),),
    cap=300.0,
)
