"""Kernel densities, exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "largest error of a log-density"


def make(directory: Path, quick: bool) -> Data:
    n, m = (5_000, 500) if quick else (50_000, 5_000)
    rng = np.random.default_rng(43)
    return {"X": rng.standard_normal((n, 3)), "Q": rng.standard_normal((m, 3))}


def epicycle_density() -> Any:
    from epicycle import KernelDensity

    return KernelDensity(bandwidth=0.3)


def sklearn_density() -> Any:
    from sklearn.neighbors import KernelDensity

    return KernelDensity(bandwidth=0.3)


def run(build: Callable[[], Any]) -> Callable[[Data], Solution]:
    def solve(data: Data) -> Solution:
        return {"log_density": build().fit(data["X"]).score_samples(data["Q"])}

    return solve


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Against sums over all rows, of some of the queries."""
    from scipy.special import logsumexp

    X, Q = data["X"], data["Q"][:200]
    squares = np.array([((X - q) ** 2).sum(axis=1) for q in Q])
    exact = logsumexp(-squares / (2 * 0.3**2), axis=1) - np.log(len(X)) - 1.5 * np.log(2 * np.pi * 0.3**2)
    return {name: {MEASURE: float(np.abs(s["log_density"][:200] - exact).max())} for name, s in solutions.items()}


TASK = Task(
    name="kernel_density",
    title="KernelDensity of 50,000 x 3 rows at 5,000 points",
    description="""\
A Gaussian kernel without a tolerance: everybody has to be exact to 1e-7 in the logarithm, scikit-learn's
tree included.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", run(epicycle_density)),
        Implementation("scikit-learn", "peer", run(sklearn_density)),
    ),
    quality=quality,
    tolerance=1e-7,
    targets=(Target("speed against scikit-learn", speedup_over_best_peer(), at_least=3.0),),
    cap=300.0,
)
