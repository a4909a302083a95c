"""Stress majorisation of all distances of handwritten digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "stress, share above the least"


def make(directory: Path, quick: bool) -> Data:
    from sklearn.datasets import load_digits
    from sklearn.metrics import euclidean_distances

    X = load_digits().data[: 200 if quick else 1_200]
    start = np.random.default_rng(0).uniform(size=(len(X), 2))
    return {"D": euclidean_distances(X), "start": start, "steps": np.array(20 if quick else 100)}


def setup(library: str, metric: bool) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import smacof
        else:
            from sklearn.manifold import smacof
        options = {"init": data["start"], "max_iter": int(data["steps"]), "eps": 0.0, "n_init": 1, "metric": metric}
        return smacof, data["D"], options

    return prepare


def scale(ready: tuple[Any, np.ndarray, dict[str, Any]]) -> Solution:
    smacof, D, options = ready
    places, stress = smacof(D, **options)
    return {"places": places, "stress": np.array(stress)}


def excess(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    least = min(float(s["stress"]) for s in solutions.values())
    return {name: {MEASURE: float(s["stress"]) / least - 1} for name, s in solutions.items()}


def task(metric: bool, name: str, what: str, at_least: float) -> Task:
    return Task(
        name=name,
        title=f"MDS {what}, 1,200 digits, a hundred steps from the same start",
        description="The same iterations in both libraries, which end at the same places.",
        make=make,
        implementations=(
            Implementation("epicycle", "epicycle", scale, setup=setup("epicycle", metric)),
            Implementation("scikit-learn", "peer", scale, setup=setup("scikit-learn", metric)),
        ),
        quality=excess,
        tolerance=1e-3,
        targets=(Target("speed against scikit-learn", speedup_over_best_peer(), at_least=at_least),),
    )


METRIC = task(True, "mds", "by distances", 3.0)
BY_ORDER = task(False, "mds_by_order", "by the order of distances", 5.0)
