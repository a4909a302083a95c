"""Lasso on a sparse matrix with many columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._lasso import ESTIMATORS, LIMITS, TOLERANCES, fit, gap_of_fit, largest_alpha, matrix, setup, tight


def sparse_columns(quick: bool, *, noise: float) -> Data:
    """A sparse matrix and y with noise of this share of the signal."""
    n, p, active = (2_000, 10_000, 50) if quick else (20_000, 100_000, 500)
    rng = np.random.default_rng(11)
    X = sp.random_array(
        (n, p), density=1e-3, rng=rng, format="csc", data_sampler=lambda size: rng.standard_normal(size)
    )
    w = np.zeros(p)
    w[rng.choice(p, active, replace=False)] = rng.standard_normal(active)
    signal = X @ w
    y = signal + noise * signal.std() * rng.standard_normal(n)
    parts = {"data": X.data, "indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32)}
    return {**parts, "y": y}


def make(directory: Path, quick: bool) -> Data:
    data = sparse_columns(quick, noise=0.5)
    y = data["y"] + 1.0
    return {**data, "y": y, "alpha": np.array([largest_alpha(matrix(data), y) / 10])}


TASK = Task(
    name="lasso_sparse",
    title="Lasso, 20,000 x 100,000, sparse (density 0.001), a tenth of the largest alpha",
    description="""\
A CSC matrix of two million normal entries, five hundred true coefficients, noise of half the signal, an intercept. At
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
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
