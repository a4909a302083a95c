"""Multinomial naive Bayes of documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Solution, Target, Task
from benchmarks.tasks._naive_bayes import against, model

CLASSES = 20


def make(directory: Path, quick: bool) -> Data:
    n, p, words = (5_000, 5_000, 30) if quick else (1_000_000, 100_000, 60)
    rng = np.random.default_rng(51)
    frequency = np.cumsum(1 / np.arange(1, p + 1))  # Zipf's law
    lengths = rng.poisson(words, n) + 1
    columns = np.searchsorted(frequency / frequency[-1], rng.random(lengths.sum())).clip(0, p - 1)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.csr_array((np.ones(len(columns)), columns, indptr), shape=(n, p))
    X.sum_duplicates()
    parts = {"data": X.data, "indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32)}
    return {**parts, "columns": np.array([p]), "y": rng.integers(0, CLASSES, n)}


def matrix(data: Data) -> Any:
    shape = (len(data["y"]), int(data["columns"][0]))
    return sp.csr_array((data["data"], data["indices"], data["indptr"]), shape=shape)


def setup(library: str) -> Callable[[Data], Any]:
    return lambda data: (model(library, "MultinomialNB"), matrix(data), data["y"])


def fit(ready: tuple[Any, Any, np.ndarray]) -> Solution:
    estimator, X, y = ready
    return {"parameters": np.asarray(estimator().fit(X, y).feature_log_prob_)}


def formula(data: Data) -> np.ndarray:
    X, y = matrix(data), data["y"]
    counts = np.stack([np.asarray(X[y == c].sum(axis=0)).ravel() for c in range(CLASSES)]) + 1.0
    return np.log(counts) - np.log(counts.sum(axis=1, keepdims=True))


TASK = Task(
    name="naive_bayes_text",
    title="MultinomialNB, 1,000,000 documents x 100,000 words, 20 classes",
    description="""\
About fifty distinct words a document, drawn by Zipf's law. Everybody counts; log-probabilities may differ from the
formula by 1e-9.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
    ),
    quality=against(formula),
    tolerance=1e-9,
    targets=(Target("speed against scikit-learn", speedup_over_best_peer(), at_least=1.5),),
)
