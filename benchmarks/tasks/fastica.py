"""Independent components of many rows: fixed points, and maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "Amari index above the least"


def make(directory: Path, quick: bool) -> Data:
    n, k = (5_000, 10) if quick else (100_000, 50)
    rng = np.random.default_rng(9)
    sources = rng.laplace(size=(n, k))
    mixing = rng.normal(size=(k, k))
    return {"X": sources @ mixing.T, "mixing": mixing}


def make_smaller(directory: Path, quick: bool) -> Data:
    n, k = (5_000, 10) if quick else (20_000, 20)
    rng = np.random.default_rng(10)
    mixing = rng.normal(size=(k, k))
    return {"X": rng.laplace(size=(n, k)) @ mixing.T, "mixing": mixing}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import FastICA

            return FastICA(random_state=0), data["X"]
        from sklearn.decomposition import FastICA

        return FastICA(whiten_solver=library, random_state=0), data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    model.fit(X)
    return {"unmixing": model.components_}


def setup_likelihood(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import ICA

            return ICA(random_state=0), data["X"]
        import picard  # noqa: F401 - imported before the clock starts

        return None, data["X"]

    return prepare


def fit_picard(ready: tuple[Any, np.ndarray]) -> Solution:
    from picard import picard

    # Its tanh is the logistic density of half the argument: the same model, with sources of another scale.
    K, W, _ = picard(ready[1].T, fun="tanh", ortho=False, extended=False, tol=1e-7, max_iter=300, random_state=0)
    return {"unmixing": W @ K}


def amari(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    from epicycle.metrics import amari_index

    X = data["X"] - data["X"].mean(axis=0)
    found = {}
    for name, solution in solutions.items():
        B = np.asarray(solution["unmixing"])
        found[name] = amari_index(B / (X @ B.T).std(axis=0)[:, None], data["mixing"])
    best = min(found.values())
    return {name: {MEASURE: value - best} for name, value in found.items()}


FASTICA_TASK = Task(
    name="fastica",
    title="FastICA, 100,000 x 50",
    description="""\
Parallel, log cosh, tol=1e-4. scikit-learn with its default and with its faster whitening; scikit-learn-intelex has none
of its own. The Amari index may be 1e-3 above the least.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn, svd", "peer", fit, setup=setup("svd")),
        Implementation("scikit-learn, eigh", "peer", fit, setup=setup("eigh")),
    ),
    quality=amari,
    tolerance=1e-3,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
ICA_TASK = Task(
    name="ica",
    title="ICA by maximum likelihood, 20,000 x 20, logistic sources",
    description="To a relative gradient of 1e-7. The Amari index may be 1e-3 above the least.",
    make=make_smaller,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup_likelihood("epicycle")),
        Implementation("python-picard", "peer", fit_picard, setup=setup_likelihood("picard")),
    ),
    quality=amari,
    tolerance=1e-3,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
