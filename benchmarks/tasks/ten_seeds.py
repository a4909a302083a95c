"""Held-out quality of forests and boosting on small data, over ten draws of the data and of the trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.task import Data, Implementation, Outcome, Quality, Role, Solution, Target, Task
from benchmarks.tasks import boosting_quality as boosting, random_forest as forest
from benchmarks.tasks._boosting import surface

SEEDS = 10
TREES, ROWS_OF_A_LEAF = 25, 5
EXCESS, NOISE = "mean over the seeds, relative to the peer", "its standard error"

Scores = Callable[[np.ndarray, np.ndarray, np.ndarray, int], tuple[np.ndarray, float]]


def make_forest(directory: Path, quick: bool) -> Data:
    return {"sizes": np.array([2_000, 2_000, 30] if quick else [100_000, 50_000, 30])}


def make_boosting(directory: Path, quick: bool) -> Data:
    return {"sizes": np.array([2_000, 2_000, 28] if quick else [30_000, 100_000, 28])}


def draw(data: Data, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to learn from and their labels, rows held out and theirs."""
    n, held, p = data["sizes"].tolist()
    rng = np.random.default_rng([seed, n])
    X = rng.standard_normal((n + held, p))
    y = (surface(X) + 3 * rng.standard_normal(n + held) > 0.8).astype(np.int64)
    return X[:n], y[:n], X[n:], y[n:]


def over_seeds(scores: Scores, loss: Callable[[np.ndarray, np.ndarray], float]) -> Callable[[Data], Solution]:
    """Losses on the rows held out and sizes of the models, one for each seed; computed once for all rounds."""
    found: Solution = {}

    def run(data: Data) -> Solution:
        if not found:
            losses, sizes = np.empty((2, SEEDS))
            for seed in range(SEEDS):
                X, y, X_held, y_held = draw(data, seed)
                probability, sizes[seed] = scores(X, y, X_held, seed)
                losses[seed] = loss(y_held, probability)
            found.update(loss=losses, size=sizes)
        return found

    return run


def forest_scores(build: Callable[[], Any]) -> Scores:
    def scores(X: np.ndarray, y: np.ndarray, X_held: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
        model = build().set_params(n_estimators=TREES, min_samples_leaf=ROWS_OF_A_LEAF, random_state=seed)
        model.fit(X, y)
        leaves = float(np.mean([tree.get_n_leaves() for tree in model.estimators_]))
        return np.asarray(model.predict_proba(X_held)), leaves

    return scores


def boosting_scores(build: Callable[[int, np.ndarray], Any]) -> Scores:
    def scores(X: np.ndarray, y: np.ndarray, X_held: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
        return build(2, np.array([], np.intp))(X, y, X_held), float(boosting.ROUNDS * boosting.LEAVES)

    return scores


def area_above(y: np.ndarray, probability: np.ndarray) -> float:
    return 1 - forest.auc(y, probability[:, 1])


def log_loss(y: np.ndarray, probability: np.ndarray) -> float:
    return boosting._loss(probability, y, 2)


def quality(peer: str, measure: str) -> Callable[[Data, Mapping[str, Solution]], dict[str, Quality]]:
    """The mean loss relative to the peer's, less one, with the standard error of its paired differences."""

    def of(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
        if peer not in solutions:
            return {}
        own = solutions[peer]
        result = {}
        for name, found in solutions.items():
            differences = found["loss"] / own["loss"] - 1
            result[name] = {
                EXCESS: float(differences.mean()),
                NOISE: float(differences.std(ddof=1) / np.sqrt(SEEDS)),
                "worst seed": float(differences.max()),
                measure: float(found["loss"].mean()),
            }
            if np.ptp(found["size"]) != 0:  # forests count their leaves
                result[name]["leaves of a tree"] = float(found["size"].mean())
        return result

    return of


def measured(name: str) -> Callable[[Mapping[str, Outcome]], float]:
    return lambda outcomes: outcomes["epicycle"].quality.get(name, float("nan"))


def contestants(loss: Callable[..., float], kinds: Mapping[str, tuple[Role, Scores]]) -> tuple[Implementation, ...]:
    return tuple(Implementation(name, role, over_seeds(scores, loss)) for name, (role, scores) in kinds.items())


FORESTS: dict[str, tuple[Role, Scores]] = {
    "scikit-learn": ("peer", forest_scores(forest.sklearn_model)),
    "epicycle": ("epicycle", forest_scores(forest.epicycle_model)),
}
BOOSTINGS: dict[str, tuple[Role, Scores]] = {
    "LightGBM": ("peer", boosting_scores(boosting.lightgbm_model)),
    "XGBoost hist": ("peer", boosting_scores(boosting.xgboost_model)),
    "epicycle": ("epicycle", boosting_scores(boosting.epicycle_model)),
}

FOREST = Task(
    name="forest_seeds",
    title="held-out quality of RandomForestClassifier, 100,000 x 30, min_samples_leaf=5, over ten seeds",
    description=f"""\
Normal features; the label is the sign of steps, waves and products of ten of them, plus noise. Each seed draws the rows
and the {TREES} trees anew; 1 - AUC is that of 50,000 rows that nobody saw, relative to scikit-learn's on the same rows.
A leaf has at least five rows, counted without their repetitions in the bootstrap. Time is not what this task is
about.""",
    make=make_forest,
    implementations=contestants(area_above, FORESTS),
    quality=quality("scikit-learn", "1 - AUC"),
    tolerance=0.01,
    targets=(Target("1 - AUC relative to scikit-learn's, mean over ten seeds", measured(EXCESS), at_most=0.005),),
    cap=7200.0,
    memory=False,
)
BOOSTING = Task(
    name="boosting_seeds",
    title="held-out loss of GradientBoostingClassifier, 30,000 x 28, over ten seeds",
    description=f"""\
Data as in forest_seeds with 28 columns; {boosting.ROUNDS} rounds of {boosting.LEAVES} leaves, learning rate
{boosting.RATE}, at least {boosting.ROWS} rows a leaf. The log-loss of 100,000 rows that nobody saw relative to
LightGBM's, for ten draws. Time is not what this task is about.""",
    make=make_boosting,
    implementations=contestants(log_loss, BOOSTINGS),
    quality=quality("LightGBM", "log-loss"),
    tolerance=0.004,
    targets=(Target("log-loss relative to LightGBM's, mean over ten seeds", measured(EXCESS), at_most=0.001),),
    cap=7200.0,
    memory=False,
)
