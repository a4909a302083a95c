"""Linear and quadratic discriminant analysis of many rows in ten classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

CLASSES = 10
MEASURE = "largest error of a log-probability of 1,000 rows"


def make(directory: Path, quick: bool) -> Data:
    n, p = (10_000, 20) if quick else (500_000, 100)
    rng = np.random.default_rng(61)
    y = rng.integers(0, CLASSES, n)
    mix = np.eye(p) + 0.1 * rng.standard_normal((p, p))
    return {"X": rng.standard_normal((n, p)) @ mix + 0.3 * rng.standard_normal((CLASSES, p))[y], "y": y}


def setup(library: str, name: str, **options: Any) -> Callable[[Data], Any]:
    def ready(data: Data) -> Any:
        if library == "epicycle":
            import epicycle as package
        else:
            from sklearn import discriminant_analysis as package
        return getattr(package, name)(**options), data["X"], data["y"]

    return ready


def fit(ready: tuple[Any, np.ndarray, np.ndarray]) -> Solution:
    model, X, y = ready
    # Scores, because scikit-learn's log-probabilities of the linear rule end at the smallest float, -708.
    return {"log_probabilities": log_softmax(model.fit(X, y).decision_function(X[:1000]), axis=1)}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Against the formula, from the covariances of NumPy and a solution of their equations."""
    X, y = data["X"], data["y"]
    share = np.bincount(y) / len(y)
    means = np.stack([X[y == c].mean(axis=0) for c in range(CLASSES)])
    own = [np.cov(X[y == c].T, bias=True) for c in range(CLASSES)]
    shared = np.tensordot(share, own, axes=1)
    expected = {}
    for kind, C in (("linear", [shared] * CLASSES), ("quadratic", own)):
        D = [X[:1000] - m for m in means]
        score = np.stack(
            [
                np.log(s) - 0.5 * (np.sum(d * np.linalg.solve(c, d.T).T, axis=1) + np.linalg.slogdet(c)[1])
                for s, d, c in zip(share, D, C, strict=True)
            ],
            axis=1,
        )
        expected[kind] = log_softmax(score, axis=1)
    kinds = {name: "quadratic" if "quadratic" in name else "linear" for name in solutions}
    return {
        name: {MEASURE: float(np.abs(s["log_probabilities"] - expected[kinds[name]]).max())}
        for name, s in solutions.items()
    }


LINEAR, QUADRATIC = "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"

TASK = Task(
    name="discriminant",
    title="Linear and quadratic discriminant analysis, 500,000 x 100, ten classes",
    description="""\
Correlated normal columns whose means differ between the classes. Log-probabilities of rows may differ from the formula
by 1e-6. Fits of scikit-learn with its default and with its fastest solver.""",
    make=make,
    implementations=(
        Implementation("epicycle, linear", "epicycle", fit, setup=setup("epicycle", LINEAR)),
        Implementation("epicycle, quadratic", "epicycle", fit, setup=setup("epicycle", QUADRATIC)),
        Implementation("scikit-learn, linear", "peer", fit, setup=setup("scikit-learn", LINEAR)),
        Implementation("scikit-learn, linear, lsqr", "peer", fit, setup=setup("scikit-learn", LINEAR, solver="lsqr")),
        Implementation("scikit-learn, quadratic", "peer", fit, setup=setup("scikit-learn", QUADRATIC)),
        Implementation(
            "scikit-learn, quadratic, eigen", "peer", fit, setup=setup("scikit-learn", QUADRATIC, solver="eigen")
        ),
    ),
    quality=quality,
    tolerance=1e-6,
    targets=tuple(
        Target(
            f"speed of the {kind} fit against the best of scikit-learn's solvers",
            speedup_over_best_peer(f"epicycle, {kind}", f"scikit-learn, {kind}"),
            at_least=3.0,
        )
        for kind in ("linear", "quadratic")
    ),
)
