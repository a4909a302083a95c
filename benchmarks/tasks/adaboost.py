"""AdaBoost with stumps on a tall dense array."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Measured, Target, Task
from benchmarks.tasks._boosting import quality, surface

ROUNDS = 200


def make(directory: Path, quick: bool) -> Data:
    n, held = (3_000, 2_000) if quick else (100_000, 50_000)
    rng = np.random.default_rng(13)
    X = rng.standard_normal((n + held, 20))
    y = (surface(X) + rng.standard_normal(n + held) > 0).astype(np.int64)
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def peer() -> Any:
    from sklearn.ensemble import AdaBoostClassifier

    return AdaBoostClassifier(n_estimators=ROUNDS)


def mine() -> Any:
    from epicycle import AdaBoostClassifier

    return AdaBoostClassifier(n_estimators=ROUNDS)


def fit(build: Callable[[], Any]) -> Callable[[Data], Measured]:
    def run(data: Data) -> Measured:
        began = time.perf_counter()
        model = build().fit(data["X"], data["y"])
        seconds = time.perf_counter() - began
        F = model.decision_function(data["X_test"])
        # Votes count twice and are divided by their sum; scikit-learn's have twice the weight, ours are log odds / 2.
        scale = model.estimator_weights_.sum() / (2 if model.__module__.startswith("epicycle") else 4)
        p = 1 / (1 + np.exp(-2 * scale * F))
        return Measured(seconds, {"probability": np.column_stack([1 - p, p])})

    return run


TASK = Task(
    name="adaboost",
    title="AdaBoostClassifier, 100,000 x 20, 200 stumps",
    description="""\
Normal features; the label is the sign of steps, waves and products of ten of them, plus noise. Sorting counts. At equal
quality the log-loss of the votes on 50,000 rows that nobody saw is within 1% of the best.""",
    make=make,
    implementations=(
        Implementation("scikit-learn", "peer", fit(peer)),
        Implementation("epicycle", "epicycle", fit(mine)),
    ),
    quality=quality,
    tolerance=0.01,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=30.0),),
    cap=300.0,
)
