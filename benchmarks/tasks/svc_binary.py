"""Two classes, Gaussian kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Solution, Target, Task
from benchmarks.tasks._svm import quality, solution_of

C, TOL = 1.0, 1e-3


def make(directory: Path, quick: bool) -> Data:
    n = 1_500 if quick else 15_000
    rng = np.random.default_rng(41)
    centres = rng.uniform(-1, 1, size=(8, 40)) * (np.arange(40) < 20)
    which = rng.integers(0, 8, n)
    X = centres[which] + rng.standard_normal((n, 40))
    y = np.where(rng.random(n) < 0.03, rng.integers(0, 2, n), which % 2)
    return {"X": X, "y": y}


def epicycle_fit(data: Data) -> Solution:
    from epicycle import SVC

    return solution_of(SVC(C=C, tol=TOL).fit(data["X"], data["y"]))


def sklearn_fit(data: Data) -> Solution:
    from sklearn.svm import SVC

    return solution_of(SVC(C=C, tol=TOL).fit(data["X"], data["y"]))


def intelex_fit(data: Data) -> Solution:
    from sklearnex.svm import SVC

    return solution_of(SVC(C=C, tol=TOL).fit(data["X"], data["y"]))


TASK = Task(
    name="svc_binary",
    title="SVC with a Gaussian kernel, two classes, 15,000 x 40, tol 1e-3",
    description="""\
Eight normal clouds, alternately of one class and the other, and three percent of the labels at random; C = 1, gamma by
scale, 200 MB of cache. At equal quality the dual objective, computed afresh in double precision from the coefficients
that were returned, is within 1e-5 of the best.""",
    make=make,
    implementations=(
        Implementation("scikit-learn-intelex", "peer", intelex_fit),
        Implementation("epicycle", "epicycle", epicycle_fit),
        Implementation("scikit-learn (libsvm)", "peer", sklearn_fit),
    ),
    quality=quality(C),
    tolerance=1e-5,
    targets=(
        Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),
        Target("speed against libsvm", speedup_over_best_peer(among="scikit-learn (libsvm)"), at_least=4.7),
    ),
    cap=300.0,
)
