"""K-means of documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks._clusters import excesses, fit, model

CLUSTERS, TOPIC, OWN = 20, 300, 0.3


def make(directory: Path, quick: bool) -> Data:
    """Words by Zipf's law, three in ten from the 300 of the document's topic; weights tf-idf, rows of length 1."""
    n, p = (3_000, 5_000) if quick else (100_000, 50_000)
    rng = np.random.default_rng(62)
    frequency = np.cumsum(1 / np.arange(1, p + 1))
    topics = np.stack([rng.choice(p, TOPIC, replace=False) for _ in range(CLUSTERS)])
    lengths = rng.poisson(80, n) + 5
    words = np.searchsorted(frequency / frequency[-1], rng.random(lengths.sum())).clip(0, p - 1)
    topic = np.repeat(rng.integers(0, CLUSTERS, n), lengths)
    own = rng.random(len(words)) < OWN
    words[own] = topics[topic[own], rng.integers(0, TOPIC, own.sum())]
    X = sp.csr_matrix((np.ones(len(words)), words, np.concatenate([[0], np.cumsum(lengths)])), shape=(n, p))
    X.sum_duplicates()
    X.data = (1 + np.log(X.data)) * np.log((1 + n) / (1 + np.bincount(X.indices, minlength=p)))[X.indices]
    X = sp.csr_matrix(sp.diags(1 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X)
    start = X[rng.choice(n, CLUSTERS, replace=False)].toarray()
    return {"data": X.data, "indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32), "start": start}


def matrix(data: Data) -> Any:
    shape = (len(data["indptr"]) - 1, data["start"].shape[1])
    return sp.csr_matrix((data["data"], data["indices"], data["indptr"]), shape=shape)


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        estimator = model(library, "KMeans")
        return estimator(CLUSTERS, init=data["start"], n_init=1, tol=0, max_iter=100), matrix(data)

    return prepare


TASK = Task(
    name="kmeans_text",
    title="KMeans of documents, 100,000 x 50,000 words, 20 clusters, the same first centres",
    description="""\
About 70 distinct words a document, by Zipf's law and by the topic of the document, with tf-idf weights. All start from
the same rows and go on until no label changes or 100 rounds are done; the distortion may be 1e-6 above the least.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
        Implementation("scikit-learn-intelex", "peer", fit, setup=setup("scikit-learn-intelex")),
    ),
    quality=excesses(matrix),
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=2.0),),
)
