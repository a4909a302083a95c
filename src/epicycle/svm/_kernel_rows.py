"""Kernel matrices for decomposition, within a budget of memory.

`WholeMatrix` has all of it in double precision. `CachedRows` has some rows in single precision, computed when they are
first needed in tiles that stay in the second-level cache, and gives up those that were not used for longest. Either can
say the scores K b in double precision, which is what a certificate is made of. Tiles are the same for any number of
threads, and so are the bits.

Of the pairs of classes each needs the block of its two classes once, but the block of a class with itself is part of
all its pairs: `PairMatrices` computes those once and keeps them where they fit, and all pairs together cost half of the
whole matrix. What is kept depends on sizes alone, never on the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.kernels._given import Entries
from epicycle.kernels._gram import block_rows, gram_matrix
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._prepared import Vectors
from epicycle.kernels._stationary import Gaussian

Array = np.ndarray
_TILE = 512  # columns of a tile
_ROWS_AT_ONCE = 512  # rows computed at a time
_CHEAP_COLUMNS = 400  # of X, up to which an entry is computed faster than it is fetched from memory
_SINGLE_ROUNDING = 6e-8  # of an entry in single precision: 2^-24
_LARGEST_SQUARE = 1e12  # |x|^2 beyond which single precision would not tell rows apart
_LAZY_ROWS = 512  # rows of a pair from which on few of them are expected to be needed
_BLOCK = 128  # rows computed at a time: they stay in the second-level cache while they are copied twice


class KernelRows(ABC):
    """Access to the kernel matrix of n rows."""

    n: int
    diagonal: Array
    #: Relative rounding of the entries.
    rounding: float

    @abstractmethod
    def square(self, rows: Array) -> Array:
        """The matrix of some of the rows against themselves."""

    @abstractmethod
    def subtract(self, rows: Array, coefficients: Array, v: Array) -> None:
        """v -= K[:, rows] coefficients, in place."""

    @abstractmethod
    def scores(self, b: Array) -> Array:
        """K b in double precision."""


class WholeMatrix(KernelRows):
    """The matrix itself."""

    rounding = 0.0

    def __init__(self, K: Array, n_jobs: int | None = None) -> None:
        self.K, self.n, self.n_jobs = K, len(K), n_jobs
        self.diagonal = np.ascontiguousarray(np.diagonal(K))

    def square(self, rows: Array) -> Array:
        if len(rows) == self.n and bool((np.diff(rows) == 1).all()):
            return self.K
        return np.ascontiguousarray(self.K[np.ix_(rows, rows)])

    def subtract(self, rows: Array, coefficients: Array, v: Array) -> None:
        _add_rows(self.K, rows, -coefficients, v, self.n_jobs)

    def scores(self, b: Array) -> Array:
        f = np.zeros(self.n)
        rows = np.flatnonzero(b)
        _add_rows(self.K, rows, b[rows], f, self.n_jobs)
        return f


class CachedRows(KernelRows):
    """Rows in single precision, as many as `nbytes` hold."""

    rounding = _SINGLE_ROUNDING

    def __init__(self, kernel: Kernel, prepared: Any, nbytes: float, n_jobs: int | None = None) -> None:
        self.kernel, self.prepared, self.n_jobs = kernel, prepared, n_jobs
        self.n = prepared.n_rows
        self.diagonal = np.ascontiguousarray(kernel.prepared_diagonal(prepared), dtype=np.float64)
        self.single = _single(kernel, prepared)
        # At least 16 rows, whatever the budget: fewer would be computed again in every round.
        slots = int(np.clip(nbytes / (4.0 * self.n), 16, self.n))
        self.K = np.empty((slots, self.n), dtype=np.float32)
        self.slot = np.full(self.n, -1, dtype=np.int64)
        self.owner = np.full(slots, -1, dtype=np.int64)
        self.used = np.zeros(slots, dtype=np.int64)
        self.clock = 0

    def square(self, rows: Array) -> Array:
        if self.single is not None and self.single.values.shape[1] <= _CHEAP_COLUMNS:
            return self.single.square(rows)  # sooner computed than gathered
        G = np.empty((len(rows), len(rows)), dtype=np.float32)
        slots = self.slot[rows]
        known = np.flatnonzero(slots >= 0)
        for i in known.tolist():
            np.take(self.K[slots[i]], rows, out=G[i])
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            part = self._tile(rows[missing], rows)
            G[missing] = part
            G[:, missing] = part.T
            own = part[:, missing]
            G[np.ix_(missing, missing)] = (own + own.T) / 2  # to the last bit
        return G

    def subtract(self, rows: Array, coefficients: Array, v: Array) -> None:
        slots = self.slot[rows]
        known = slots >= 0
        self.clock += 1
        self.used[slots[known]] = self.clock
        _add_rows(self.K, slots[known], -coefficients[known], v, self.n_jobs)
        missing = np.flatnonzero(~known)
        step = min(_ROWS_AT_ONCE, len(self.owner))
        for start in range(0, len(missing), step):
            part = missing[start : start + step]
            _add_rows(self.K, self._fill(rows[part]), -coefficients[part], v, self.n_jobs)

    def _fill(self, rows: Array) -> Array:
        """Compute rows into the places that were not used for longest; returns the places."""
        self.clock += 1
        places = np.argpartition(self.used, len(rows) - 1)[: len(rows)] if len(rows) < len(self.used) else None
        places = np.arange(len(rows)) if places is None else np.sort(places)
        # The rows that were held there are forgotten.
        gone = self.owner[places]
        self.slot[gone[gone >= 0]] = -1
        self.owner[places], self.slot[rows], self.used[places] = rows, places, self.clock

        def work(start: int) -> None:
            columns = slice(start, min(start + _TILE, self.n))
            if self.single is not None:
                self.single.tile(rows, columns, self.K, places)
            else:
                self.K[places, columns] = self._tile(rows, columns)

        starts = range(0, self.n, _TILE)
        in_order(starts, work, None, n_threads(50.0 * len(rows) * self.n, self.n_jobs))
        return places

    def _tile(self, rows: Array, columns: Any) -> Array:
        if self.single is not None:
            return self.single.tile(rows, columns)
        block = self.kernel.block(self.prepared.take(rows), self.prepared.take(columns))
        return block.astype(np.float32)

    def scores(self, b: Array) -> Array:
        support = np.flatnonzero(b)
        f = np.zeros(self.n)
        if not len(support):
            return f
        # In double precision, from the kernel itself: the certificate must not depend on the cache.
        B, c = self.prepared.take(support), b[support]
        rows = block_rows(len(support))

        def work(start: int) -> None:
            stop = min(start + rows, self.n)
            f[start:stop] = self.kernel.block(self.prepared.take(slice(start, stop)), B) @ c

        threads = n_threads(50.0 * len(support) * self.n, self.n_jobs)
        in_order(range(0, self.n, rows), work, None, threads)
        return f


class _SingleGaussian:
    """Tiles of a Gaussian kernel of dense rows in single precision: a product of matrices and a short exponential."""

    def __init__(self, prepared: Vectors) -> None:
        self.values = np.ascontiguousarray(prepared.values, dtype=np.float32)
        self.squares = np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64).astype(np.float32)

    def tile(self, rows: Array, columns: Any, K: Array | None = None, places: Array | None = None) -> Array:
        """Rows against columns; written to `places` of K instead where it is given."""
        A, B = self.values[rows], self.values[columns]
        G = A @ B.T
        first = columns.start if K is not None else 0
        _native.svm.gaussian_single(G, self.squares[rows], self.squares[columns], A, B, K, places, first)
        return np.asarray(G)

    def square(self, rows: Array) -> Array:
        """Rows against themselves, for half the cost."""
        A, squares = self.values[rows], self.squares[rows]
        G = A @ A.T
        _native.svm.gaussian_single(G, squares, squares, A, A)
        return np.asarray(G)


def _single(kernel: Kernel, prepared: Any) -> _SingleGaussian | None:
    if not isinstance(kernel, Gaussian) or sp.issparse(prepared.values):
        return None
    return _SingleGaussian(prepared) if float(prepared.squares.max()) < _LARGEST_SQUARE else None


def _has_single_precision(kernel: Kernel, prepared: Any) -> bool:
    """Whether entries in single precision come much cheaper than exact ones."""
    return isinstance(kernel, Gaussian) and isinstance(prepared, Vectors) and not sp.issparse(prepared.values)


def _add_rows(K: Array, rows: Array, coefficients: Array, out: Array, n_jobs: int | None) -> None:
    if not len(rows):
        return
    n = K.shape[1]
    rows, coefficients = np.ascontiguousarray(rows, dtype=np.int64), np.ascontiguousarray(coefficients)
    threads = n_threads(float(len(rows)) * n, n_jobs)
    step = 4096

    def work(start: int) -> None:
        _native.svm.add_rows(K, rows, coefficients, start, min(start + step, n), out)

    if threads <= 1:
        _native.svm.add_rows(K, rows, coefficients, 0, n, out)
    else:
        in_order(range(0, n, step), work, None, threads)


def kernel_rows(kernel: Kernel, prepared: Any, nbytes: float, n_jobs: int | None) -> KernelRows:
    """The whole matrix where it fits into `nbytes` (or is given), otherwise rows of it."""
    n = prepared.n_rows
    if isinstance(prepared, Entries) and prepared.matrix is not None and prepared.matrix.shape == (n, n):
        K = prepared.matrix
        if np.array_equal(prepared.column, np.arange(n)):
            same = all(np.array_equal(K[i : i + 256, :], K[:, i : i + 256].T) for i in range(0, n, 256))
            return WholeMatrix(np.ascontiguousarray(K) if same else (K + K.T) / 2, n_jobs)
    if 8.0 * n * n <= nbytes:
        return WholeMatrix(gram_matrix(kernel, prepared, np.dtype(np.float64), n_jobs), n_jobs)
    return CachedRows(kernel, prepared, nbytes, n_jobs)


class PairMatrices:
    """Kernel matrices of sets of rows.

    Parameters
    ----------
    kernel : Kernel
    prepared : the rows, prepared
    nbytes : float
        The budget.
    n_jobs : int, optional
    lazy : bool
        Whether pairs of classes may compute rows when they are needed, in single precision, where that is cheap: only
        rows that are or were support vectors are.
    """

    def __init__(self, kernel: Kernel, prepared: Any, nbytes: float, n_jobs: int | None, *, lazy: bool = False) -> None:
        self.kernel, self.prepared, self.nbytes, self.n_jobs = kernel, prepared, nbytes, n_jobs
        self.lazy = lazy and _has_single_precision(kernel, prepared)
        self._blocks: dict[int, Array] = {}

    def run_each(
        self, subsets: Sequence[Sequence[Array]], work: Callable[[int, KernelRows], Any], consume: Callable[[Any], None]
    ) -> None:
        """Call ``consume(work(k, matrix of the k-th subset))`` in the order of the subsets.

        Several are at work at a time where their matrices fit. A subset is made of parts, the same arrays in several
        of them.
        """
        n = self.prepared.n_rows
        sizes = [sum(len(part) for part in subset) for subset in subsets]
        if all(size == n for size in sizes):
            rows = kernel_rows(self.kernel, self.prepared, self.nbytes, self.n_jobs)
            threads = n_threads(np.inf, self.n_jobs) if isinstance(rows, WholeMatrix) and len(subsets) > 1 else 1
            in_order(range(len(subsets)), lambda k: work(k, rows), consume, min(threads, len(subsets)))
            return
        largest = 8.0 * max(sizes) ** 2
        if self.lazy and max(sizes) > _LAZY_ROWS and largest / 2 <= self.nbytes:
            # Room for all rows of a pair: none is ever given up, whatever runs beside it.
            def rows_of_pair(k: int) -> Any:
                part = self.prepared.take(np.concatenate(subsets[k]))
                return work(k, CachedRows(self.kernel, part, 4.0 * sizes[k] ** 2, self.n_jobs))

            self._run(len(subsets), rows_of_pair, consume, 2 * self.nbytes // largest)
            return
        if largest > self.nbytes:  # one at a time, with all of the budget and all threads inside
            for k, subset in enumerate(subsets):
                part = self.prepared.take(np.concatenate(subset))
                consume(work(k, kernel_rows(self.kernel, part, self.nbytes, self.n_jobs)))
            return
        parts = {id(part): part for subset in subsets for part in subset}
        own = sum(8.0 * len(part) ** 2 for part in parts.values())
        shared = own + largest <= self.nbytes
        left = self.nbytes - own if shared else self.nbytes
        if shared:
            self._blocks = {key: self._gram(part) for key, part in parts.items()}

        rooms: list[Array] = []  # one for each thread: fresh memory costs more than what is written there

        def one(k: int) -> Any:
            room = rooms.pop() if rooms else np.empty(max(sizes) ** 2)
            if shared:
                K = self._assembled(subsets[k], room[: sizes[k] ** 2].reshape(sizes[k], sizes[k]))
            else:
                K = self._gram(np.concatenate(subsets[k]))
            found = work(k, WholeMatrix(K))
            rooms.append(room)
            return found

        self._run(len(subsets), one, consume, left // largest)
        self._blocks = {}

    def _run(self, count: int, one: Callable[[int], Any], consume: Callable[[Any], None], at_once: float) -> None:
        threads = max(1, min(n_threads(np.inf, self.n_jobs), int(at_once), count))
        in_order(range(count), one, consume, threads)

    def _gram(self, rows: Array) -> Array:
        return gram_matrix(self.kernel, self.prepared.take(rows), np.dtype(np.float64), self.n_jobs)

    def _assembled(self, parts: Sequence[Array], K: Array) -> Array:
        """The matrix of several parts, from the blocks that are kept and those between them; written to K."""
        ends = np.cumsum([0, *(len(part) for part in parts)]).tolist()
        for i, part in enumerate(parts):
            mine = slice(ends[i], ends[i + 1])
            K[mine, mine] = self._blocks[id(part)]
            for j in range(i):
                other, B = slice(ends[j], ends[j + 1]), self.prepared.take(parts[j])
                for start in range(0, len(part), _BLOCK):
                    rows = part[start : start + _BLOCK]
                    block = self.kernel.block(self.prepared.take(rows), B)
                    at = slice(ends[i] + start, ends[i] + start + len(rows))
                    K[at, other] = block
                    K[other, at] = block.T
        return K
