"""Texts in: cut into tokens, and tokens to numbers and back.

Numbers 0 to 2 have a meaning of their own, so a vocabulary is the list of the tokens with numbers 3, 4, ...
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError

#: What fills up short sequences, a token that is not in the vocabulary, and the end (or start) of a sequence.
PADDING, UNKNOWN, END = 0, 1, 2
N_SPECIAL = 3

_WORDS = re.compile(r"\w+|[^\w\s]")


def are_texts(X: Any) -> bool:
    """Whether X holds texts or lists of tokens: its first entry tells."""
    if isinstance(X, str | bytes):
        return True
    if isinstance(X, np.ndarray) and X.dtype.kind != "O":
        return X.dtype.kind in "US"
    if not isinstance(X, Iterable) or isinstance(X, dict | set):
        return False
    first = next(iter(X), None)
    if isinstance(first, str | bytes):
        return True
    if isinstance(first, np.ndarray):
        return first.dtype.kind in "US" or (first.dtype == object and len(first) > 0 and isinstance(first[0], str))
    return isinstance(first, list | tuple) and len(first) > 0 and isinstance(first[0], str | bytes)


def as_token_lists(
    X: Any, name: str, estimator_name: str, *, analyzer: str, lowercase: bool = False, empty: bool = False
) -> list[list[str]]:
    """Texts as lists of tokens; lists of tokens as they are.

    Parameters
    ----------
    X : iterable of str, or of lists of str
    name : str
        Of the argument, named in errors.
    estimator_name : str
    analyzer : {"word", "char", "space"}
        Words and single signs of punctuation; characters; what stands between spaces.
    lowercase : bool, default=False
    empty : bool, default=False
        Whether a text of no tokens is taken.
    """
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise DataTypeError(
            f"{name}: {estimator_name} expects a list of texts; got {type(X).__name__}: put a single text into a list"
        )
    found = []
    for i, text in enumerate(X):
        if isinstance(text, str):
            text = text.lower() if lowercase else text
            tokens = list(text) if analyzer == "char" else text.split() if analyzer == "space" else _WORDS.findall(text)
        elif isinstance(text, list | tuple | np.ndarray) and all(isinstance(token, str) for token in text):
            tokens = [str(token).lower() if lowercase else str(token) for token in text]
        else:
            raise DataTypeError(
                f"{name}: entry {i} is {_kind(text)}; {estimator_name} expects texts (str) or lists of tokens (str)"
            )
        if not tokens and not empty:
            raise DataError(f"{name}: the text of entry {i} is empty ({text!r:.40}); expected at least one token")
        found.append(tokens)
    if not found:
        raise DataError(f"{name}: found 0 sample(s); {estimator_name} expects at least one text")
    return found


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple | np.ndarray):
        other = next(token for token in value if not isinstance(token, str))
        return f"a list with {other!r:.40} ({type(other).__name__})"
    return f"{value!r:.40} ({type(value).__name__})"


def build_vocabulary(lists: Iterable[Sequence[str]], max_features: int | None = None, min_df: int = 1) -> list[str]:
    """The tokens that occur in at least `min_df` of the lists, the most frequent `max_features` of them, sorted."""
    counts: Counter[str] = Counter()
    lists_with: Counter[str] = Counter()
    for tokens in lists:
        counts.update(tokens)
        if min_df > 1:
            lists_with.update(set(tokens))
    kept = [token for token in counts if min_df <= 1 or lists_with[token] >= min_df]
    if max_features is not None and len(kept) > max_features:
        kept = sorted(kept, key=lambda token: (-counts[token], token))[:max_features]
    return sorted(kept)


def token_numbers(vocabulary: Sequence[str]) -> dict[str, int]:
    """The number of each token."""
    return {token: N_SPECIAL + i for i, token in enumerate(vocabulary)}


def encode(tokens: Iterable[str], numbers: Mapping[str, int]) -> np.ndarray:
    """Tokens as numbers; those that are not known as `UNKNOWN`."""
    return np.array([numbers.get(token, UNKNOWN) for token in tokens], dtype=np.int64)


def encode_all(lists: Iterable[Iterable[str]], vocabulary: Sequence[str]) -> list[np.ndarray]:
    """Lists of tokens as arrays of their numbers."""
    numbers = token_numbers(vocabulary)
    return [encode(tokens, numbers) for tokens in lists]


def decode(found: Iterable[int], vocabulary: Sequence[str]) -> list[str]:
    """Numbers as tokens, without those that have a meaning of their own."""
    return [vocabulary[i - N_SPECIAL] for i in found if i >= N_SPECIAL]
