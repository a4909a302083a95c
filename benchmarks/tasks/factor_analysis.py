"""Factor analysis of many rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "log-likelihood a row, below the best"


def make(directory: Path, quick: bool) -> Data:
    n, p, k = (2_000, 20, 4) if quick else (20_000, 40, 5)
    rng = np.random.default_rng(72)
    noise = rng.uniform(0.3, 3.0, p)
    return {"X": rng.normal(size=(n, k)) @ rng.normal(size=(k, p)) + rng.normal(size=(n, p)) * noise, "k": np.array(k)}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import FactorAnalysis
        else:
            from sklearn.decomposition import FactorAnalysis
        return FactorAnalysis(int(data["k"]), max_iter=10_000), data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    model.fit(X)
    return {"covariance": model.get_covariance()}


def likelihoods(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    S = np.cov(data["X"].T, bias=True)
    found = {}
    for name, solution in solutions.items():
        C = solution["covariance"]
        found[name] = -0.5 * float(np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, S)))
    best = max(found.values())
    return {name: {MEASURE: best - value} for name, value in found.items()}


TASK = Task(
    name="factor_analysis",
    title="FactorAnalysis, 20,000 x 40, 5 factors",
    description="""\
Columns with noise of very different sizes; both at their default tolerance, 0.01 of the log-likelihood of all rows. The
mean log-likelihood of a row may be 1e-6 below the best.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
    ),
    quality=likelihoods,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=3.0),),
)
