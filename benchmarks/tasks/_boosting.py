"""Common parts of the boosting tasks: data with interactions, the peers at like settings, and held-out log-loss."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.task import Data, Implementation, Measured, Quality, Solution

MEASURE = "held-out log-loss above LightGBM's"
#: Log-losses no further above LightGBM's than this share count as equal: from one draw of such data to the next they
#: differ by half of it, either way (the task boosting_quality has the differences over many).
TOLERANCE = 0.01


def surface(X: np.ndarray) -> np.ndarray:
    """Steps, waves and products of the first ten columns."""
    return (
        X[:, 0] * X[:, 1]
        + np.sin(3 * X[:, 2])
        + 0.5 * X[:, 3] ** 2
        - X[:, 4]
        + 0.5 * X[:, 5] * X[:, 6]
        + (X[:, 7] > 0.5) * X[:, 8]
        + 0.7 * np.abs(X[:, 9])
    )


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Log-loss on rows that nobody saw, as the excess over LightGBM's with its own arithmetic."""
    y = data["y_test"].astype(np.intp)
    losses = {}
    for name, solution in solutions.items():
        p = np.clip(solution["probability"][np.arange(len(y)), y], 1e-15, 1.0)
        losses[name] = float(-np.log(p).mean())
    level = losses.get("LightGBM", min(losses.values()))
    return {name: {MEASURE: loss / level - 1, "held-out log-loss": loss} for name, loss in losses.items()}


def threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def lightgbm_model(rounds: int, leaves: int, **options: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=rounds,
        num_leaves=leaves,
        learning_rate=0.1,
        min_child_samples=20,
        n_jobs=threads(),
        verbose=-1,
        **options,
    )


def xgboost_model(rounds: int, leaves: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(
        n_estimators=rounds,
        max_leaves=leaves,
        max_depth=0,
        grow_policy="lossguide",
        tree_method="hist",
        learning_rate=0.1,
        reg_lambda=0.0,
        max_bin=255,
        enable_categorical=True,
        n_jobs=threads(),
    )


def sklearn_model(rounds: int, leaves: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=leaves, learning_rate=0.1, early_stopping=False
    )


def epicycle_model(rounds: int, leaves: int) -> Any:
    from epicycle import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=rounds, max_leaf_nodes=leaves, learning_rate=0.1)


#: Everybody's model, by name and role. LightGBM also with its own quantised gradients.
MODELS: dict[str, tuple[str, Callable[[int, int], Any]]] = {
    "LightGBM": ("peer", lightgbm_model),
    "LightGBM quantised": ("peer", lambda rounds, leaves: lightgbm_model(rounds, leaves, use_quantized_grad=True)),
    "XGBoost hist": ("peer", xgboost_model),
    "scikit-learn Hist": ("peer", sklearn_model),
    "epicycle": ("epicycle", epicycle_model),
}


def fit(make: Callable[[int, int], Any], rounds: int, leaves: int) -> Callable[[Data], Measured]:
    def run(data: Data) -> Measured:
        began = time.perf_counter()
        model = make(rounds, leaves).fit(data["X"], data["y"])
        seconds = time.perf_counter() - began
        return Measured(seconds, {"probability": model.predict_proba(data["X_test"])})

    return run


def contestants(rounds: int, leaves: int) -> tuple[Implementation, ...]:
    return tuple(Implementation(name, role, fit(make, rounds, leaves)) for name, (role, make) in MODELS.items())  # type: ignore[arg-type]
