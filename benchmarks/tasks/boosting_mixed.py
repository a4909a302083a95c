"""Boosted trees for two classes on a large table with missing values and categories."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Measured, Target, Task
from benchmarks.tasks._boosting import (
    TOLERANCE,
    epicycle_model,
    lightgbm_model,
    quality,
    surface,
    threads,
    xgboost_model,
)

ROUNDS, LEAVES, NUMBERS, CATEGORIES = 100, 63, 40, 10


def make(directory: Path, quick: bool) -> Data:
    n, held = (20_000, 5_000) if quick else (1_000_000, 100_000)
    rng = np.random.default_rng(17)
    X = rng.standard_normal((n + held, NUMBERS), dtype=np.float32)
    score = surface(X)
    levels = np.empty((n + held, CATEGORIES), np.int16)
    for j, size in enumerate((3, 5, 8, 12, 20, 30, 50, 80, 120, 200)):
        levels[:, j] = np.minimum(rng.geometric(4.0 / (size + 4), n + held), size) - 1
        score += rng.standard_normal(size)[levels[:, j]] * 0.5
    y = (score + rng.standard_normal(n + held) > 0.5).astype(np.int64)
    for j in range(0, NUMBERS, 2):  # a tenth is missing, in the columns that matter too
        X[rng.random(n + held) < 0.1, j] = np.nan
    return {"X": X[:n], "levels": levels[:n], "y": y[:n], "X_test": X[n:], "levels_test": levels[n:], "y_test": y[n:]}


def frame(X: np.ndarray, levels: np.ndarray) -> Any:
    import pandas as pd

    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    for j in range(levels.shape[1]):
        table[f"c{j}"] = pd.Categorical(levels[:, j])
    return table


def catboost_model(rounds: int, leaves: int) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=rounds,
        grow_policy="Lossguide",
        max_leaves=leaves,
        learning_rate=0.1,
        thread_count=threads(),
        verbose=False,
        allow_writing_files=False,
        cat_features=[f"c{j}" for j in range(CATEGORIES)],
    )


def fit(build: Callable[[int, int], Any]) -> Callable[[Data], Measured]:
    def run(data: Data) -> Measured:
        table, test = frame(data["X"], data["levels"]), frame(data["X_test"], data["levels_test"])
        began = time.perf_counter()
        model = build(ROUNDS, LEAVES).fit(table, data["y"])
        seconds = time.perf_counter() - began
        return Measured(seconds, {"probability": model.predict_proba(test)})

    return run


MODELS = (
    ("LightGBM", "peer", lightgbm_model),
    ("XGBoost hist", "peer", xgboost_model),
    ("CatBoost", "peer", catboost_model),
    ("epicycle", "epicycle", epicycle_model),
)

TASK = Task(
    name="boosting_mixed",
    title="GradientBoostingClassifier, 1,000,000 x 50, missing values and ten categorical columns, 100 trees",
    description="""\
A DataFrame of forty float32 columns, of which half miss a tenth of their values, and ten columns of categories with 3
to 200 levels. Learning rate 0.1, 63 leaves, otherwise each library's own settings. Binning counts. At equal quality
the log-loss on 100,000 rows that nobody saw is at most 1% above LightGBM's.""",
    make=make,
    implementations=tuple(Implementation(name, role, fit(build)) for name, role, build in MODELS),  # type: ignore[arg-type]
    quality=quality,
    tolerance=TOLERANCE,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
    cap=600.0,
)
