"""Linear support vector classification of documents: sparse rows, more columns than rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._support_vectors import TOLERANCES, fit, quality_of, setup, tight


def make(directory: Path, quick: bool) -> Data:
    n, p, words = (2_000, 5_000, 40) if quick else (100_000, 200_000, 130)
    rng = np.random.default_rng(32)
    frequency = np.cumsum(1 / np.arange(1, p + 1))  # Zipf's law
    lengths = rng.poisson(words, n) + 5
    columns = np.searchsorted(frequency / frequency[-1], rng.random(lengths.sum())).clip(0, p - 1)
    X = sp.csr_array((np.ones(len(columns)), (np.repeat(np.arange(n), lengths), columns)), shape=(n, p))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=p)
    X.data = (1 + np.log(X.data)) * (np.log((1 + n) / (1 + documents)) + 1)[X.indices]
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    z = X @ (rng.standard_normal(p) * (rng.random(p) < 0.2))
    y = (z + 0.35 * z.std() * rng.standard_normal(n) > np.median(z)).astype(np.int64)
    parts = {"data": X.data, "indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32)}
    return {**parts, "columns": np.array([p]), "y": y}


TASK = Task(
    name="linear_svc_text",
    title="LinearSVC, squared hinge, 100,000 documents x 200,000 words",
    description="""\
About a hundred words a document, drawn by Zipf's law, tf-idf weights of unit length; labels follow a fifth of the
words, with noise. C = 1. At equal quality the objective is within 1e-4 of a proven lower bound, relative to it.""",
    make=make,
    implementations=(
        Implementation("reference", "reference", tight(solver="dual-cd"), setup=setup("epicycle")),
        Implementation("epicycle", "epicycle", fit(), setup=setup("epicycle"), tolerances=TOLERANCES["epicycle"]),
        Implementation(
            "scikit-learn",
            "peer",
            fit(dual=True, max_iter=5_000),
            setup=setup("scikit-learn"),
            tolerances=TOLERANCES["scikit-learn"],
        ),
        Implementation(
            "scikit-learn, primal",
            "peer",
            fit(dual=False, max_iter=5_000),
            setup=setup("scikit-learn"),
            tolerances=TOLERANCES["scikit-learn"],
        ),
    ),
    quality=quality_of(squared=True),
    tolerance=1e-4,
    targets=(Target("speed against liblinear", speedup_over_best_peer(), at_least=1.2),),
)
