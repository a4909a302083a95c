"""Where the problems of one machine have their kernel matrices from, within one budget of memory.

Of the pairs of classes each needs the block of its two classes once, but the block of a class with itself is part of
all its pairs: those are computed once and kept where they fit, and all pairs together cost half of the whole matrix.
What is kept depends on sizes alone, never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.kernels._gram import gram_matrix
from epicycle.kernels._kernel import Kernel
from epicycle.svm._kernel_rows import CachedRows, KernelRows, WholeMatrix, has_single_precision, kernel_rows

__all__ = ["Matrices"]

Array = np.ndarray
_DOUBLE = np.dtype(np.float64)
_MANY = 512  # rows of a pair from which on few of them are expected to be needed
_BLOCK = 128  # rows computed at a time: they stay in the second-level cache while they are copied twice


class Matrices:
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
        self.lazy = lazy and has_single_precision(kernel, prepared)
        self._all: KernelRows | None = None
        self._blocks: dict[int, Array] = {}

    def all_rows(self) -> KernelRows:
        """Of all rows, for all problems that have them."""
        if self._all is None:
            self._all = kernel_rows(self.kernel, self.prepared, self.nbytes, self.n_jobs)
        return self._all

    def run_each(
        self, subsets: Sequence[Sequence[Array]], work: Callable[[int, KernelRows], Any], consume: Callable[[Any], None]
    ) -> None:
        """``consume(work(k, matrix of the k-th subset))`` in the order of the subsets, several at a time where the
        matrices fit. A subset is made of parts, the same arrays in several of them."""
        n = self.prepared.n_rows
        sizes = [sum(len(part) for part in subset) for subset in subsets]
        if all(size == n for size in sizes):
            rows = self.all_rows()
            threads = n_threads(np.inf, self.n_jobs) if isinstance(rows, WholeMatrix) and len(subsets) > 1 else 1
            in_order(iter(range(len(subsets))), lambda k: work(k, rows), consume, min(threads, len(subsets)))
            return
        largest = 8.0 * max(sizes) ** 2
        if self.lazy and max(sizes) > _MANY and largest / 2 <= self.nbytes:
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
        in_order(iter(range(count)), one, consume, threads)

    def _gram(self, rows: Array) -> Array:
        return gram_matrix(self.kernel, self.prepared.take(rows), _DOUBLE, self.n_jobs)

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
