"""Strings as arrays: all letters in one, and the counts of their words as rows of a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.kernels._prepared import Prepared

_DENSE_SHARE = 1 / 12  # share of the products that are not zero from which a product of dense matrices is faster
_EXACT_FLOAT32 = 2**24  # whole numbers below this are exact in float32


@dataclass(frozen=True)
class Texts(Prepared):
    """Letters (code points) of all strings, and where each begins."""

    letters: np.ndarray
    offsets: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: Any) -> Texts:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_rows)
            if step == 1:
                first, last = self.offsets[start], self.offsets[max(start, stop)]
                return Texts(self.letters[first:last], self.offsets[start : max(start, stop) + 1] - first)
        chosen = np.arange(self.n_rows)[rows]
        parts = [self.letters[self.offsets[i] : self.offsets[i + 1]] for i in chosen]
        lengths = [len(part) for part in parts]
        return Texts(
            np.concatenate([*parts, self.letters[:0]]), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        )

    def ranked(self, alphabet: np.ndarray) -> Texts:
        """Letters as their places in a sorted alphabet, -1 for those that it does not have."""
        most = int(max(self.letters.max(initial=0), alphabet.max(initial=0)))
        table = np.full(most + 1, -1, dtype=np.int32)
        table[alphabet] = np.arange(len(alphabet), dtype=np.int32)
        return Texts(table[self.letters], self.offsets)


def as_letters(X: np.ndarray) -> Texts:
    """An array of str as letters."""
    texts = X.tolist()
    joined = "".join(texts)
    if joined.isascii():
        letters = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).astype(np.int32)
    else:
        letters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int32)
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return Texts(letters, offsets)


def letters_of(texts: Texts) -> np.ndarray:
    """The distinct letters, sorted."""
    return np.flatnonzero(np.bincount(texts.letters)) if len(texts.letters) else np.empty(0, np.int64)


@dataclass(frozen=True)
class Words(Prepared):
    """Counts of words: rows of a matrix whose columns are words, and their squared lengths.

    matrix : CSR, or dense where most words occur; float32 where that holds all products exactly.
    codes : the words of the columns as numbers, in ascending order.
    squares : |counts|^2 of every row, with the words that are no columns.
    by_name : the columns by name, where words are too many to be numbered.
    """

    matrix: Any
    squares: np.ndarray
    codes: np.ndarray
    alphabet: np.ndarray
    by_name: dict[str, int] | None = None

    @property
    def n_rows(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def tile(self) -> int:  # type: ignore[override]  # depends on the matrix
        return 1024 if sp.issparse(self.matrix) else 256  # columns of few rows are mostly overhead

    def take(self, rows: Any) -> Words:
        if isinstance(rows, slice) and rows.indices(self.n_rows) == (0, self.n_rows, 1):
            return self
        return Words(self.matrix[rows], self.squares[rows], self.codes, self.alphabet, self.by_name)

    @cached_property
    def columns(self) -> Any:
        """The counts by words, kept for the blocks of rows that come."""
        return self.matrix.tocsc()

    def features(self) -> Any:
        """The counts in float64."""
        return self.matrix.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Gapped(Prepared):
    """Weights of all words with gaps, dense; their squared lengths, the strings, and the alphabet of the words."""

    values: np.ndarray
    squares: np.ndarray
    texts: Texts
    alphabet: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.values)

    def take(self, rows: Any) -> Gapped:
        return Gapped(self.values[rows], self.squares[rows], self.texts.take(rows), self.alphabet)


def table_of_words(table: np.ndarray, squares: np.ndarray, alphabet: np.ndarray) -> Words:
    """Dense counts of all words that there are."""
    if float(squares.max(initial=0.0)) < _EXACT_FLOAT32:
        table = table.astype(np.float32)
    return Words(table, squares, np.arange(table.shape[1]), alphabet)


def as_words(
    codes: np.ndarray,
    counts: np.ndarray,
    indptr: np.ndarray,
    squares: np.ndarray,
    alphabet: np.ndarray,
    like: Words | None,
) -> Words:
    """Counts of numbered words, in columns of their own or in those of `like`, where other words are left out."""
    n = len(indptr) - 1
    if like is None:
        columns, places = distinct_codes(codes)
    else:
        columns = like.codes
        places = np.minimum(np.searchsorted(columns, codes), max(len(columns) - 1, 0))
        known = columns[places] == codes if len(columns) else np.zeros(len(codes), dtype=bool)
        kept = np.concatenate([[0], np.cumsum(known)])
        indptr, places, counts = kept[indptr], places[known], counts[known]
    matrix = sp.csr_array((counts, places.astype(np.int64), indptr.astype(np.int64)), shape=(n, len(columns)))
    return Words(matrix, squares, columns, alphabet)


def distinct_codes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct codes, and the place of each code among them; by a table where the codes are small numbers."""
    most = int(codes.max(initial=0)) + 1
    if most <= max(1 << 22, 4 * len(codes)):
        present = np.zeros(most, dtype=bool)
        present[codes] = True
        columns = np.flatnonzero(present)
        place = np.cumsum(present) - 1
        return columns, place[codes]
    columns, places = np.unique(codes, return_inverse=True)
    return columns, places


def product_of_words(A: Words, B: Words) -> np.ndarray:
    """The inner products of all rows, dense and in float64."""
    n, m, words = A.n_rows, B.n_rows, A.matrix.shape[1]
    if not (sp.issparse(A.matrix) or sp.issparse(B.matrix)):
        return np.ascontiguousarray(A.matrix @ B.matrix.T, dtype=np.float64)
    if float(A.matrix.nnz) * B.matrix.nnz > _DENSE_SHARE * (n * float(words)) * (m * float(words)):
        return np.ascontiguousarray(A.matrix.toarray() @ B.matrix.toarray().T)
    out = np.zeros((n, m))
    _native.kernel.sparse_product(*_wide_parts(A.matrix), *_wide_parts(B.columns), out)
    return out


def _wide_parts(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, indices and pointers of a compressed matrix, with 64 bits for an index."""
    return matrix.data, matrix.indices.astype(np.int64, copy=False), matrix.indptr.astype(np.int64, copy=False)
