"""Least squares on a tall dense array."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._linear import distances, epicycle_fit, intelex_fit, refined, sklearn_fit


def make(directory: Path, quick: bool) -> Data:
    n, p = (20_000, 30) if quick else (200_000, 100)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2.0, p) + rng.uniform(-1.0, 1.0, p)
    y = X @ rng.standard_normal(p) + 3.0 + rng.standard_normal(n)
    return {"X": X, "y": y}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    return {name: distances(data, s, solutions["reference"]) for name, s in solutions.items()}


TASK = Task(
    name="linear_dense",
    title="LinearRegression, 200,000 x 100, dense",
    description="""\
Independent normal columns of unequal scale and location, unit noise, an intercept. The coefficient error is relative to
a QR solution refined in extended precision; at equal quality it is at most 1e-10.""",
    make=make,
    implementations=(
        Implementation("reference", "reference", refined),
        Implementation("scikit-learn", "peer", sklearn_fit),
        Implementation("scikit-learn-intelex", "peer", intelex_fit),
        Implementation("epicycle", "epicycle", epicycle_fit),
    ),
    quality=quality,
    tolerance=1e-10,
    targets=(
        Target(
            "speed against scikit-learn-intelex, level to within 5 %",
            speedup_over_best_peer(among="scikit-learn-intelex"),
            at_least=0.95,
        ),
    ),
)
