"""Huber regression with a joint scale, a twentieth of the rows outliers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

EPSILON, ALPHA = 1.35, 1e-4


def make(directory: Path, quick: bool) -> Data:
    n, p = (2_000, 5) if quick else (200_000, 40)
    rng = np.random.default_rng(21)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p)
    y = X @ rng.standard_normal(p) + rng.standard_t(3, n)
    y[rng.random(n) < 0.05] += 100
    return {"X": X, "y": y}


def objectives(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """The objective above the least one found, relative to it."""
    values = {}
    for name, solution in solutions.items():
        sigma = float(solution["scale"][0])
        z = np.abs(data["y"] - data["X"] @ solution["coef"] - solution["intercept"]) / sigma
        H = np.where(z <= EPSILON, z * z, 2 * EPSILON * z - EPSILON**2)
        values[name] = float((sigma + sigma * H).sum() + ALPHA * solution["coef"] @ solution["coef"])
    least = min(values.values())
    return {name: {"objective above the least": (value - least) / least} for name, value in values.items()}


def setup_epicycle(data: Data) -> tuple[Any, Data]:
    from epicycle import HuberRegressor

    return HuberRegressor, data


def setup_scikit_learn(data: Data) -> tuple[Any, Data]:
    from sklearn.linear_model import HuberRegressor

    return HuberRegressor, data


def solution(model: Any) -> Solution:
    return {"coef": model.coef_, "intercept": np.array([model.intercept_]), "scale": np.array([model.scale_])}


def fit(state: tuple[Any, Data]) -> Solution:
    estimator, data = state
    return solution(estimator(epsilon=EPSILON, alpha=ALPHA).fit(data["X"], data["y"]))


def fit_scikit_learn(state: tuple[Any, Data], tol: float) -> Solution:
    estimator, data = state
    return solution(estimator(epsilon=EPSILON, alpha=ALPHA, tol=tol, max_iter=10_000).fit(data["X"], data["y"]))


TASK = Task(
    name="huber",
    title="Huber regression, 200,000 x 40",
    description="""\
Normal columns of different lengths, t-distributed noise, a twentieth of the targets moved by 100. At equal quality the
objective is within 1e-7 of the least that anybody finds, relative to it; epicycle's is exact.""",
    make=make,
    implementations=(
        Implementation("reference", "reference", fit, setup=setup_epicycle),
        Implementation("epicycle", "epicycle", fit, setup=setup_epicycle),
        Implementation(
            "scikit-learn",
            "peer",
            fit_scikit_learn,
            setup=setup_scikit_learn,
            tolerances=(1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7),
        ),
    ),
    quality=objectives,
    tolerance=1e-7,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1),),
)
