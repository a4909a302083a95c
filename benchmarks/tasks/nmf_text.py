"""Topics of sparse text as non-negative factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "half the squared distance, share above the least"
TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)


def make(directory: Path, quick: bool) -> Data:
    """Tf-idf of documents that mix a few of 40 topics; words of all topics by Zipf's law."""
    n, p, topics, length = (1_000, 1_500, 10, 60) if quick else (20_000, 20_000, 40, 120)
    rng = np.random.default_rng(11)
    words = rng.gamma(0.15, size=(topics, p)) / np.arange(1, p + 1) ** 1.05
    cumulative = np.cumsum(words, axis=1)
    lengths = rng.poisson(length, n) + 5
    row = np.repeat(np.arange(n), lengths)
    mixture = np.cumsum(rng.dirichlet(np.full(topics, 0.1), n), axis=1)
    topic = np.minimum((rng.random(len(row))[:, None] > mixture[row]).sum(axis=1), topics - 1)
    column = np.empty(len(row), dtype=np.int64)
    for t in range(topics):
        here = topic == t
        column[here] = np.searchsorted(cumulative[t], rng.random(here.sum()) * cumulative[t, -1])
    X = sp.csr_array((np.ones(len(row)), (row, np.minimum(column, p - 1))), shape=(n, p))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=p)
    X.data *= (np.log((1 + n) / (1 + documents)) + 1)[X.indices]
    rows = np.repeat(np.arange(n), np.diff(X.indptr))
    X.data /= np.sqrt(np.bincount(rows, X.data**2, minlength=n))[rows]
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape), "k": np.array(20)}


def table(data: Data) -> Any:
    return sp.csr_array((data["data"], data["indices"], data["indptr"]), shape=tuple(data["shape"]))


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import NMF
        else:
            from sklearn.decomposition import NMF
        return NMF(int(data["k"]), init="nndsvda", random_state=0, max_iter=1000), table(data)

    return prepare


def fit(ready: tuple[Any, Any], tol: float = 1e-5) -> Solution:
    model, X = ready
    W = model.set_params(tol=tol).fit_transform(X)
    return {"W": W, "H": model.components_}


def reached(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    X = table(data)
    squares = float(X.data @ X.data)

    def value(W: np.ndarray, H: np.ndarray) -> float:
        return 0.5 * squares - float(np.vdot(X @ H.T, W)) + 0.5 * float(np.vdot(W.T @ W, H @ H.T))

    found = {name: value(s["W"], s["H"]) for name, s in solutions.items()}
    best = min(found.values())
    return {name: {MEASURE: v / best - 1} for name, v in found.items()}


NMF_TEXT = Task(
    name="nmf_text",
    title="NMF of tf-idf rows, 20,000 documents x 20,000 words, 20 topics",
    description="Both from singular vectors (nndsvda), each with the loosest tolerance whose objective is within 1e-5 "
    "of the least that is known (the reference is scikit-learn with a tolerance of 1e-5). scikit-learn-intelex has no "
    "factorisation of its own.",
    make=make,
    implementations=(
        Implementation("reference", "reference", fit, setup=setup("scikit-learn")),
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle"), tolerances=TOLERANCES),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn"), tolerances=TOLERANCES),
    ),
    quality=reached,
    tolerance=1e-5,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
