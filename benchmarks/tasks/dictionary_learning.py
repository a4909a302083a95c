"""A dictionary of patches of an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "objective, share above the least"
ALPHA = 1.0


def make(directory: Path, quick: bool) -> Data:
    """Patches of 8 x 8 pixels of a drawn image of edges and gratings, without their means."""
    n, side = (400, 64) if quick else (4_000, 256)
    rng = np.random.default_rng(3)
    across, down = np.meshgrid(np.arange(side), np.arange(side))
    image = np.zeros((side, side))
    for _ in range(60):
        angle, centre, width = rng.uniform(0, np.pi), rng.uniform(0, side, 2), rng.uniform(side / 16, side / 5)
        along = np.cos(angle) * (across - centre[0]) + np.sin(angle) * (down - centre[1])
        near = (across - centre[0]) ** 2 + (down - centre[1]) ** 2 < width**2
        image = np.where(near, rng.uniform(0, 10) * np.sin(along * rng.uniform(0.2, 1.5)) + rng.uniform(0, 20), image)
    corner = rng.integers(0, side - 8, (n, 2))
    X = np.stack([image[i : i + 8, j : j + 8].ravel() for i, j in corner])
    X += rng.normal(size=X.shape)
    return {"X": X - X.mean(axis=1, keepdims=True), "k": np.array(50)}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import DictionaryLearning
        else:
            from sklearn.decomposition import DictionaryLearning
        options = {"alpha": ALPHA, "max_iter": 20, "tol": 0.0, "random_state": 0, "fit_algorithm": "cd"}
        return DictionaryLearning(int(data["k"]), **options), data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    return {"code": model.fit_transform(X), "dictionary": model.components_}


def reached(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    def value(C: np.ndarray, D: np.ndarray) -> float:
        return 0.5 * float(np.square(data["X"] - C @ D).sum()) + ALPHA * float(np.abs(C).sum())

    found = {name: value(s["code"], s["dictionary"]) for name, s in solutions.items()}
    best = min(found.values())
    return {name: {MEASURE: v / best - 1} for name, v in found.items()}


DICTIONARY_LEARNING = Task(
    name="dictionary_learning",
    title="DictionaryLearning, 4,000 patches of 64 pixels, 50 atoms, twenty rounds",
    description="Both by coordinate descent; the objective may be 5% above the least.",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
    ),
    quality=reached,
    tolerance=0.05,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
