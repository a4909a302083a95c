"""From texts to numbers of tokens and back: characters, bytes, words, tokens of an estimator, or numbers as given."""

from __future__ import annotations

import codecs
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from epicycle.core._exceptions import DataError, DataTypeError, ParameterTypeError
from epicycle.core._parameters import AnyOf, Choice, Described, NoneOr
from epicycle.data._documents import Documents

#: Names of the kinds of tokens that need no estimator.
KINDS = ("characters", "bytes", "words")
#: What an estimator needs that makes tokens of texts.
_METHODS = ("fit", "encode", "decode")
_WORDS = re.compile(r"\w+|[^\w\s]")
#: In place of words that were not among those of the fit.
UNKNOWN = "\ufffd"
_LARGEST = 2**31 - 1


def is_tokenizer(value: Any) -> bool:
    """Whether it has what :class:`~epicycle.BytePairEncoder` has."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in (*_METHODS, "get_params"))


TOKENIZER = NoneOr(AnyOf(Choice(*KINDS), Described("an estimator such as BytePairEncoder()", is_tokenizer)))

TOKENIZER_DOC = (
    "tokenizer : {'characters', 'bytes', 'words'}, estimator or None, default={default}\n"
    "    How texts become tokens; an estimator such as :class:`~epicycle.BytePairEncoder` is fitted to\n"
    "    them first, unless it is fitted. None takes sequences of integers in place of texts."
)


class Codec(ABC):
    """A vocabulary of `n_tokens` tokens, numbered from 0."""

    n_tokens: int

    @abstractmethod
    def encode(self, text: Any) -> np.ndarray:
        """The tokens of a text."""

    @abstractmethod
    def decode(self, ids: Any) -> Any:
        """The text of a sequence of tokens."""

    def stream(self) -> Callable[[int], Any]:
        """A function of one token after another that gives the text that each adds."""
        return lambda token: self.decode([token])


class Characters(Codec):
    """Every character of the training texts is a token."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary, self.n_tokens = list(vocabulary), len(vocabulary)
        self.numbers = {c: i for i, c in enumerate(vocabulary)}

    def encode(self, text: str) -> np.ndarray:
        try:
            return np.array([self.numbers[c] for c in text], dtype=np.int32)
        except KeyError as error:
            raise DataError(
                f"X: the character {error.args[0]!r} is not among the {self.n_tokens} of the texts of the fit; "
                "expected those, or a network with tokenizer='bytes' or a BytePairEncoder, which know all characters"
            ) from None

    def decode(self, ids: Any) -> str:
        return "".join(self.vocabulary[i] for i in ids)


class Words(Codec):
    """Words and punctuation marks in lower case; the last token stands for all words that are not in the vocabulary."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary, self.n_tokens = [*vocabulary, UNKNOWN], len(vocabulary) + 1
        self.numbers = {w: i for i, w in enumerate(vocabulary)}

    @staticmethod
    def split(text: str) -> list[str]:
        """The words of a text."""
        return _WORDS.findall(text.lower())

    def encode(self, text: str) -> np.ndarray:
        unknown = self.n_tokens - 1
        return np.array([self.numbers.get(w, unknown) for w in self.split(text)], dtype=np.int32)

    def decode(self, ids: Any) -> str:
        return " ".join(self.vocabulary[i] for i in ids)

    def stream(self) -> Callable[[int], str]:
        first = True

        def add(token: int) -> str:
            nonlocal first
            word, first = self.vocabulary[token] if first else f" {self.vocabulary[token]}", False
            return word

        return add


class Bytes(Codec):
    """The 256 bytes of texts in UTF-8, or the tokens of an estimator whose `tokens_` are sequences of bytes."""

    def __init__(self, tokenizer: Any = None) -> None:
        self.tokenizer = tokenizer
        self.tokens = [bytes([i]) for i in range(256)] if tokenizer is None else list(tokenizer.tokens_)
        self.n_tokens = len(self.tokens)

    def encode(self, text: str) -> np.ndarray:
        if self.tokenizer is not None:
            return np.asarray(self.tokenizer.encode(text), dtype=np.int32)
        return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8).astype(np.int32)

    def decode(self, ids: Any) -> str:
        return b"".join(self.tokens[i] for i in ids).decode("utf-8", "replace")

    def stream(self) -> Callable[[int], str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may end in a later token
        return lambda token: decoder.decode(self.tokens[token])


class Numbers(Codec):
    """Sequences of integers 0 .. n_tokens - 1."""

    def __init__(self, n_tokens: int) -> None:
        self.n_tokens = n_tokens

    def encode(self, text: Any) -> np.ndarray:
        found = np.asarray(text)
        if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
            raise DataTypeError(
                f"X: {'text' if isinstance(text, str) else 'a sequence'} of type {found.dtype} and shape "
                f"{found.shape}; with tokenizer=None expected sequences of integers"
            )
        if len(found) and not (found.min() >= 0 and found.max() < self.n_tokens):
            wrong = found[(found < 0) | (found >= self.n_tokens)][0]
            raise DataError(f"X: the token {wrong}; expected numbers from 0 to {self.n_tokens - 1}")
        return found.astype(np.int32)

    def decode(self, ids: Any) -> list[int]:
        return [int(i) for i in ids]

    def stream(self) -> Callable[[int], int]:
        return int


def documents_of(X: Any, tokenizer: Any, name: str = "X") -> list[Any]:
    """The texts that a user gave, a single text being one document; or sequences of integers."""
    if tokenizer is None:
        given = [X] if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype != object else X
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise DataTypeError(
                f"{name}: {type(given).__name__}; with tokenizer=None expected sequences of integers (for texts choose "
                "a tokenizer)"
            )
        return list(given)
    texts = [X] if isinstance(X, str) else [text for batch in Documents(X).batches() for text in batch]
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataTypeError(f"{name}: document {i} is of type {type(text).__name__}; expected str")
    return texts


def learnt(tokenizer: Any, texts: Sequence[Any], max_words: int | None = None) -> tuple[Any, list[str] | int]:
    """(fitted tokenizer or the name of its kind, vocabulary or number of tokens) of texts."""
    if tokenizer is None:
        largest = -1
        for text in texts:
            row = Numbers(_LARGEST).encode(text)
            largest = max(largest, int(row.max(initial=-1)))
        return None, largest + 1
    if tokenizer == "bytes":
        return tokenizer, 256
    if tokenizer == "characters":
        return tokenizer, sorted(set().union(*texts))
    if tokenizer == "words":
        counts = Counter(word for text in texts for word in Words.split(text))
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return tokenizer, ranked[: max_words or len(ranked)]
    fitted = tokenizer if hasattr(tokenizer, "merges_") else clone(tokenizer).fit(texts)
    if not hasattr(fitted, "tokens_"):
        raise ParameterTypeError(
            f"tokenizer: {type(fitted).__name__} has no `tokens_` after its fit; expected an estimator such as "
            "BytePairEncoder, whose `tokens_` are the bytes of each token"
        )
    return fitted, len(fitted.tokens_)


def codec(tokenizer: Any, vocabulary: Any) -> Codec:
    """The vocabulary of what `learnt` gave."""
    if tokenizer is None:
        return Numbers(int(vocabulary))
    if isinstance(tokenizer, str):
        kinds: dict[str, Callable[[], Codec]] = {
            "bytes": Bytes,
            "characters": lambda: Characters(vocabulary),
            "words": lambda: Words(vocabulary),
        }
        return kinds[tokenizer]()
    return Bytes(tokenizer)
