"""Held-out quality after a budget of time: `epicycle train` against FLAML, on the same splits of many tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task
from benchmarks.tasks._boosting import threads
from benchmarks.tasks._tables import tables

PEER = "FLAML"
SHARE = 0.25  # of the rows held out
WORST, MEAN = "worst table", "mean over tables"
#: Seconds for each table; EPICYCLE_AUTOML_SECONDS sets another number.
SECONDS, QUICK_SECONDS = 60.0, 5.0
#: Tables of every kind: few and many rows, categories, missing values, several classes, numbers to predict.
TABLES = ("breast_cancer", "digits", "diabetes", "adult", "ames", "bike_sharing", "california", "covertype", "spambase")


def make(directory: Path, quick: bool) -> Data:
    seconds = float(os.environ.get("EPICYCLE_AUTOML_SECONDS", QUICK_SECONDS if quick else SECONDS))
    data: Data = {"seconds": np.array([seconds])}
    for name, table in tables(quick):
        if name not in TABLES and not quick:
            continue
        data[f"{name}.X"], data[f"{name}.y"], data[f"{name}.categorical"] = table.X, table.y, table.categorical
        data[f"{name}.about"] = np.array([table.classes])
    return data


def names(data: Mapping[str, Any]) -> list[str]:
    return [key.removesuffix(".about") for key in data if key.endswith(".about")]


def losses(answer: Callable[..., np.ndarray]) -> Callable[[Data], Solution]:
    """Of every table the loss on the rows held out; computed once, whatever the number of rounds."""
    known: Solution = {}

    def run(data: Data) -> Solution:
        for name in names(data):
            if name in known:
                continue
            X, y, categorical = data[f"{name}.X"], data[f"{name}.y"], np.flatnonzero(data[f"{name}.categorical"])
            classes = int(data[f"{name}.about"][0])
            order = np.random.default_rng(0).permutation(len(y))
            held, train = np.split(order, [int(SHARE * len(y))])
            said = answer(X[train], y[train], X[held], y[held], categorical, classes, float(data["seconds"][0]))
            known[name] = np.array([_loss(said, y[held], classes)])
        return known

    return run


def _loss(predicted: np.ndarray, y: np.ndarray, classes: int) -> float:
    if not classes:
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    p = predicted[np.arange(len(y)), y.astype(np.intp)]
    return float(-np.log(np.clip(p, 1e-15, 1.0)).mean())


def with_epicycle(
    X: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    truth: np.ndarray,
    categorical: np.ndarray,
    classes: int,
    seconds: float,
) -> np.ndarray:
    import pyarrow as pa

    import epicycle as ep

    def table(X: np.ndarray, y: np.ndarray) -> pa.Table:
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        for j in categorical:
            columns[f"x{j}"] = pa.array([None if np.isnan(v) else f"level {v:.0f}" for v in X[:, j]], pa.string())
        return pa.table({**columns, "y": y.astype(np.int64) if classes else y})

    run = ep.train(
        table(X, y),
        "y",
        test=table(rows, truth),
        time=seconds,
        metric="log_loss" if classes else "rmse",
        task="classification" if classes else "regression",
        n_jobs=threads(),
        progress=False,
    )
    return run.test_part.responses["predict_proba" if classes else "predict"]


def with_flaml(
    X: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    truth: np.ndarray,
    categorical: np.ndarray,
    classes: int,
    seconds: float,
) -> np.ndarray:
    import pandas as pd
    from flaml import AutoML

    def frame(X: np.ndarray) -> Any:
        # FLAML asks NumPy for the type of the names, which does not know that of pandas' strings.
        made = pd.DataFrame(X, columns=pd.Index([f"x{j}" for j in range(X.shape[1])], dtype=object))
        for j in categorical:
            made[f"x{j}"] = pd.Categorical(made[f"x{j}"])
        return made

    # FLAML's wrappers of XGBoost do not know XGBoost 3.
    learners = ["lgbm", "catboost", "rf", "extra_tree", "kneighbor", *(["lrl1"] if classes else [])]
    model = AutoML()
    model.fit(
        frame(X),
        y.astype(int) if classes else y,
        task="classification" if classes else "regression",
        metric="log_loss" if classes else "rmse",
        time_budget=seconds,
        n_jobs=threads(),
        seed=0,
        verbose=0,
        estimator_list=learners,
    )
    return np.asarray(model.predict_proba(frame(rows)) if classes else model.predict(frame(rows)))


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Losses relative to the peer's, less one; without the peer the losses themselves."""
    result = {}
    for implementation, found in solutions.items():
        if PEER not in solutions:
            result[implementation] = {name: float(found[name][0]) for name in names(data)}
            continue
        excess = {name: float(found[name][0] / solutions[PEER][name][0] - 1) for name in names(data)}
        result[implementation] = {MEAN: float(np.mean(list(excess.values()))), WORST: max(excess.values())} | excess
    return result


def measured(name: str) -> Callable[[Mapping[str, Outcome]], float]:
    return lambda outcomes: outcomes["epicycle"].quality.get(name, float("nan"))


TASK = Task(
    name="automl",
    title="a minute for each table: epicycle train and FLAML",
    description="""\
A quarter of the rows of every table is held out, the same for both; 60 seconds of search on the others (5 with --quick;
EPICYCLE_AUTOML_SECONDS sets another number), deciding by the log-loss of classes or the root mean squared error of
numbers. Each number is that loss on the rows held out relative to FLAML's, less one: below zero is better. The time is
given, so that it is not what this task is about; answers are computed once for all rounds. FLAML is left out where it
is not there; its learners are used but for XGBoost, of which it does not know the third version.""",
    make=make,
    implementations=(
        Implementation(PEER, "peer", losses(with_flaml)),
        Implementation("epicycle", "epicycle", losses(with_epicycle)),
    ),
    quality=quality,
    tolerance=0.0,
    targets=(Target("mean over tables, relative to FLAML", measured(MEAN), at_most=0.0),),
    cap=7_200.0,
    memory=False,
)
