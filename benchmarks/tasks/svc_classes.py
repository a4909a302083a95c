"""Ten classes in pairs, Gaussian kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._svm import quality
from benchmarks.tasks.svc_binary import C, epicycle_fit, intelex_fit, sklearn_fit


def make(directory: Path, quick: bool) -> Data:
    n = 1_000 if quick else 10_000
    rng = np.random.default_rng(42)
    centres = rng.standard_normal((20, 64)) * 0.7
    which = rng.integers(0, 20, n)
    return {"X": centres[which] + rng.standard_normal((n, 64)), "y": which % 10}


TASK = Task(
    name="svc_classes",
    title="SVC with a Gaussian kernel, ten classes in pairs, 10,000 x 64, tol 1e-3",
    description="""\
Twenty normal clouds, two for each class; C = 1, gamma by scale, 200 MB of cache. At equal quality the dual objectives
of the 45 pairs, computed afresh in double precision from the coefficients that were returned, add up to within 1e-5 of
the best.""",
    make=make,
    implementations=(
        Implementation("scikit-learn (libsvm)", "peer", sklearn_fit),
        Implementation("epicycle", "epicycle", epicycle_fit),
        Implementation("scikit-learn-intelex", "peer", intelex_fit),
    ),
    quality=quality(C),
    tolerance=1e-5,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=3.0),),
    cap=300.0,
)
