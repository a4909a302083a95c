"""Binary logistic regression on a tall dense array."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._logistic import (
    REFERENCE,
    epicycle_fit,
    features,
    intelex_fit,
    labels,
    ladder,
    quality,
    sklearn_fit,
)


def make(directory: Path, quick: bool) -> Data:
    n, p = (20_000, 20) if quick else (200_000, 50)
    rng = np.random.default_rng(2)
    X = features(rng, n, p)
    return {"X": X, "y": labels(rng, X, 2, signal=1.5)}


TASK = Task(
    name="logistic_binary",
    title="LogisticRegression, L2, C=1, 200,000 x 50, two classes",
    description="""\
Normal features with AR(1) correlation 0.5, standard deviations from 1/3 to 3 and means within +-1; labels drawn from
the model. At equal quality the objective is within a relative 1e-10 of the best that anybody found.""",
    make=make,
    implementations=(
        REFERENCE,
        Implementation(
            "scikit-learn newton-cholesky", "peer", sklearn_fit("newton-cholesky"), tolerances=ladder(0.1, 1e-10)
        ),
        Implementation("scikit-learn lbfgs", "peer", sklearn_fit("lbfgs"), tolerances=ladder(1e-4, 1e-10)),
        Implementation(
            "scikit-learn-intelex newton-cg", "peer", intelex_fit("newton-cg"), tolerances=ladder(0.1, 1e-10)
        ),
        Implementation("scikit-learn-intelex lbfgs", "peer", intelex_fit("lbfgs"), tolerances=ladder(30, 1e-10)),
        Implementation("epicycle", "epicycle", epicycle_fit, tolerances=ladder(0.1, 1e-12)),
    ),
    quality=quality,
    tolerance=1e-10,
    targets=(
        Target(
            "speed against the best solver of scikit-learn", speedup_over_best_peer(among="scikit-learn "), at_least=2.0
        ),
        Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),
    ),
)
