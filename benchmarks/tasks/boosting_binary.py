"""Boosted trees for two classes on a tall dense array, and their prediction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Solution, Target, Task
from benchmarks.tasks._boosting import MODELS, TOLERANCE, contestants, quality, surface

ROUNDS, LEAVES = 100, 63


def make(directory: Path, quick: bool) -> Data:
    n, held = (20_000, 5_000) if quick else (500_000, 100_000)
    rng = np.random.default_rng(11)
    X = rng.standard_normal((n + held, 28))
    y = (surface(X) + rng.standard_normal(n + held) > 0).astype(np.int64)
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def make_rows(directory: Path, quick: bool) -> Data:
    """A tenth of the rows to learn from, and a million to predict."""
    n, many = (5_000, 20_000) if quick else (50_000, 1_000_000)
    rng = np.random.default_rng(12)
    X = rng.standard_normal((n + many, 28))
    y = (surface(X) + rng.standard_normal(n + many) > 0).astype(np.int64)
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def fitted(build: Callable[[int, int], Any]) -> Callable[[Data], Any]:
    def setup(data: Data) -> Any:
        return build(ROUNDS, LEAVES).fit(data["X"], data["y"]), data["X_test"]

    return setup


def predict(state: Any) -> Solution:
    model, X = state
    return {"probability": model.predict_proba(X)}


TASK = Task(
    name="boosting_binary",
    title="GradientBoostingClassifier, 500,000 x 28, two classes, 100 trees of 63 leaves",
    description="""\
Normal features; the label is the sign of steps, waves and products of ten of them, plus noise. Everybody has learning
rate 0.1, 255 bins, at least 20 rows a leaf (XGBoost: a curvature of 1), no penalty. Binning counts. At equal quality
the log-loss on 100,000 rows that nobody saw is at most 1% above
LightGBM's.""",
    make=make,
    implementations=contestants(ROUNDS, LEAVES),
    quality=quality,
    tolerance=TOLERANCE,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
    cap=300.0,
)
PREDICT = Task(
    name="boosting_predict",
    title="predict_proba of 1,000,000 x 28 rows by 100 trees of 63 leaves",
    description="The models are fitted to 50,000 rows before the clock starts; otherwise as boosting_binary.",
    make=make_rows,
    implementations=tuple(
        Implementation(name, role, predict, setup=fitted(build))  # type: ignore[arg-type]
        for name, (role, build) in MODELS.items()
        if name != "LightGBM quantised"
    ),
    quality=quality,
    tolerance=0.01,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
