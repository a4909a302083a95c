"""Held-out quality of boosted trees at the same settings, on many tables and splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task
from benchmarks.tasks._boosting import threads
from benchmarks.tasks._tables import tables

ROUNDS, LEAVES, RATE, ROWS = 100, 31, 0.1, 20
PEER = "LightGBM"
SHARE = 0.25  # of the rows held out
WITHIN, WORST = "tables within 0.5% or better", "worst table"
WORST_NOISE = "its standard error"
MEAN, NOISE = "mean over tables", "standard error of the mean"


def make(directory: Path, quick: bool) -> Data:
    data: Data = {}
    for name, table in tables(quick):
        data[f"{name}.X"], data[f"{name}.y"], data[f"{name}.categorical"] = table.X, table.y, table.categorical
        splits = 2 if quick else 40 if len(table.y) < 10_000 else 10
        data[f"{name}.about"] = np.array([table.classes, splits])
    return data


def names(data: Mapping[str, Any]) -> list[str]:
    return [key.removesuffix(".about") for key in data if key.endswith(".about")]


def losses(build: Callable[[int, np.ndarray], Any]) -> Callable[[Data], Solution]:
    """Of every table the losses on the rows held out, one for each split; computed once for all rounds."""
    found: Solution = {}

    def run(data: Data) -> Solution:
        for name in names(data):
            if name in found:
                continue
            X, y, categorical = data[f"{name}.X"], data[f"{name}.y"], np.flatnonzero(data[f"{name}.categorical"])
            classes, splits = data[f"{name}.about"].tolist()
            of_split = []
            for split in range(splits):
                order = np.random.default_rng(split).permutation(len(y))
                held, train = np.split(order, [int(SHARE * len(y))])
                fit_predict = build(classes, categorical)
                of_split.append(_loss(fit_predict(X[train], y[train], X[held]), y[held], classes))
            found[name] = np.array(of_split)
        return found

    return run


def _loss(predicted: np.ndarray, y: np.ndarray, classes: int) -> float:
    if not classes:
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    p = predicted[np.arange(len(y)), y.astype(np.intp)]
    return float(-np.log(np.clip(p, 1e-15, 1.0)).mean())


def epicycle_model(classes: int, categorical: np.ndarray) -> Any:
    from epicycle import GradientBoostingClassifier, GradientBoostingRegressor

    model = (GradientBoostingClassifier if classes else GradientBoostingRegressor)(
        n_estimators=ROUNDS,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        min_samples_leaf=ROWS,
        categorical_features=categorical.tolist() or None,
    )
    return lambda X, y, rows: _answer(model.fit(X, y), rows)


def lightgbm_model(classes: int, categorical: np.ndarray) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = (LGBMClassifier if classes else LGBMRegressor)(
        n_estimators=ROUNDS,
        num_leaves=LEAVES,
        learning_rate=RATE,
        min_child_samples=ROWS,
        min_data_in_bin=1,
        n_jobs=threads(),
        verbose=-1,
    )
    return lambda X, y, rows: _answer(model.fit(X, y, categorical_feature=categorical.tolist()), rows)


def xgboost_model(classes: int, categorical: np.ndarray) -> Any:
    import pandas as pd
    from xgboost import XGBClassifier, XGBRegressor

    model = (XGBClassifier if classes else XGBRegressor)(
        n_estimators=ROUNDS,
        max_leaves=LEAVES,
        max_depth=0,
        grow_policy="lossguide",
        tree_method="hist",
        learning_rate=RATE,
        reg_lambda=0.0,
        max_bin=255,
        enable_categorical=True,
        n_jobs=threads(),
    )

    def table(X: np.ndarray, levels: list[np.ndarray]) -> Any:
        frame = pd.DataFrame(X)
        for j, known in zip(categorical, levels, strict=True):
            frame[j] = pd.Categorical(frame[j].astype("Int64"), categories=known.astype(int))
        return frame

    def fit_predict(X: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        levels = [np.unique(X[:, j][~np.isnan(X[:, j])]) for j in categorical]
        return _answer(model.fit(table(X, levels), y.astype(int) if classes else y), table(rows, levels))

    return fit_predict


def _answer(model: Any, rows: Any) -> np.ndarray:
    return np.asarray(model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows))


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Relative differences from the peer: of a table that of its mean loss over the splits."""
    if PEER not in solutions:
        return {}
    result = {}
    for implementation, found in solutions.items():
        excess = {t: float(np.mean(found[t]) / np.mean(solutions[PEER][t]) - 1) for t in names(data)}
        noise = [_standard_error(found[t], solutions[PEER][t]) for t in names(data)]
        summary = {
            MEAN: float(np.mean(list(excess.values()))),
            NOISE: float(np.sqrt(np.sum(np.square(noise))) / len(noise)),
            WITHIN: float(sum(e <= 0.005 for e in excess.values())),
            WORST: max(excess.values()),
            WORST_NOISE: max(zip(excess.values(), noise, strict=True))[1],
        }
        result[implementation] = summary | excess
    return result


def _standard_error(mine: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.std((mine - theirs) / np.mean(theirs)) / np.sqrt(len(mine)))


def measured(name: str) -> Callable[[Mapping[str, Outcome]], float]:
    return lambda outcomes: outcomes["epicycle"].quality.get(name, float("nan"))


TASK = Task(
    name="boosting_quality",
    title="held-out loss of GradientBoosting at the settings of LightGBM",
    description=f"""\
{ROUNDS} rounds of {LEAVES} leaves, learning rate {RATE}, at least {ROWS} rows a leaf (XGBoost: a curvature of 1), 255
bins, no penalty. A quarter of the rows is held out, in 40 random splits of tables below 10,000 rows and in 10 of larger
ones. Each number is the mean loss over the splits (log-loss of classes, root mean squared error of numbers; of
logarithms for ames and bike_sharing) relative to LightGBM's, less one: below zero is better. Splits of small tables
differ from each other by more than half a percent: the standard error of the worst table stands beside it. Time is not
what this task is about.""",
    make=make,
    implementations=(
        Implementation(PEER, "peer", losses(lightgbm_model)),
        Implementation("XGBoost hist", "peer", losses(xgboost_model)),
        Implementation("epicycle", "epicycle", losses(epicycle_model)),
    ),
    quality=quality,
    tolerance=0.005,
    targets=(
        Target("tables on which the loss is at most 0.5% above LightGBM's", measured(WITHIN), at_least=6),
        Target("mean over the tables, relative to LightGBM", measured(MEAN), at_most=0.0),
    ),
    cap=3600.0,
    memory=False,
)
