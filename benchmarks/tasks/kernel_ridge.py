"""Kernel ridge regression: one kernel matrix and one linear system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

GAMMA, ALPHA = 0.05, 0.1
MEASURE = "duality gap, relative"


def make(directory: Path, quick: bool) -> Data:
    n = 600 if quick else 6_000
    rng = np.random.default_rng(31)
    X = rng.standard_normal((n, 20))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    return {"X": X, "y": y}


def epicycle_model() -> Any:
    from epicycle import KernelRidge

    return KernelRidge(ALPHA, kernel="rbf", gamma=GAMMA)


def sklearn_model() -> Any:
    from sklearn.kernel_ridge import KernelRidge

    return KernelRidge(alpha=ALPHA, kernel="rbf", gamma=GAMMA)


def setup(build: Callable[[], Any]) -> Callable[[Data], dict[str, Any]]:
    def prepare(data: Data) -> dict[str, Any]:
        build().fit(data["X"][:300], data["y"][:300])  # imports and thread pools
        return {**data, "build": build}

    return prepare


def run(state: dict[str, Any]) -> Solution:
    return {"coef": np.asarray(state["build"]().fit(state["X"], state["y"]).dual_coef_, np.float64)}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """From the residual of the system in float64: sum r^2 is the gap between the objective and its dual."""
    from scipy.spatial.distance import cdist

    K = np.exp(-GAMMA * cdist(data["X"], data["X"], "sqeuclidean"))
    found = {}
    for name, solution in solutions.items():
        c = solution["coef"]
        Kc = K @ c
        objective = np.square(data["y"] - Kc).sum() + ALPHA * c @ Kc
        gap = np.square(data["y"] - Kc - ALPHA * c).sum()
        found[name] = {MEASURE: float(gap / objective), "objective": float(objective)}
    return found


TASK = Task(
    name="kernel_ridge",
    title="KernelRidge, Gaussian kernel, 6,000 x 20",
    description="""\
Normal features, a smooth target with noise, gamma = 0.05, alpha = 0.1. At equal quality the coefficients have a
relative duality gap of at most 1e-16, from the residual of the linear system in double precision.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", run, setup=setup(epicycle_model)),
        Implementation("scikit-learn", "peer", run, setup=setup(sklearn_model)),
    ),
    quality=quality,
    tolerance=1e-16,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
