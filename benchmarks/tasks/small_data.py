"""Fits so small that every microsecond of overhead shows, on one thread and on two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.arithmetic import ratio, speedup_over_best_peer
from benchmarks.task import Data, Implementation, Measured, Solution, Target, Task
from benchmarks.tasks import _linear, _logistic, linear_dense
from benchmarks.tasks._logistic import ladder

FITS = 100  # per call
TWO, ONE = "epicycle", "epicycle, one thread"


def make_linear(directory: Path, quick: bool) -> Data:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((1_000, 10))
    return {"X": X, "y": X @ rng.standard_normal(10) + rng.standard_normal(1_000)}


def make_logistic(directory: Path, quick: bool) -> Data:
    rng = np.random.default_rng(4)
    X = _logistic.features(rng, 1_000, 10)
    return {"X": X, "y": _logistic.labels(rng, X, 2, signal=1.5)}


def repeated(fit: Callable[..., Solution]) -> Callable[..., Measured]:
    """The median of many fits in a row, each by a new estimator."""

    def run(data: Data, *tol: float) -> Measured:
        seconds = []
        for _ in range(FITS):
            start = perf_counter()
            solution = fit(data, *tol)
            seconds.append(perf_counter() - start)
        return Measured(float(np.median(seconds)), solution)

    return run


DESCRIPTION = f"""\
Each call makes {FITS} fits one after the other and reports the median of one. Two threads are allowed unless the name
says otherwise: allowing a second thread must not cost anything. Equal quality is """
TARGETS = (
    Target("time with two threads over time with one, level to within 10 %", ratio(TWO, ONE), at_most=1.1),
    Target("speed against the best peer", speedup_over_best_peer(TWO), at_least=1.0),
)
LINEAR = Task(
    name="small_linear",
    title="LinearRegression, 1,000 x 10",
    description=DESCRIPTION + "that of linear_dense.",
    make=make_linear,
    implementations=(
        Implementation("reference", "reference", _linear.refined),
        Implementation("scikit-learn", "peer", repeated(_linear.sklearn_fit)),
        Implementation("scikit-learn-intelex", "peer", repeated(_linear.intelex_fit)),
        Implementation(ONE, "epicycle", repeated(_linear.epicycle_fit), threads=1),
        Implementation(TWO, "epicycle", repeated(_linear.epicycle_fit)),
    ),
    quality=linear_dense.quality,
    tolerance=1e-10,
    targets=TARGETS,
    memory=False,
)
LOGISTIC = Task(
    name="small_logistic",
    title="LogisticRegression, L2, C=1, 1,000 x 10, two classes",
    description=DESCRIPTION + "an objective within 1e-8 of the best.",
    make=make_logistic,
    implementations=(
        _logistic.REFERENCE,
        Implementation(
            "scikit-learn newton-cholesky",
            "peer",
            repeated(_logistic.sklearn_fit("newton-cholesky")),
            tolerances=ladder(0.1, 1e-8),
        ),
        Implementation(
            "scikit-learn lbfgs", "peer", repeated(_logistic.sklearn_fit("lbfgs")), tolerances=ladder(1e-3, 1e-8)
        ),
        Implementation(
            "scikit-learn-intelex lbfgs", "peer", repeated(_logistic.intelex_fit("lbfgs")), tolerances=ladder(30, 1e-8)
        ),
        Implementation(ONE, "epicycle", repeated(_logistic.epicycle_fit), tolerances=ladder(0.1, 1e-10), threads=1),
        Implementation(TWO, "epicycle", repeated(_logistic.epicycle_fit), tolerances=ladder(0.1, 1e-10)),
    ),
    quality=_logistic.quality,
    tolerance=1e-8,
    targets=TARGETS,
    memory=False,
)
