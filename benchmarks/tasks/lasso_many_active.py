"""Lasso on a sparse matrix with a small penalty: very many columns in the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._lasso import (
    ESTIMATORS,
    LIMITS,
    TOLERANCES,
    fit,
    gap_at_own_residuals,
    matrix,
    setup,
)
from benchmarks.tasks.lasso_sparse import sparse_columns

ORIGIN = {"fit_intercept": False}


def make(directory: Path, quick: bool) -> Data:
    data = sparse_columns(quick, noise=0.13)
    largest = float(np.abs(matrix(data).T @ data["y"]).max()) / len(data["y"])
    return {**data, "alpha": np.array([0.003 * largest])}


TASK = Task(
    name="lasso_many_active",
    title="Lasso, 20,000 x 100,000, sparse (density 0.001), 0.003 of the largest alpha",
    description="""\
The matrix of lasso_sparse with less noise, no intercept, and a penalty so small that more than ten thousand columns are
in the model. At equal quality the duality gap at the residuals of the fit itself is at most 1e-6 of half the mean
square of y.
Libraries that compile on first use have done so before the clock starts.""",
    make=make,
    implementations=(
        Implementation("reference", "reference", lambda ready: fit(ORIGIN)(ready, 1e-10), setup=setup("epicycle")),
        *(
            Implementation(
                name,
                "epicycle" if name == "epicycle" else "peer",
                fit(LIMITS[name] | ORIGIN),
                setup=setup(name),
                tolerances=TOLERANCES,
            )
            for name in ESTIMATORS
        ),
    ),
    quality=gap_at_own_residuals,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.3),),
)
