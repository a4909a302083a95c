"""Principal components of many rows, and the leading singular vectors of a sparse table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "variance that is kept, share below the most"


def make(directory: Path, quick: bool) -> Data:
    n, p = (5_000, 50) if quick else (200_000, 200)
    rng = np.random.default_rng(7)
    return {"X": rng.normal(size=(n, p)) * 0.97 ** np.arange(p) + rng.normal(size=(n, 1)), "k": np.array(10)}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import PCA
        elif library == "scikit-learn-intelex":
            from sklearnex.decomposition import PCA
        else:
            from sklearn.decomposition import PCA
        return PCA(int(data["k"]), random_state=0), data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    model.fit(X)
    return {"components": model.components_}


def kept(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    S = np.cov(data["X"].T)
    found = {name: float(np.trace(s["components"] @ S @ s["components"].T)) for name, s in solutions.items()}
    best = max(found.values())
    return {name: {MEASURE: 1 - value / best} for name, value in found.items()}


PCA_TASK = Task(
    name="pca",
    title="PCA, 200,000 x 200, ten components",
    description="Every library with its defaults; the variance along the axes may be 1e-6 below the most.",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
        Implementation("scikit-learn-intelex", "peer", fit, setup=setup("scikit-learn-intelex")),
    ),
    quality=kept,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.2),),
)


def make_sparse(directory: Path, quick: bool) -> Data:
    n, p, density = (2_000, 5_000, 2e-3) if quick else (200_000, 100_000, 5e-4)
    rng = np.random.default_rng(8)
    size = int(n * p * density)
    # Words by Zipf's law, and documents of a few topics that share some of them.
    column = np.minimum((rng.pareto(1.1, size) * p / 500).astype(np.int64), p - 1)
    row = rng.integers(0, n, size)
    column = (column + (row % 40) * (p // 97) * (rng.random(size) < 0.5)) % p
    X = sp.csr_array((rng.uniform(0.5, 1.5, size), (row, column)), shape=(n, p))
    X.sum_duplicates()
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape), "k": np.array(50)}


def table(data: Data) -> Any:
    return sp.csr_array((data["data"], data["indices"], data["indptr"]), shape=tuple(data["shape"]))


def setup_sparse(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import TruncatedSVD

            return TruncatedSVD(int(data["k"]), random_state=0), table(data)
        from sklearn.decomposition import TruncatedSVD

        # Five iterations, its default, and as many as it takes for the same variance.
        options = {"algorithm": "arpack"} if library == "arpack" else {"n_iter": int(library)}
        return TruncatedSVD(int(data["k"]), random_state=0, **options), table(data)

    return prepare


def kept_sparse(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    X = table(data)
    found = {name: float(np.square(X @ s["components"].T).sum()) for name, s in solutions.items()}
    best = max(found.values())
    return {name: {MEASURE: 1 - value / best} for name, value in found.items()}


SVD_TASK = Task(
    name="truncated_svd",
    title="TruncatedSVD, 200,000 x 100,000, sparse (about 50 entries a row), 50 components",
    description="Sums of squares along the axes may be 1e-4 below the most.",
    make=make_sparse,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup_sparse("epicycle")),
        Implementation("scikit-learn, 5 iterations", "peer", fit, setup=setup_sparse("5")),
        Implementation("scikit-learn, 25 iterations", "peer", fit, setup=setup_sparse("25")),
        Implementation("scikit-learn, arpack", "peer", fit, setup=setup_sparse("arpack")),
    ),
    quality=kept_sparse,
    tolerance=1e-4,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
