"""The posterior mode of logistic regression with its curvature, against the mode alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "distance from the minimum of the penalised log loss, relative"


def make(directory: Path, quick: bool) -> Data:
    rng = np.random.default_rng(63)
    n, p = (10_000, 10) if quick else (300_000, 50)
    X = rng.standard_normal((n, p))
    z = X @ rng.standard_normal(p) / np.sqrt(p)
    return {"X": X, "y": (rng.random(n) < 1 / (1 + np.exp(-z))).astype(np.int64)}


def epicycle(data: Data) -> Any:
    import epicycle

    return epicycle.BayesianLogisticRegression("laplace", fit_intercept=False), data["X"], data["y"]


def scikit_learn(data: Data) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver="newton-cholesky", fit_intercept=False, tol=1e-8), data["X"], data["y"]


def fit(ready: tuple[Any, np.ndarray, np.ndarray]) -> Solution:
    model, X, y = ready
    return {"coef": model.fit(X, y).coef_[0]}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    def objective(w: np.ndarray) -> float:
        z = data["X"] @ w
        return float(np.logaddexp(0, z).sum() - data["y"] @ z + w @ w / 2)

    values = {name: objective(solution["coef"]) for name, solution in solutions.items()}
    best = min(values.values())
    return {name: {MEASURE: value / best - 1} for name, value in values.items()}


TASK = Task(
    name="bayesian_logistic",
    title="BayesianLogisticRegression by Laplace's approximation, 300,000 x 50",
    description="""\
epicycle finds the mode of the posterior and the covariance there; scikit-learn's logistic regression with the same
penalty finds the mode alone.""",
    make=make,
    implementations=(
        Implementation("epicycle, laplace", "epicycle", fit, setup=epicycle),
        Implementation("scikit-learn, newton-cholesky", "peer", fit, setup=scikit_learn),
    ),
    quality=quality,
    tolerance=1e-8,
    targets=(
        Target(
            "speed against scikit-learn",
            speedup_over_best_peer("epicycle, laplace", "scikit-learn, newton-cholesky"),
            at_least=1.0,
        ),
    ),
)
