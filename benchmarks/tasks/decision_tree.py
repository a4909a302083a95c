"""One exact regression tree on a tall dense array."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Measured, Quality, Solution, Target, Task
from benchmarks.tasks._boosting import surface, threads

MEASURE = "training error, relative to the best"
DEPTH = 12


def make(directory: Path, quick: bool) -> Data:
    n = 10_000 if quick else 200_000
    rng = np.random.default_rng(21)
    X = rng.standard_normal((n, 20)).astype(np.float32).astype(np.float64)  # some peers keep 32 bits
    return {"X": X, "y": surface(X) + rng.standard_normal(n)}


def epicycle_model() -> Any:
    from epicycle import DecisionTreeRegressor

    return DecisionTreeRegressor(max_depth=DEPTH)


def xgboost_model() -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(
        n_estimators=1,
        tree_method="exact",
        max_depth=DEPTH,
        learning_rate=1.0,
        reg_lambda=0.0,
        min_child_weight=0.0,
        n_jobs=threads(),
    )


def sklearn_model() -> Any:
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(max_depth=DEPTH)


def fit(build: Callable[[], Any]) -> Callable[[Data], Measured]:
    def run(data: Data) -> Measured:
        model = build()
        began = time.perf_counter()
        model.fit(data["X"], data["y"])
        seconds = time.perf_counter() - began
        return Measured(seconds, {"prediction": np.asarray(model.predict(data["X"]), np.float64)})

    return run


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    errors = {name: float(np.mean((s["prediction"] - data["y"]) ** 2)) for name, s in solutions.items()}
    best = min(errors.values())
    return {name: {MEASURE: error / best - 1, "training error": error} for name, error in errors.items()}


TASK = Task(
    name="decision_tree",
    title="DecisionTreeRegressor, 200,000 x 20, exact splits, depth 12",
    description="""\
Normal features; the target is made of steps, waves and products of ten of them, plus noise. Everybody tries every
threshold. At equal quality the mean squared error of the training rows, which the splits lower, is within 0.1% of the
best: the trees are the same up to ties.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit(epicycle_model)),
        Implementation("XGBoost exact", "peer", fit(xgboost_model)),
        Implementation("scikit-learn", "peer", fit(sklearn_model)),
    ),
    quality=quality,
    tolerance=1e-3,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
