"""Isomap of a rolled sheet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "sum of squares left after the best match with the sheet, above the least"


def make(directory: Path, quick: bool) -> Data:
    from sklearn.datasets import make_swiss_roll

    X, t = make_swiss_roll(500 if quick else 3_000, random_state=0)
    length = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2
    return {"X": X, "sheet": np.column_stack([length, X[:, 1]])}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import Isomap
        else:
            from sklearn.manifold import Isomap
        return Isomap(n_neighbors=10), data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    return {"places": model.fit_transform(X)}


def unrolled(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    from scipy.spatial import procrustes

    left = {name: procrustes(data["sheet"], s["places"])[2] for name, s in solutions.items()}
    return {name: {MEASURE: value - min(left.values())} for name, value in left.items()}


TASK = Task(
    name="isomap",
    title="Isomap, swiss roll of 3,000 rows, ten neighbours",
    description="Both libraries find the same places; epicycle also reports how well they keep neighbours.",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
    ),
    quality=unrolled,
    tolerance=1e-6,
    targets=(Target("speed against scikit-learn", speedup_over_best_peer(), at_least=1.5),),
)
