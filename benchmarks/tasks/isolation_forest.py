"""An isolation forest: growth and the scores of all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._boosting import threads

MEASURE = "1 - area under the ROC curve"


def make(directory: Path, quick: bool) -> Data:
    n = 20_000 if quick else 1_000_000
    rng = np.random.default_rng(37)
    X, odd = rng.standard_normal((n, 10)), np.arange(n) < n // 100
    X[odd] = rng.uniform(-4, 4, size=(odd.sum(), 10))
    return {"X": X, "odd": odd}


def epicycle_forest() -> Any:
    from epicycle import IsolationForest

    return IsolationForest(random_state=0)


def sklearn_forest() -> Any:
    from sklearn.ensemble import IsolationForest

    return IsolationForest(random_state=0, n_jobs=threads())


def run(build: Callable[[], Any]) -> Callable[[Data], Solution]:
    def solve(data: Data) -> Solution:
        return {"score": build().fit(data["X"]).score_samples(data["X"])}

    return solve


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Distance of the anomalies from standing below all other rows."""
    from sklearn.metrics import roc_auc_score

    return {name: {MEASURE: 1 - float(roc_auc_score(data["odd"], -s["score"]))} for name, s in solutions.items()}


TASK = Task(
    name="isolation_forest",
    title="IsolationForest, 100 trees and the scores of 1,000,000 x 10 rows",
    description="""\
Normal rows and one in a hundred from a cube around them. Everybody grows 100 trees of 256 rows and scores all rows;
the areas under the ROC curve may differ by 0.005, which is what two seeds of one implementation differ by. pyod's
forest is scikit-learn's.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", run(epicycle_forest)),
        Implementation("scikit-learn", "peer", run(sklearn_forest)),
    ),
    quality=quality,
    tolerance=5e-3,
    targets=(Target("speed against scikit-learn", speedup_over_best_peer(), at_least=3.0),),
    cap=300.0,
)
