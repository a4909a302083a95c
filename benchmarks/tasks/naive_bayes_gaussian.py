"""Gaussian naive Bayes of many rows, at once and in a hundred batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Solution, Target, Task
from benchmarks.tasks._naive_bayes import against, model

CLASSES, BATCHES = 10, 100


def make(directory: Path, quick: bool) -> Data:
    n, p = (20_000, 50) if quick else (2_000_000, 50)
    rng = np.random.default_rng(52)
    y = rng.integers(0, CLASSES, n)
    return {"X": rng.standard_normal((n, p)) + 0.1 * y[:, None], "y": y}


def setup(library: str) -> Callable[[Data], Any]:
    return lambda data: (model(library, "GaussianNB"), data["X"], data["y"])


def parameters(fitted: Any) -> Solution:
    return {"parameters": np.concatenate([np.asarray(fitted.theta_).ravel(), np.asarray(fitted.var_).ravel()])}


def fit(ready: tuple[Any, np.ndarray, np.ndarray]) -> Solution:
    estimator, X, y = ready
    return parameters(estimator().fit(X, y))


def in_batches(ready: tuple[Any, np.ndarray, np.ndarray]) -> Solution:
    estimator, X, y = ready
    fitted = estimator()
    for part in np.array_split(np.arange(len(y)), BATCHES):
        rows = slice(part[0], part[-1] + 1)
        fitted.partial_fit(X[rows], y[rows], classes=np.arange(CLASSES))
    return parameters(fitted)


def formula(data: Data) -> np.ndarray:
    X, y = data["X"], data["y"]
    rows = [X[y == c] for c in range(CLASSES)]
    means, variances = ([f(part, axis=0) for part in rows] for f in (np.mean, np.var))
    return np.concatenate([np.ravel(means), np.ravel(variances)])


TASK = Task(
    name="naive_bayes_gaussian",
    title="GaussianNB, 2,000,000 x 50, ten classes, at once and by partial_fit in 100 batches",
    description="""\
Normal columns whose means move with the class. Means and variances may differ from those of NumPy by 1e-7
(a share of 1e-9 of the largest variance is added by everybody).""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("epicycle, in batches", "epicycle", in_batches, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
        Implementation("scikit-learn, in batches", "peer", in_batches, setup=setup("scikit-learn")),
    ),
    quality=against(formula),
    tolerance=1e-7,
    targets=(
        Target("speed against the best peer", speedup_over_best_peer(), at_least=2.0),
        Target(
            "speed in batches against scikit-learn in batches",
            speedup_over_best_peer("epicycle, in batches", "scikit-learn, in batches"),
            at_least=2.0,
        ),
    ),
)
