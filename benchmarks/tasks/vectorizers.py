"""Documents as tables: words counted, weighed and hashed, and n-grams of characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "largest difference of an entry"
#: The class and the arguments of each task.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "count": ("CountVectorizer", {}),
    "tfidf": ("TfidfVectorizer", {}),
    "hashing": ("HashingVectorizer", {}),
    "characters": ("CountVectorizer", {"analyzer": "char_wb", "ngram_range": (2, 4)}),
}


def documents_like_newsgroups(n: int) -> list[str]:
    """Words of two to twelve letters by Zipf's law, about 280 to a document, with capitals and punctuation."""
    rng = np.random.default_rng(12)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    lengths = rng.integers(2, 13, 130_000)
    words = ["".join(letters[rng.geometric(0.12, k).clip(max=26) - 1]) for k in lengths]
    words[::5] = [word.capitalize() for word in words[::5]]
    frequency = np.cumsum(1 / np.arange(1, len(words) + 1))
    texts = []
    for size in rng.lognormal(5.2, 0.9, n).astype(int) + 5:
        drawn = np.searchsorted(frequency, rng.random(size) * frequency[-1])
        ends = np.array([" ", " ", " ", " ", " ", ", ", ".\n"])[rng.integers(0, 7, size)]
        texts.append("".join(words[w] + end for w, end in zip(drawn, ends, strict=True)))
    return texts


def make(case: str) -> Callable[[Path, bool], Data]:
    def made(directory: Path, quick: bool) -> Data:
        n = 300 if quick else 3_000 if case == "characters" else 11_314
        return {"texts": np.array(documents_like_newsgroups(n))}

    return made


def setup(library: str, case: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        from sklearn.feature_extraction import text

        import epicycle

        name, arguments = CASES[case]
        return getattr(epicycle if library == "epicycle" else text, name)(**arguments), data["texts"].tolist()

    return prepare


def fit(ready: tuple[Any, list[str]]) -> Solution:
    model, texts = ready
    X = sp.csr_array(model.fit_transform(texts))
    X.sort_indices()
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr}


def differences(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    first = solutions["scikit-learn"]
    found = {}
    for name, s in solutions.items():
        same = all(np.array_equal(s[part], first[part]) for part in ("indices", "indptr"))
        found[name] = {MEASURE: float(np.abs(s["data"] - first["data"]).max()) if same else np.inf}
    return found


def task(case: str) -> Task:
    name, arguments = CASES[case]
    return Task(
        name=f"vectorizer_{case}",
        title=f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())}), documents like 20 Newsgroups",
        description="""\
11,314 documents (characters: 3,000) of about 280 words by Zipf's law, 130,000 different ones. The tables are equal;
entries may differ by 1e-12.""",
        make=make(case),
        implementations=(
            Implementation("epicycle", "epicycle", fit, setup=setup("epicycle", case)),
            Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn", case)),
        ),
        quality=differences,
        tolerance=1e-12,
        targets=(Target("speed against scikit-learn", speedup_over_best_peer(), at_least=3.0),),
    )


COUNT, TFIDF, HASHING, CHARACTERS = (task(case) for case in CASES)
