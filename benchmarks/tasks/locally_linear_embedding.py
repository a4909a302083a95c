"""Locally linear embeddings of a rolled sheet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "sum of the eigenvalues, share above the least"


def make(directory: Path, quick: bool) -> Data:
    from sklearn.datasets import make_swiss_roll

    return {"X": make_swiss_roll(500 if quick else 3_000, random_state=0)[0]}


def setup(library: str, method: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import LocallyLinearEmbedding
        else:
            from sklearn.manifold import LocallyLinearEmbedding
        return LocallyLinearEmbedding(n_neighbors=12, method=method, random_state=0), data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    model.fit(X)
    return {"error": np.array(model.reconstruction_error_)}


def excess(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    least = min(float(s["error"]) for s in solutions.values())
    return {name: {MEASURE: float(s["error"]) / least - 1} for name, s in solutions.items()}


def task(method: str, name: str, at_least: float) -> Task:
    return Task(
        name=name,
        title=f"LocallyLinearEmbedding, method={method!r}, swiss roll of 3,000 rows, twelve neighbours",
        description="Both libraries find the same places; epicycle also reports how well they keep neighbours.",
        make=make,
        implementations=(
            Implementation("epicycle", "epicycle", fit, setup=setup("epicycle", method)),
            Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn", method)),
        ),
        quality=excess,
        tolerance=1e-4,
        targets=(Target("speed against scikit-learn", speedup_over_best_peer(), at_least=at_least),),
    )


STANDARD = task("standard", "locally_linear_embedding", 1.5)
MODIFIED = task("modified", "modified_locally_linear_embedding", 5.0)
