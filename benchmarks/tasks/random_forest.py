"""A random forest for two classes, fully grown, and its prediction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Measured, Quality, Solution, Target, Task
from benchmarks.tasks._boosting import surface, threads

MEASURE = "1 - AUC on new rows, relative to scikit-learn's"
TREES = 100


def make(directory: Path, quick: bool) -> Data:
    n, held = (5_000, 5_000) if quick else (100_000, 50_000)
    rng = np.random.default_rng(22)
    X = rng.standard_normal((n + held, 30))
    y = (surface(X) + rng.standard_normal(n + held) > 0.8).astype(np.int64)
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}


def epicycle_model() -> Any:
    from epicycle import RandomForestClassifier

    return RandomForestClassifier(n_estimators=TREES, random_state=0)


def intelex_model() -> Any:
    from sklearnex.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=TREES, random_state=0, n_jobs=threads())


def sklearn_model() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=TREES, random_state=0, n_jobs=threads())


def lightgbm_model() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        boosting_type="rf",
        n_estimators=TREES,
        num_leaves=8191,
        min_child_samples=1,
        bagging_freq=1,
        bagging_fraction=0.632,
        feature_fraction_bynode=5 / 30,
        n_jobs=threads(),
        verbose=-1,
    )


def xgboost_model() -> Any:
    from xgboost import XGBRFClassifier

    return XGBRFClassifier(
        n_estimators=TREES,
        max_depth=0,
        max_leaves=8191,
        grow_policy="lossguide",
        tree_method="hist",
        subsample=0.632,
        colsample_bynode=5 / 30,
        reg_lambda=0.0,
        min_child_weight=0.0,
        n_jobs=threads(),
    )


def fit(build: Callable[[], Any]) -> Callable[[Data], Measured]:
    def run(data: Data) -> Measured:
        model = build()
        began = time.perf_counter()
        model.fit(data["X"], data["y"])
        seconds = time.perf_counter() - began
        return Measured(seconds, {"probability": np.asarray(model.predict_proba(data["X_test"])[:, 1])})

    return run


def auc(y: np.ndarray, score: np.ndarray) -> float:
    """The share of pairs of one row of each class that are in the right order; ties count half."""
    from scipy.stats import rankdata

    rank, positive = rankdata(score), y == 1
    n1, n0 = int(positive.sum()), int((~positive).sum())
    return float((rank[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    values = {name: auc(data["y_test"], s["probability"]) for name, s in solutions.items()}
    own = 1 - values.get("scikit-learn", max(values.values()))
    return {name: {MEASURE: (1 - value) / own - 1, "1 - AUC": 1 - value} for name, value in values.items()}


MODELS = (
    ("epicycle", "epicycle", epicycle_model),
    ("scikit-learn-intelex", "peer", intelex_model),
    ("scikit-learn", "peer", sklearn_model),
    ("LightGBM rf", "peer", lightgbm_model),
    ("XGBoost rf", "peer", xgboost_model),
)

TASK = Task(
    name="random_forest",
    title="RandomForestClassifier, 100,000 x 30, two classes, 100 trees",
    description="""\
Normal features; the label is the sign of steps, waves and products of ten of them, plus noise. Trees are fully grown
(LightGBM and XGBoost: to 8191 leaves) with five features a split. Binning counts. At equal quality 1 - AUC on 50,000
rows that nobody saw is at most 3% above scikit-learn's.""",
    make=make,
    implementations=tuple(Implementation(name, role, fit(build)) for name, role, build in MODELS),  # type: ignore[arg-type]
    quality=quality,
    tolerance=0.03,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
    cap=400.0,
)
