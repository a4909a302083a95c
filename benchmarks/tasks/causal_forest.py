"""A causal forest with intervals of the effects of rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

TREES = 100


def make(directory: Path, quick: bool) -> Data:
    n = 2_000 if quick else 100_000
    rng = np.random.default_rng(15)
    X = rng.standard_normal((n, 20))
    e = 1 / (1 + np.exp(-0.5 * X[:, 0]))
    t = (rng.random(n) < e).astype(np.float64)
    tau = 1 + np.maximum(X[:, 1], 0)
    y = X[:, 0] + tau * t + rng.standard_normal(n)
    Q = rng.standard_normal((1_000, 20))
    return {"X": X, "y": y, "t": t, "Q": Q, "tau": 1 + np.maximum(Q[:, 1], 0)}


def epicycle(data: Data) -> Solution:
    from epicycle import TreatmentEffect

    model = TreatmentEffect("cate", "causal_forest", n_estimators=TREES, n_folds=2)
    model.fit(data["X"], data["y"], treatment=data["t"])
    low, high = model.predict_interval(data["Q"])
    return {"effect": (low + high) / 2, "width": high - low}


def econml(data: Data) -> Solution:
    from econml.grf import CausalForest
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.model_selection import cross_val_predict

    X = data["X"]
    e = cross_val_predict(LogisticRegression(), X, data["t"], cv=2, method="predict_proba")[:, 1]
    m = cross_val_predict(LinearRegression(), X, data["y"], cv=2)
    model = CausalForest(n_estimators=TREES, criterion="mse", n_jobs=-1, random_state=0)
    model.fit(X, (data["t"] - e)[:, None], data["y"] - m)
    effect, low, high = model.predict(data["Q"], interval=True)
    return {"effect": effect[:, 0], "width": (high - low)[:, 0]}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Excess of the root mean squared error of the effects over the least, relative to the spread of the effects."""
    errors = {name: float(np.sqrt(np.mean((s["effect"] - data["tau"]) ** 2))) for name, s in solutions.items()}
    least = min(errors.values())
    return {name: {"error above the least": (v - least) / float(data["tau"].std())} for name, v in errors.items()}


TASK = Task(
    name="causal_forest",
    title="Causal forest, 100,000 x 20, 100 trees, with intervals",
    description="""\
Normal covariates, a treatment that depends on one of them and effects that depend on another. Residuals of logistic and
linear regressions of two folds, honest trees, and intervals of the effects of 1,000 new rows. At equal quality the root
mean squared error of the effects is within a tenth of their standard deviation of the least.""",
    make=make,
    implementations=(
        Implementation("EconML", "peer", econml),
        Implementation("epicycle", "epicycle", epicycle),
    ),
    quality=quality,
    tolerance=0.1,
    cap=900.0,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
