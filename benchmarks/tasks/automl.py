"""Held-out quality after a budget of time: `epicycle train` against FLAML, AutoGluon and LightGBM tuned by Optuna.

On the same splits of many tables. AutoGluon asks for other versions of much that is here: EPICYCLE_AUTOGLUON names the
Python of an environment that has it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task
from benchmarks.tasks._boosting import threads
from benchmarks.tasks._tables import tables

SHARE = 0.25  # of the rows held out
RANK, MEAN, WORST = "mean rank", "mean over tables", "worst table"
#: Seconds for each table; EPICYCLE_AUTOML_SECONDS sets another number, EPICYCLE_AUTOML_TABLES some of the tables.
SECONDS, QUICK_SECONDS = 60.0, 5.0
#: Tables that are drawn from a formula are no tables of this comparison.
MADE = ("friedman", "clusters")


def make(directory: Path, quick: bool) -> Data:
    seconds = float(os.environ.get("EPICYCLE_AUTOML_SECONDS", QUICK_SECONDS if quick else SECONDS))
    asked = [name for name in os.environ.get("EPICYCLE_AUTOML_TABLES", "").split(",") if name]
    data: Data = {"seconds": np.array([seconds])}
    for name, table in tables(quick, every=True):
        if (asked and name not in asked) or (name in MADE and not quick):
            continue
        data[f"{name}.X"], data[f"{name}.y"], data[f"{name}.categorical"] = table.X, table.y, table.categorical
        data[f"{name}.about"] = np.array([table.classes])
    return data


def names(data: Mapping[str, Any]) -> list[str]:
    return [key.removesuffix(".about") for key in data if key.endswith(".about")]


def losses(implementation: str, answer: Callable[..., np.ndarray]) -> Callable[[Data], Solution]:
    """Of every table the loss on the rows held out; computed once, whatever the number of rounds."""
    known: Solution = {}

    def run(data: Data) -> Solution:
        seconds = float(data["seconds"][0])
        kept = Kept(implementation, seconds)
        known.update({name: np.array([loss]) for name, loss in kept.losses.items() if name in names(data)})
        for name in names(data):
            if name in known:
                continue
            X, y, categorical = data[f"{name}.X"], data[f"{name}.y"], np.flatnonzero(data[f"{name}.categorical"])
            classes = int(data[f"{name}.about"][0])
            order = np.random.default_rng(0).permutation(len(y))
            held, train = np.split(order, [int(SHARE * len(y))])
            said = answer(X[train], y[train], X[held], y[held], categorical, classes, seconds)
            known[name] = np.array([_loss(said, y[held], classes)])
            kept.add(name, float(known[name][0]))
        return known

    return run


class Kept:
    """Losses of earlier runs, where EPICYCLE_AUTOML_KEPT names a folder for them.

    All tables take hours: runs of some of them add up.
    """

    def __init__(self, implementation: str, seconds: float) -> None:
        folder = os.environ.get("EPICYCLE_AUTOML_KEPT")
        name = f"{implementation.lower().replace(' ', '-')}-{seconds:g}.json"
        self.file = None if folder is None else Path(folder) / name
        there = self.file is not None and self.file.exists()
        self.losses: dict[str, float] = json.loads(self.file.read_text()) if self.file and there else {}

    def add(self, table: str, loss: float) -> None:
        """Keep one more."""
        if self.file is None:
            return
        self.losses[table] = loss
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.losses, indent=1, sort_keys=True) + "\n")


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


def with_optuna(
    X: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    truth: np.ndarray,
    categorical: np.ndarray,
    classes: int,
    seconds: float,
) -> np.ndarray:
    """LightGBM, its parameters by Optuna's default sampler: five folds, rounds by early stopping, then a refit."""
    import time

    import lightgbm as lgb
    import optuna
    from sklearn.model_selection import KFold, StratifiedKFold

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folds = (StratifiedKFold if classes else KFold)(5, shuffle=True, random_state=0)
    splits = [(a, b) for a, b in folds.split(X, y)]
    fixed: dict[str, Any] = {"num_threads": threads(), "seed": 0, "verbose": -1, "bagging_freq": 1}
    fixed |= {"objective": ("binary" if classes == 2 else "multiclass") if classes else "regression"}
    fixed |= {"num_class": classes} if classes > 2 else {} if classes else {"metric": "rmse"}
    began = time.perf_counter()
    rounds: dict[int, int] = {}

    def data(part: Any = slice(None)) -> Any:
        return lgb.Dataset(X[part], y[part], categorical_feature=categorical.tolist(), params={"verbose": -1})

    def objective(trial: Any) -> float:
        settings = {
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 4, 256, log=True),
            "min_data_in_leaf": trial.suggest_int("min_data_in_leaf", 1, 128, log=True),
            "lambda_l1": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
            "lambda_l2": trial.suggest_float("lambda_l2", 1e-8, 10.0, log=True),
            "feature_fraction": trial.suggest_float("feature_fraction", 0.3, 1.0),
            "bagging_fraction": trial.suggest_float("bagging_fraction", 0.4, 1.0),
        }
        found, used = [], []
        for train, test in splits:
            booster = lgb.train(
                fixed | settings, data(train), 5_000, [data(test)], callbacks=[lgb.early_stopping(50, verbose=False)]
            )
            found.append(next(iter(booster.best_score["valid_0"].values())))
            used.append(booster.best_iteration)
            if time.perf_counter() - began > 0.9 * seconds:
                break
        rounds[trial.number] = int(np.mean(used))
        return float(np.mean(found))

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, timeout=0.85 * seconds)
    model = lgb.train(fixed | study.best_params, data(), rounds[study.best_trial.number])
    said = np.asarray(model.predict(rows))
    return np.column_stack([1 - said, said]) if classes == 2 else said


_AUTOGLUON = """
import sys, tempfile
import numpy as np, pandas as pd
from autogluon.tabular import TabularPredictor
given = np.load(sys.argv[1])
classes = int(given["classes"])
def frame(X):
    made = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    for j in given["categorical"]:
        made[f"x{j}"] = made[f"x{j}"].astype("category")
    return made
train = frame(given["X"]).assign(y=given["y"].astype(int) if classes else given["y"])
with tempfile.TemporaryDirectory() as folder:
    kind = "regression" if not classes else "binary" if classes == 2 else "multiclass"
    metric = "log_loss" if classes else "root_mean_squared_error"
    model = TabularPredictor("y", problem_type=kind, eval_metric=metric, path=folder, verbosity=0)
    model.fit(train, time_limit=float(given["seconds"]), presets="good_quality", num_cpus=int(given["threads"]))
    rows = frame(given["rows"])
    said = model.predict_proba(rows)[list(range(classes))] if classes else model.predict(rows)
np.save(sys.argv[2], np.asarray(said))
"""


def with_autogluon(
    X: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    truth: np.ndarray,
    categorical: np.ndarray,
    classes: int,
    seconds: float,
) -> np.ndarray:
    """AutoGluon with the preset of good quality, in its own environment."""
    python = os.environ.get("EPICYCLE_AUTOGLUON")
    if python is None:
        raise ModuleNotFoundError("EPICYCLE_AUTOGLUON names no Python with autogluon.tabular")
    with tempfile.TemporaryDirectory() as folder:
        given, said = Path(folder) / "given.npz", Path(folder) / "said.npy"
        about = {"categorical": categorical, "classes": classes, "seconds": seconds, "threads": threads()}
        np.savez(given, X=X, y=y, rows=rows, **about)  # type: ignore[arg-type]  # numbers become arrays
        subprocess.run([python, "-c", _AUTOGLUON, str(given), str(said)], check=True, capture_output=True)
        return np.asarray(np.load(said))


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Mean rank, and losses relative to the best of the others on that table, less one; alone the losses themselves."""
    if len(solutions) == 1:
        return {one: {name: float(found[name][0]) for name in names(data)} for one, found in solutions.items()}
    result = {}
    for one, found in solutions.items():
        others = [other for other in solutions if other != one]
        excess, ranks = {}, []
        for name in names(data):
            loss, rest = float(found[name][0]), [float(solutions[other][name][0]) for other in others]
            # A loss of nothing is not divided by: a hundredth of a percent is as good as none.
            excess[name] = max(loss, 1e-4) / max(min(rest), 1e-4) - 1
            ranks.append(1 + sum(value < loss for value in rest) + 0.5 * sum(value == loss for value in rest))
        values = list(excess.values())
        result[one] = {RANK: float(np.mean(ranks)), MEAN: float(np.mean(values)), WORST: max(values)} | excess
    return result


def measured(name: str) -> Callable[[Mapping[str, Outcome]], float]:
    return lambda outcomes: outcomes["epicycle"].quality.get(name, float("nan"))


def lead(outcomes: Mapping[str, Outcome]) -> float:
    """Mean rank of epicycle less the best of the others'."""
    ranks = {name: outcome.quality.get(RANK, float("nan")) for name, outcome in outcomes.items()}
    return ranks.pop("epicycle") - min(ranks.values(), default=float("nan"))


TASK = Task(
    name="automl",
    title="a minute for each table: epicycle train, FLAML, AutoGluon, and LightGBM tuned by Optuna",
    description="""\
A quarter of the rows of every table is held out, the same for all; 60 seconds of search on the others (5 with --quick;
EPICYCLE_AUTOML_SECONDS sets another number, EPICYCLE_AUTOML_TABLES the tables, and EPICYCLE_AUTOML_KEPT a folder in
which the losses of runs of some tables add up), deciding by the log-loss of classes or the root mean squared error of
numbers. Each number is that loss on the rows held out relative to the best of the others on the table, less one: below
zero it is the best. The time is given, so that it is not what this task is about; answers are computed once for all
rounds. Peers are left out where they are not there; FLAML's learners are used but for XGBoost, of which it does not
know the third version; AutoGluon is the preset of good quality in the Python that EPICYCLE_AUTOGLUON names.""",
    make=make,
    implementations=(
        Implementation("FLAML", "peer", losses("FLAML", with_flaml)),
        Implementation("AutoGluon", "peer", losses("AutoGluon", with_autogluon)),
        Implementation("LightGBM by Optuna", "peer", losses("LightGBM by Optuna", with_optuna)),
        Implementation("epicycle", "epicycle", losses("epicycle", with_epicycle)),
    ),
    quality=quality,
    tolerance=float("inf"),
    targets=(
        Target("mean rank, less that of the best of the others", lead, at_most=0.0),
        Target("worst table, relative to the best of the others", measured(WORST), at_most=0.02),
    ),
    cap=14_400.0,
    memory=False,
)
