"""Documents in few dimensions: tf-idf weights and their leading singular vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks.pca import make_sparse, table

MEASURE = "sum of squares that is kept, share below the most"


def make(directory: Path, quick: bool) -> Data:
    if quick:
        return {**make_sparse(directory, quick), "k": np.array(20)}
    n, p, topics, words = 10_000, 10_000, 40, 60
    rng = np.random.default_rng(21)
    frequency = np.cumsum(1 / np.arange(1, p + 1))
    common = np.searchsorted(frequency, rng.random(n * words) * frequency[-1]).clip(max=p - 1)
    row = np.repeat(np.arange(n), words)
    own = rng.choice(p, (topics, 200))[rng.integers(0, topics, n)[row], rng.integers(0, 200, n * words)]
    X = sp.csr_array((np.ones(n * words), (row, np.where(rng.random(n * words) < 0.5, own, common))), shape=(n, p))
    X.sum_duplicates()
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape), "k": np.array(50)}


def setup(data: Data) -> Any:
    return table(data), int(data["k"])


def epicycle_index(ready: tuple[Any, int]) -> Solution:
    from epicycle import LatentSemanticIndexing

    X, k = ready
    return {"components": LatentSemanticIndexing(k, tol=1e-3, random_state=0).fit(X).components_}


def scikit_learn(n_iter: int) -> Callable[[tuple[Any, int]], Solution]:
    def fit(ready: tuple[Any, int]) -> Solution:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        X, k = ready
        W = TfidfTransformer().fit_transform(X)
        svd = TruncatedSVD(k, n_iter=n_iter, random_state=0)
        svd.fit_transform(W)
        return {"components": svd.components_}

    return fit


def gensim_index(ready: tuple[Any, int]) -> Solution:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LsiModel
    from sklearn.feature_extraction.text import TfidfTransformer

    X, k = ready
    W = sp.csc_matrix(TfidfTransformer().fit_transform(X))
    model = LsiModel(Sparse2Corpus(W, documents_columns=False), num_topics=k, random_seed=0)
    return {"components": np.asarray(model.projection.u).T}


def kept(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    from sklearn.feature_extraction.text import TfidfTransformer

    W = TfidfTransformer().fit_transform(table(data))
    found = {}
    for name, s in solutions.items():
        axes = np.linalg.qr(s["components"].T)[0]
        found[name] = float(np.square(W @ axes).sum())
    best = max(found.values())
    return {name: {MEASURE: 1 - value / best} for name, value in found.items()}


TASK = Task(
    name="latent_semantic_indexing",
    title="LatentSemanticIndexing, 10,000 documents x 10,000 terms, 50 dimensions",
    description="""\
Sixty words a document, half of its topic and half by Zipf's law. Everybody has the same weights; sums of squares along
the axes may be 1e-3 below the most.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_index, setup=setup),
        Implementation("scikit-learn, 5 iterations", "peer", scikit_learn(5), setup=setup),
        Implementation("scikit-learn, 12 iterations", "peer", scikit_learn(12), setup=setup),
        Implementation("gensim", "peer", gensim_index, setup=setup),
    ),
    quality=kept,
    tolerance=1e-3,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
