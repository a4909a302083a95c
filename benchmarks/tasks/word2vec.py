"""Vectors of words by skip-gram."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._svm import shared

SIZE, EPOCHS = 100, 5


def make(directory: Path, quick: bool) -> Data:
    """Sentences of the World Factbook and of books, or walks on a ring where these are not at hand."""
    files = [shared(name) for name in ("cia_factbook.txt.xz", "gutenberg_books.txt.xz")]
    if quick or not all(files):
        rng = np.random.default_rng(0)
        walks = rng.integers(500, size=2_000)[:, None] + np.cumsum(rng.integers(-1, 2, size=(2_000, 20)), axis=1)
        return {"text": np.array([" ".join(f"w{i}" for i in walk % 500) for walk in walks])}
    from epicycle.text import read_lines

    sentences = [" ".join(re.findall(r"\w+", line.lower())) for line in read_lines(files)]
    return {"text": np.array("\n".join(s for s in sentences if " " in s))}


def sentences(data: Data) -> Any:
    text = data["text"]
    return [line.split() for line in (str(text).split("\n") if text.ndim == 0 else text)]


def epicycle_vectors(lock_free: bool) -> Any:
    def run(documents: Any) -> Solution:
        from epicycle import Word2Vec

        model = Word2Vec(SIZE, epochs=EPOCHS, lock_free=lock_free, random_state=0).fit(documents)
        return {"words": model.words_, "vectors": model.vectors_}

    return run


def gensim_vectors(documents: Any) -> Solution:
    from gensim.models import Word2Vec

    model = Word2Vec(documents, vector_size=SIZE, sg=1, epochs=EPOCHS, workers=2, seed=0)
    return {"words": np.array(model.wv.index_to_key), "vectors": model.wv.vectors}


def agreement(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Rank correlation with WordSim-353, or with nearness on the ring: by how much it is below the best."""
    from epicycle.text import WordVectors

    file = shared("wordsim353.tsv.gz")
    if data["text"].ndim == 0 and file:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows = [line.lower().split("\t") for line in lines if not line.startswith("#")]
        pairs = [(a, b, float(score)) for a, b, score in rows]
    else:
        pairs = [(f"w{i}", f"w{(i + k) % 500}", -float(k)) for i in range(0, 500, 7) for k in range(1, 60, 4)]
    rank = {
        name: WordVectors(dict(zip(s["words"].tolist(), s["vectors"], strict=True))).score_pairs(pairs)[0]
        for name, s in solutions.items()
    }
    best = max(rank.values())
    return {name: {"below the best": best - value, "rank correlation": value} for name, value in rank.items()}


TASK = Task(
    name="word2vec",
    title="Skip-gram with five negative samples, five epochs over the World Factbook and books, vectors of 100",
    description="""\
The same windows, counts and rates for all. Equal quality means a rank correlation with WordSim-353 that is at most
0.03 below the best.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_vectors(lock_free=True), setup=sentences),
        Implementation("epicycle, bit for bit", "epicycle", epicycle_vectors(lock_free=False), setup=sentences),
        Implementation("gensim", "peer", gensim_vectors, setup=sentences),
    ),
    quality=agreement,
    tolerance=0.03,
    targets=(Target("speed against gensim", speedup_over_best_peer(), at_least=1.0),),
    cap=400.0,
)
