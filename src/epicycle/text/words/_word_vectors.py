"""`WordVectors`: vectors of words from other programs, and files of word2vec."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epicycle.core._docs import complete_docstrings
from epicycle.core._exceptions import DataError
from epicycle.core._saved import Saved
from epicycle.text.words._word_search import WordSearch

Array = np.ndarray


class WordVectors(WordSearch, Saved):
    """Words with their vectors, made by another program or read from a file.

    Parameters
    ----------
    vectors : mapping of words to vectors, or gensim's `KeyedVectors`

    Examples
    --------
    >>> from epicycle.text import WordVectors
    >>> found = WordVectors({"one": [1.0, 0.0], "two": [2.0, 0.1], "red": [0.0, 1.0]})
    >>> found.most_similar("one", n=1)[0][0]
    'two'
    """

    def __init__(self, vectors: Any) -> None:
        if hasattr(vectors, "index_to_key"):
            words, matrix = list(vectors.index_to_key), vectors.vectors
        elif isinstance(vectors, Mapping):
            words, matrix = list(vectors), list(vectors.values())
        else:
            raise DataError(f"vectors: got {type(vectors).__name__}; expected a mapping of words or KeyedVectors")
        try:
            self.vectors_ = np.array(matrix, dtype=np.float32)
        except ValueError:
            raise DataError("vectors: expected vectors of numbers, all of one length") from None
        self.words_ = np.array(words, dtype=str)
        if self.vectors_.ndim != 2 or len(words) == 0 or not np.isfinite(self.vectors_).all():
            raise DataError(f"vectors: got shape {self.vectors_.shape}; expected one finite vector for each word")

    @classmethod
    def read_word2vec(cls, path: str | os.PathLike[str], *, binary: bool = False) -> WordVectors:
        """Vectors from a file of word2vec, as text or binary.

        Parameters
        ----------
        path : str or path
        binary : bool, default=False
        """
        content = Path(path).read_bytes()
        head, _, rest = content.partition(b"\n")
        try:
            n, d = (int(x) for x in head.split())
        except ValueError:
            raise DataError(
                f"{path}: its first line is {head[:60]!r}; expected the numbers of words and columns"
            ) from None
        if n < 1 or d < 1 or len(rest) < 2 * n:
            raise DataError(f"{path}: its first line promises {n} words of {d} numbers, which it is too short for")
        found = _binary_rows(rest, n, d, path) if binary else _text_rows(rest, n, d, path)
        return cls(found)

    def __epi_state__(self) -> dict[str, Any]:
        return {"words": self.words_, "vectors": self.vectors_}

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        self.words_, self.vectors_ = state["words"], state["vectors"]


complete_docstrings(WordVectors)


def _text_rows(rest: bytes, n: int, d: int, path: Any) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for number, line in enumerate(rest.decode("utf-8").split("\n")[:n], start=2):
        word, *numbers = line.rstrip().split(" ")
        try:
            vector = np.array(numbers, dtype=np.float32)
        except ValueError:
            vector = np.zeros(0, dtype=np.float32)
        if len(vector) != d:
            raise DataError(
                f"{path}: line {number} has {len(numbers)} entries after {word!r:.40}; expected {d} numbers"
            )
        found[word] = vector
    if len(found) != n:
        raise DataError(f"{path}: got {len(found)} different words; expected {n}")
    return found


def _binary_rows(rest: bytes, n: int, d: int, path: Any) -> dict[str, Array]:
    found: dict[str, Array] = {}
    at = 0
    for _ in range(n):
        end = rest.find(b" ", at)
        if end < 0 or end + 1 + 4 * d > len(rest):
            raise DataError(f"{path}: it ends after {len(found)} words; expected {n}")
        word = rest[at:end].lstrip(b"\n").decode("utf-8")
        found[word] = np.frombuffer(rest, dtype="<f4", count=d, offset=end + 1).copy()
        at = end + 1 + 4 * d
    return found
