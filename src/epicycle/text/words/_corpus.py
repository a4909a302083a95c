"""Sentences as numbers: the vocabulary of a corpus, and its words by their places in it."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._documents import Documents

Array = np.ndarray
_WORD = re.compile(r"\w+")


@dataclass
class Corpus:
    """Words, the most frequent first, and the sentences that are made of them.

    words : array of str
    counts : array of float, how often each occurs, sentences counted by their weights
    ids : array of int32, all sentences one after the other, words out of the vocabulary left out
    first : array of int64 (sentences + 1,), where each begins
    weight : array of float (sentences,)
    """

    words: Array
    counts: Array
    ids: Array
    first: Array
    weight: Array


def tokens_of(document: Any, tokenizer: Callable[[str], Iterable[str]] | None, number: int) -> list[str]:
    """Words of one document: a string is cut, anything else is a sequence of words already."""
    if isinstance(document, bytes) or document is None or isinstance(document, float | int | np.number):
        raise DataTypeError(f"X: document {number} is {document!r:.60}; expected a string or a sequence of strings")
    if isinstance(document, str):
        return _WORD.findall(document.lower()) if tokenizer is None else list(tokenizer(document))
    words = list(document)
    for word in words:
        if not isinstance(word, str):
            raise DataTypeError(f"X: document {number} holds {word!r:.60}; expected words as strings")
    return words


def read_corpus(
    X: Any,
    sample_weight: Any,
    *,
    tokenizer: Callable[[str], Iterable[str]] | None,
    min_count: float,
    max_words: int | None,
) -> Corpus:
    """One pass over the documents; words that are too rare are left out of sentences, which close up."""
    number: dict[str, int] = {}
    ids, ends = array("i"), array("q", [0])
    for i, document in enumerate(Documents(X).source):
        for word in tokens_of(document, tokenizer, i):
            ids.append(number.setdefault(word, len(number)))
        ends.append(len(ids))
    weight = _weights(sample_weight, len(ends) - 1)
    seen, first = np.array(ids, dtype=np.int32), np.array(ends, dtype=np.int64)
    counts = np.bincount(seen, np.repeat(weight, np.diff(first)), minlength=len(number))
    words = np.array(list(number), dtype=object)
    order = np.lexsort((words.astype(str), -counts)) if len(words) else np.zeros(0, dtype=np.int64)
    kept = order[counts[order] >= min_count][:max_words]
    kept = kept[counts[kept] > 0]
    if len(kept) < 2:
        raise DataError(
            f"X: {len(kept)} words occur at least min_count={min_count:g} times, of {len(words)} in {len(weight)} "
            "documents; expected at least 2"
        )
    place = np.full(len(words), -1, dtype=np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    new = place[seen]
    inside = np.concatenate([[0], np.cumsum(new >= 0)])
    return Corpus(words[kept].astype(str), counts[kept], new[new >= 0], inside[first].astype(np.int64), weight)


def _weights(given: Any, n: int) -> Array:
    if given is None:
        return np.ones(n)
    weight = np.asarray(given, dtype=np.float64)
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError(f"sample_weight: got shape {weight.shape}; expected ({n},), finite and not negative")
    if weight.max(initial=0.0) > 1e6:
        raise DataError(f"sample_weight: {weight.max():g}; expected none above 1e6, since steps grow with weights")
    return weight
