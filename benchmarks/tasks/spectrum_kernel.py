"""The kernel matrix of DNA sequences by their words of four letters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

K = 4
MEASURE = "largest error of an entry"


def make(directory: Path, quick: bool) -> Data:
    n, length = (100, 100) if quick else (2_000, 500)
    rng = np.random.default_rng(32)
    letters = np.array(list("ACGT"))[rng.choice(4, (n, length), p=[0.3, 0.2, 0.2, 0.3])]
    return {"sequences": np.array(["".join(row) for row in letters])}


def setup(data: Data) -> dict[str, Any]:
    return {"sequences": data["sequences"].tolist()}


def epicycle(state: dict[str, Any]) -> Solution:
    from epicycle.kernel import Spectrum

    return {"matrix": Spectrum(K)(state["sequences"])}


def sklearn(state: dict[str, Any]) -> Solution:
    from sklearn.feature_extraction.text import CountVectorizer

    X = CountVectorizer(analyzer="char", ngram_range=(K, K), lowercase=False).fit_transform(state["sequences"])
    return {"matrix": (X @ X.T).toarray()}


def sklearn_dense(state: dict[str, Any]) -> Solution:
    from sklearn.feature_extraction.text import CountVectorizer

    counts = CountVectorizer(analyzer="char", ngram_range=(K, K), lowercase=False, dtype=np.float64)
    X = counts.fit_transform(state["sequences"]).toarray()
    return {"matrix": X @ X.T}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Against counts by a dictionary, of some of the rows."""
    from collections import Counter

    sequences = data["sequences"].tolist()
    counted = [Counter(s[i : i + K] for i in range(len(s) - K + 1)) for s in sequences[:20]]
    expected = np.array([[sum(n * b[word] for word, n in a.items()) for b in counted] for a in counted], float)
    return {name: {MEASURE: float(np.abs(s["matrix"][:20, :20] - expected).max())} for name, s in solutions.items()}


TASK = Task(
    name="spectrum_kernel",
    title="Spectrum kernel, 2,000 sequences of 500 letters, k = 4",
    description="""\
Random sequences of the letters A, C, G, T; the whole matrix of inner products of the counts of their words. The peers
count with scikit-learn's CountVectorizer and multiply its sparse matrix, or that matrix made dense. At equal quality
all entries are exact.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle, setup=setup),
        Implementation("CountVectorizer", "peer", sklearn, setup=setup),
        Implementation("CountVectorizer, dense product", "peer", sklearn_dense, setup=setup),
    ),
    quality=quality,
    tolerance=0.0,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=5.0),),
)
