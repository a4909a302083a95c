"""Lasso with many more dense columns than rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._lasso import ESTIMATORS, LIMITS, TOLERANCES, fit, gap_of_fit, largest_alpha, setup, tight


def make(directory: Path, quick: bool) -> Data:
    n, p, active = (200, 2_000, 20) if quick else (1_000, 20_000, 100)
    rng = np.random.default_rng(10)
    X = np.asfortranarray(rng.standard_normal((n, p)))
    w = np.zeros(p)
    w[rng.choice(p, active, replace=False)] = rng.standard_normal(active)
    y = X @ w + 0.5 * np.linalg.norm(w) * rng.standard_normal(n) + 1.0
    return {"X": X, "y": y, "alpha": np.array([largest_alpha(X, y) / 10])}


TASK = Task(
    name="lasso_dense",
    title="Lasso, 1,000 x 20,000, dense, a tenth of the largest alpha",
    description="""\
Independent normal columns in Fortran order, a hundred true coefficients, noise of half the signal, an intercept. At
equal quality the objective is within 1e-6 of half the mean square of y of the best dual bound that anybody proves.
Libraries that compile on first use have done so before the clock starts.""",
    make=make,
    implementations=(
        Implementation("reference", "reference", tight, setup=setup("epicycle")),
        *(
            Implementation(
                name,
                "epicycle" if name == "epicycle" else "peer",
                fit(LIMITS[name]),
                setup=setup(name),
                tolerances=TOLERANCES,
            )
            for name in ESTIMATORS
        ),
    ),
    quality=gap_of_fit,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.2),),
)
