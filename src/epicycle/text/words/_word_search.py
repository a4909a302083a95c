"""Words by their vectors: similarity, nearest words, analogies, evaluation, and files of other programs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import scipy.stats

from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.io._atomic import check_target, write_atomically

Array = np.ndarray
_BLOCK = 256  # questions whose products with all words are in memory at a time


@documented({})
class WordSearch:
    """Queries of `words_` and `vectors_`; both classes of learners and read vectors are such."""

    _docs: ClassVar[Mapping[str, str]] = {
        "n": "n : int, default={default}\n    How many.",
        **{f"{method}_returns": "list of (word, cosine)" for method in ("most_similar", "analogy")},
    }

    words_: Array
    vectors_: Array

    @cached_property
    def _places_(self) -> dict[str, int]:
        return {str(word): i for i, word in enumerate(self.words_)}

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]  # None for no attributes
        state.pop("_places_", None)  # made again from the words
        return state

    def __contains__(self, word: object) -> bool:
        return word in self._places_

    def __getitem__(self, word: str) -> Array:
        """Vector of a word."""
        return np.asarray(self.vectors_[self._place(word)])

    def _place(self, word: str) -> int:
        if word not in self._places_:
            raise DataError(f"{word!r:.60} is not among the {len(self.words_)} words of the vocabulary")
        return self._places_[word]

    def _directions(self) -> Array:
        vectors = np.asarray(self.vectors_, dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths > 0, lengths, 1.0)

    def similarity(self, a: str, b: str) -> float:
        """Cosine of the angle between two words.

        Parameters
        ----------
        a, b : str
        """
        x, y = (np.asarray(self[word], dtype=np.float64) for word in (a, b))
        size = float(np.linalg.norm(x) * np.linalg.norm(y))
        return float(x @ y) / size if size > 0 else 0.0

    def most_similar(
        self, positive: str | Sequence[str], negative: str | Sequence[str] = (), n: int = 10
    ) -> list[tuple[str, float]]:
        """Words nearest to the sum of some and the opposites of others, themselves left out.

        Parameters
        ----------
        positive, negative : str or sequence of str
            Words whose directions are added and subtracted.
        """
        plus = [positive] if isinstance(positive, str) else list(positive)
        minus = [negative] if isinstance(negative, str) else list(negative)
        given = [self._place(word) for word in [*plus, *minus]]
        if not given or n < 1:
            raise DataError(f"most_similar: got {len(given)} words and n={n}; expected at least one of each")
        D = self._directions()
        signs = np.array([1.0] * len(plus) + [-1.0] * len(minus))
        target = signs @ D[given]
        size = float(np.linalg.norm(target))
        cosine = D @ target / (size or 1.0)
        cosine[given] = -np.inf
        found = np.argsort(-cosine, kind="stable")[: min(n, len(cosine) - len(set(given)))]
        return [(str(self.words_[i]), float(cosine[i])) for i in found]

    def analogy(self, a: str, b: str, c: str, n: int = 1) -> list[tuple[str, float]]:
        """Words that are to `c` as `b` is to `a`.

        Parameters
        ----------
        a, b, c : str
        """
        return self.most_similar([b, c], [a], n)

    def score_pairs(self, pairs: Iterable[tuple[str, str, float]]) -> tuple[float, int]:
        """Spearman's correlation of cosines with given similarities, as for WordSim-353.

        Parameters
        ----------
        pairs : iterable of (word, word, number)
            Those with unknown words are left out.

        Returns
        -------
        correlation : float
        n_pairs : int
            How many had known words.
        """
        listed = [(str(a), str(b), float(score)) for a, b, score in pairs]
        known = [(a, b, score) for a, b, score in listed if a in self and b in self]
        if len(known) < 2:
            raise DataError(f"pairs: the words of {len(known)} of {len(listed)} are known; expected at least 2")
        found = [self.similarity(a, b) for a, b, _ in known]
        rank = scipy.stats.spearmanr(found, [score for _, _, score in known]).statistic
        return float(rank), len(known)

    def score_analogies(self, questions: Iterable[Sequence[str]]) -> tuple[float, int]:
        """Share of questions a : b = c : d of which the answer is d, among all words but a, b, c.

        Parameters
        ----------
        questions : iterable of (a, b, c, d)
            Those with unknown words are left out.

        Returns
        -------
        accuracy : float
        n_questions : int
            How many had known words.
        """
        asked = [tuple(map(str, q)) for q in questions]
        if any(len(q) != 4 for q in asked):
            raise DataError("questions: expected four words each")
        known = np.array([[self._places_[w] for w in q] for q in asked if all(w in self for w in q)], dtype=np.int64)
        if len(known) == 0:
            raise DataError(f"questions: none of the {len(asked)} has known words only")
        D, right = self._directions(), 0
        for start in range(0, len(known), _BLOCK):
            a, b, c, d = known[start : start + _BLOCK].T
            cosine = (D[b] - D[a] + D[c]) @ D.T
            rows = np.arange(len(a))
            for given in (a, b, c):
                cosine[rows, given] = -np.inf
            right += int((cosine.argmax(axis=1) == d).sum())
        return right / len(known), len(known)

    def write_word2vec(self, path: str | os.PathLike[str], *, binary: bool = False) -> None:
        """Write the vectors as word2vec does: a line with the sizes, then each word with its numbers.

        Parameters
        ----------
        path : str or path
        binary : bool, default=False
            Whether numbers are float32 in bytes instead of text.
        """
        vectors = np.asarray(self.vectors_, dtype="<f4")
        bad = next((w for w in self.words_ if any(c.isspace() for c in str(w)) or not w), None)
        if bad is not None:
            raise DataError(f"the word {bad!r} holds a space, which ends a word in this format; save() takes any")
        lines = (
            str(word).encode() + b" " + (x.tobytes() if binary else " ".join(f"{v:.9g}" for v in x).encode()) + b"\n"
            for word, x in zip(self.words_, vectors, strict=True)
        )
        head = f"{len(vectors)} {vectors.shape[1]}\n".encode()
        write_atomically(check_target(path), chain([head], lines))

    def to_gensim(self) -> Any:
        """The vectors as gensim's `KeyedVectors`, where gensim is installed."""
        from gensim.models import KeyedVectors

        found = KeyedVectors(self.vectors_.shape[1])
        found.add_vectors([str(w) for w in self.words_], np.asarray(self.vectors_, dtype=np.float32))
        return found
