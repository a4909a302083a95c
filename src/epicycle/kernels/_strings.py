"""Kernels of strings: how many words they share, exactly (spectrum), nearly (mismatch), or with gaps (subsequence)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Integer, Real, check_parameter
from epicycle.kernels._kernel import Domains, LeafKernel
from epicycle.kernels._texts import (
    Gapped,
    Texts,
    Words,
    as_letters,
    as_words,
    letters_of,
    product_of_words,
    table_of_words,
)

Array = np.ndarray
_MAX_CODE = 2**62  # words are numbered by 64-bit integers
_LONGEST_NUMBERED = 62  # letters: longer words have no number of 64 bits
_MAX_TABLE = 1 << 27  # entries of a dense table of words: 1 GB


class _OfWords(LeafKernel):
    """A kernel of counts of words."""

    takes = "strings"

    def block(self, A: Words, B: Words) -> Array:
        return product_of_words(A, B)

    def prepared_diagonal(self, A: Words) -> Array:
        return A.squares

    def features(self, A: Words, B: Words) -> tuple[Any, Any]:
        return A.features(), B.features()


@dataclass(frozen=True, repr=False)
class Spectrum(_OfWords):
    """The spectrum kernel of strings: the inner product of the counts of all words of k letters.

    Parameters
    ----------
    k : int, default=3
        Length of the words. Strings that are shorter have none, and the kernel 0.

    Examples
    --------
    >>> from epicycle.kernel import Spectrum
    >>> Spectrum(2)(["abab", "ab", "b"])
    array([[5., 2., 0.],
           [2., 1., 0.],
           [0., 0., 0.]])
    """

    k: int = 3

    _domains: ClassVar[Domains] = {"k": Integer(minimum=1)}

    def prepare(self, X: Array, like: Words | None = None) -> Words:
        texts = as_letters(X)
        own = letters_of(texts)
        named = _number_of_words(len(own), self.k) >= _MAX_CODE  # too many words to be numbered
        if (named and like is None) or (like is not None and like.by_name is not None):
            return _named_words(X, self.k, like)
        if like is None:
            words, n = len(own) ** self.k, texts.n_rows
            # a table that is no larger than the counts in a sparse matrix, or small anyway
            if 0 < words <= max(256, 4 * len(texts.letters) // n) and words * n <= _MAX_TABLE:
                table = self._table(texts, own)
                return table_of_words(table, np.einsum("ij,ij->i", table, table), own)
            codes, counts, indptr = self._counts(texts, own)
            return as_words(codes, counts, indptr, _squares(counts, indptr), own, None)
        # All words count for the length of a row, those with letters of the other rows for the product.
        known = not named and bool(np.isin(own, like.alphabet).all())
        if not sp.issparse(like.matrix):
            table = self._table(texts, like.alphabet)
            return table_of_words(
                table, np.einsum("ij,ij->i", table, table) if known else self._lengths(X, texts, own), like.alphabet
            )
        codes, counts, indptr = self._counts(texts, like.alphabet)
        squares = _squares(counts, indptr) if known else self._lengths(X, texts, own)
        return as_words(codes, counts, indptr, squares, like.alphabet, like)

    def _lengths(self, X: Array, texts: Texts, own: Array) -> Array:
        """|counts|^2 of all words."""
        if _number_of_words(len(own), self.k) >= _MAX_CODE:
            return _named_words(X, self.k, None).squares
        return _squares(*self._counts(texts, own)[1:])

    def _table(self, texts: Texts, alphabet: Array) -> Array:
        found = texts.ranked(alphabet)
        return _native.kernel.word_table(found.letters, found.offsets, self.k, len(alphabet))

    def _counts(self, texts: Texts, alphabet: Array) -> tuple[Array, Array, Array]:
        found = texts.ranked(alphabet)
        return _native.kernel.word_counts(found.letters, found.offsets, self.k, max(len(alphabet), 1))


def _number_of_words(letters: int, k: int) -> float:
    """letters^k; infinity where no number is as large, and for long words of one letter, which are not counted to."""
    if k > _LONGEST_NUMBERED:
        return np.inf
    with np.errstate(over="ignore"):
        return float(np.float64(letters) ** k)


def _squares(counts: Array, indptr: Array) -> Array:
    """Sums of squares of the rows of a CSR matrix."""
    return np.add.reduceat(np.append(counts**2, 0.0), indptr[:-1]) * (np.diff(indptr) > 0)


def _named_words(X: Array, k: int, like: Words | None) -> Words:
    """The same for words that are too many to be numbered: by name."""
    counted = [Counter(text[i : i + k] for i in range(len(text) - k + 1)) for text in X.tolist()]
    names = {} if like is None else dict(like.by_name or {})
    if like is None:
        for counter in counted:
            for word in counter:
                names.setdefault(word, len(names))
    indptr, indices, data = [0], [], []
    for counter in counted:
        known = sorted((names[word], count) for word, count in counter.items() if word in names)
        indices += [column for column, _ in known]
        data += [float(count) for _, count in known]
        indptr.append(len(indices))
    matrix = sp.csr_array(
        (np.array(data), np.array(indices, dtype=np.int64), np.array(indptr)), shape=(len(counted), len(names))
    )
    squares = np.array([float(sum(c * c for c in counter.values())) for counter in counted])
    return Words(matrix, squares, np.empty(0, np.int64), np.empty(0, np.int64), names)


@dataclass(frozen=True, repr=False)
class Mismatch(_OfWords):
    """The mismatch kernel of strings: a word of k letters counts for all words that differ in at most m of them.

    Parameters
    ----------
    k : int, default=4
        Length of the words.
    m : int, default=1
        Mismatches, fewer than k.
    alphabet : str, optional
        The letters that words may have. Default: those that occur in the rows that are compared with. A letter that is
        not among them mismatches always.
    """

    k: int = 4
    m: int = 1
    alphabet: str | None = None

    def __post_init__(self) -> None:
        check_parameter("Mismatch", "k", self.k, Integer(minimum=1))
        check_parameter("Mismatch", "m", self.m, Integer(minimum=0, maximum=self.k - 1))
        if self.alphabet is not None and not (isinstance(self.alphabet, str) and self.alphabet):
            raise ParameterTypeError(f"Mismatch: alphabet={self.alphabet!r:.60}; expected a string of letters, or None")
        self._set(k=int(self.k), m=int(self.m))

    def prepare(self, X: Array, like: Words | None = None) -> Words:
        texts = as_letters(X)
        if like is not None:
            alphabet = like.alphabet
        elif self.alphabet is not None:
            alphabet = letters_of(as_letters(np.array([self.alphabet], dtype=object)))
        else:
            alphabet = letters_of(texts)
        base = max(len(alphabet), 1)
        if _number_of_words(base + 1, self.k) >= _MAX_CODE:
            raise ParameterError(f"Mismatch: k={self.k} with {base} letters gives more words than can be numbered")
        ranked = texts.ranked(alphabet)
        ranked.letters[ranked.letters < 0] = base  # one more letter stands for all that the alphabet does not have
        codes, counts, indptr = _native.kernel.word_counts(ranked.letters, ranked.offsets, self.k, base + 1)
        distinct, column = np.unique(codes, return_inverse=True)
        digits = distinct[:, None] // (base + 1) ** np.arange(self.k - 1, -1, -1) % (base + 1)
        digits[digits == base] = -1
        near = sum(comb(self.k, j) * (base - 1) ** j for j in range(self.m + 1))
        what = f"{near:,} neighbours of each of {len(distinct):,} words"
        require_memory(24.0 * near * (len(distinct) + len(codes)), what, "take a smaller m or k")
        words, runs = _native.kernel.neighbour_words(digits.astype(np.int32).ravel(), self.k, base, self.m)
        reached, place = np.unique(words, return_inverse=True)
        spread = sp.csr_array((np.ones(len(words)), place, runs), shape=(len(distinct), len(reached)))
        counted = sp.csr_array((counts, column, indptr), shape=(len(X), len(distinct)))
        features = sp.csr_array(counted @ spread)
        features.sort_indices()
        squares = np.asarray(features.multiply(features).sum(axis=1)).ravel()
        return as_words(
            reached[features.indices], features.data, features.indptr.astype(np.int64), squares, alphabet, like
        )


@dataclass(frozen=True, repr=False)
class Subsequence(LeafKernel):
    r"""The gappy subsequence kernel of strings (Lodhi et al. 2002), by dynamic programming.

    .. math:: k(s, t) = \sum_{u} \; \sum_{i: s[i] = u} \; \sum_{j: t[j] = u} \lambda^{l(i) + l(j)}

    over all words u of `length` letters, all places i and j at which they occur in s and t with gaps, and the lengths
    l of the stretches they take. It costs `length` |s| |t| operations a pair.

    Parameters
    ----------
    length : int, default=3
        Letters of the words.
    decay : float, default=0.5
        The factor for each letter of a stretch, at most 1.
    bounds : mapping, "fixed" or None, default=None
        The interval of "decay" for a search; default (0.01, 1).

    Examples
    --------
    >>> from epicycle.kernel import Subsequence
    >>> float(Subsequence(2, decay=0.5)(["cat"], ["car"])[0, 0])  # only "ca", with 0.5 ** (2 + 2)
    0.0625
    """

    length: int = 3
    decay: float = 0.5
    bounds: Any = None

    takes = "strings"
    _searched: ClassVar[tuple[str, ...]] = ("decay",)
    _widest: ClassVar[dict[str, tuple[float, float]]] = {"decay": (0.01, 1.0)}
    _domains: ClassVar[Domains] = {
        "length": Integer(minimum=1),
        "decay": Real(minimum=0, maximum=1, inclusive=(False, True)),
    }

    def prepare(self, X: Array, like: Texts | Gapped | None = None) -> Texts | Gapped:
        texts = as_letters(X)
        own = letters_of(texts)
        if like is None:
            if not self._counts_words(texts, own):
                return texts
            alphabet = own
        elif isinstance(like, Gapped):
            alphabet = like.alphabet
        else:
            return texts
        values = self._words(texts, alphabet, slope=False)
        known = bool(np.isin(own, alphabet).all())  # otherwise there are words that the other rows cannot have
        squares = np.einsum("ij,ij->i", values, values) if known else self._pairs_diagonal(texts)
        return Gapped(values, squares, texts, alphabet)

    def _counts_words(self, texts: Texts, alphabet: Array) -> bool:
        """Whether a table of all words is cheaper than to compare all pairs of strings."""
        words, n = _number_of_words(len(alphabet), self.length), texts.n_rows
        letters = len(texts.letters) / n
        return 0 < words <= 16 * self.length * letters**2 and words * n <= _MAX_TABLE

    def _words(self, texts: Texts, alphabet: Array, *, slope: bool) -> Array:
        found = texts.ranked(alphabet)
        base = max(len(alphabet), 1)
        if base == 1 and self.length > int(np.diff(found.offsets).max(initial=0)):
            return np.zeros((found.n_rows, 1))  # no text has the only word
        return _native.kernel.gapped_words(found.letters, found.offsets, self.length, base, self.decay, slope)

    def block(self, A: Texts | Gapped, B: Texts | Gapped) -> Array:
        if isinstance(A, Gapped) and isinstance(B, Gapped):
            return np.ascontiguousarray(A.values @ B.values.T)
        return self._pairs(_texts(A), _texts(B), slope=False)

    def _pairs(self, A: Texts, B: Texts, *, slope: bool) -> Array:
        K = np.empty((A.n_rows, B.n_rows))
        for i in range(A.n_rows):  # a row at a time: an interrupt is heard in between
            own = A.take(slice(i, i + 1))
            K[i] = _native.kernel.subsequence_block(
                own.letters, own.offsets, B.letters, B.offsets, self.length, self.decay, slope
            )[0]
        return K

    def _pairs_diagonal(self, A: Texts) -> Array:
        rows = (A.take(slice(i, i + 1)) for i in range(A.n_rows))
        return np.array([self._pairs(row, row, slope=False)[0, 0] for row in rows])

    def prepared_diagonal(self, A: Texts | Gapped) -> Array:
        return A.squares if isinstance(A, Gapped) else self._pairs_diagonal(A)

    def _gradient(self, A: Texts | Gapped, name: str) -> Iterator[Array]:
        if isinstance(A, Gapped):
            half = self._words(A.texts, A.alphabet, slope=True) @ A.values.T
            yield self.decay * (half + half.T)
        else:
            yield self.decay * self._pairs(A, A, slope=True)

    def features(self, A: Texts | Gapped, B: Texts | Gapped) -> tuple[Any, Any]:
        """Weights of all words of the letters that occur."""
        first, second = _texts(A), _texts(B)
        alphabet = np.union1d(letters_of(first), letters_of(second))
        words = _number_of_words(len(alphabet), self.length) if len(alphabet) > 1 else 1.0
        n = first.n_rows + second.n_rows
        require_memory(
            8.0 * n * words, f"{words:,.0f} words with gaps of {len(alphabet)} letters", "use the kernel itself"
        )
        return self._words(first, alphabet, slope=False), self._words(second, alphabet, slope=False)


def _texts(A: Texts | Gapped) -> Texts:
    return A.texts if isinstance(A, Gapped) else A
