"""Stumps, trees with one split: the search for the best one, and many of them as arrays.

Columns are sorted once; a search then is one pass along every sorted column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.tree._binning import MISSING
from epicycle.tree._ensemble import Ensemble, empty_ensemble, n_trees
from epicycle.tree._nodes import LEAF, MISSING_LEFT
from epicycle.tree.cart._classifier import DecisionTreeClassifier
from epicycle.tree.cart._tree import Tree

# An entry of a sorted column is a row number; the highest bit marks the last row of a number, behind which a threshold
# fits.
_LAST_OF_NUMBER = np.uint32(1 << 31)
_ROW = np.uint32((1 << 31) - 1)


@dataclass(frozen=True)
class Stump:
    """x[feature] <= threshold goes left, and so do missing numbers where `missing_left`."""

    feature: int
    threshold: float
    missing_left: bool

    def right(self, X: np.ndarray | sp.csc_array) -> np.ndarray:
        """Mask of the rows that go right."""
        x = column(X, self.feature).astype(np.float64, copy=False)  # thresholds lie between two numbers of X
        return x > self.threshold if self.missing_left else ~(x <= self.threshold)

    @property
    def splits(self) -> bool:
        """Whether anything can go right."""
        return not (self.threshold == np.inf and self.missing_left)


def column(X: Any, j: int) -> np.ndarray:
    """One column as a dense vector."""
    if not sp.issparse(X):
        return np.asarray(X[:, j])
    x = np.zeros(X.shape[0], X.dtype)
    part = slice(X.indptr[j], X.indptr[j + 1])
    x[X.indices[part]] = X.data[part]
    return x


class SortedColumns:
    """Every column as the list of its rows in ascending order; of a sparse column those that it stores."""

    def __init__(self, X: Any, n_jobs: int | None) -> None:
        if X.shape[0] > int(_ROW):
            raise DataError(f"X: {X.shape[0]} rows; stumps are searched among at most {int(_ROW)}")
        self.X, self.n_jobs = X, n_jobs
        sorted_columns: list[tuple[np.ndarray, int, int]] = []
        threads = n_threads(float(X.shape[0]) * X.shape[1] * 20, n_jobs)
        in_order(range(X.shape[1]), self._sorted, sorted_columns.append, threads)
        entries, zeros, missing = zip(*sorted_columns, strict=True)
        self.entries = np.concatenate(entries)
        self.begin = np.concatenate([[0], np.cumsum([len(e) for e in entries])]).astype(np.int64)
        self.zeros, self.missing = np.array(zeros, np.int64), np.array(missing, np.int64)
        self.threads = n_threads(float(len(self.entries)), n_jobs)
        self.packed = np.empty(X.shape[0], np.int64)
        if not sp.issparse(X):
            self._bin()

    def _bin(self) -> None:
        """Bins of neighbours in every column, at most 255, equal numbers in one; bin 255 for missing numbers."""
        n, p = self.X.shape
        self.rows = np.empty((n, p), np.uint8)
        self.bin_end, self.n_bins = np.zeros((p, 256), np.int64), np.zeros(p, np.int32)

        def work(j: int) -> None:
            entries = self.entries[self.begin[j] : self.begin[j + 1]]
            numbers = n - int(self.missing[j])
            ends = np.append(np.flatnonzero(entries[: max(numbers - 1, 0)] & _LAST_OF_NUMBER) + 1, numbers)
            if len(ends) > MISSING:  # those nearest to equal shares
                wanted = np.arange(1, MISSING + 1) * (numbers / MISSING)
                ends = np.unique(ends[np.minimum(np.searchsorted(ends, wanted), len(ends) - 1)])
            ends = ends[ends > 0]
            sizes = np.diff(ends, prepend=0)
            bins = np.full(n, MISSING, np.uint8)
            bins[: sizes.sum()] = np.repeat(np.arange(len(ends), dtype=np.uint8), sizes)
            self.rows[entries & _ROW, j] = bins
            self.bin_end[j, : len(ends)] = ends
            self.n_bins[j] = len(ends)

        in_order(range(p), work, None, n_threads(20.0 * n * p, self.n_jobs))

    def _sorted(self, j: int) -> tuple[np.ndarray, int, int]:
        X = self.X
        if sp.issparse(X):
            part = slice(X.indptr[j], X.indptr[j + 1])
            x, rows = np.asarray(X.data)[part], np.asarray(X.indices)[part]
            stored = x != 0
            x, rows = x[stored], rows[stored]
        else:
            x, rows = np.ascontiguousarray(X[:, j]), None
        order = np.argsort(x, kind="stable")  # NaN last
        x = x[order]
        entries = (order if rows is None else rows[order]).astype(np.uint32)
        missing = int(np.count_nonzero(np.isnan(x)))
        numbers = len(x) - missing
        last = np.zeros(len(x), bool)
        last[: numbers - 1] = x[: numbers - 1] != x[1:numbers] if numbers > 1 else False
        zeros = -1
        if rows is not None and len(x) < X.shape[0]:
            zeros = int(np.searchsorted(x[:numbers], 0.0))
            if zeros > 0:
                last[zeros - 1] = True
        if missing and numbers:
            last[numbers - 1] = True
        entries[last] |= _LAST_OF_NUMBER
        return entries, zeros, missing

    def best(self, weight: np.ndarray, code: np.ndarray | None, n_classes: int, *, confidence: bool) -> Stump:
        """The best stump for weights: signed ones for two classes, or with the codes of more classes."""
        if not len(self.entries):  # a sparse matrix of zeros: nothing can go right
            return Stump(0, np.inf, True)
        if code is None and not sp.issparse(self.X):
            found = _native.tree.best_binned_stump(
                self.entries, self.begin, self.missing, self.rows, self.bin_end, self.n_bins, weight, confidence,
                self.packed, self.threads,
            )  # fmt: skip
        else:
            found = _native.tree.best_stump(
                self.entries, self.begin, self.zeros, self.missing, weight, code, n_classes, confidence, self.threads
            )
        j, at, after_zeros, missing_left = found
        return Stump(j, self._threshold(j, at, after_zeros=after_zeros), missing_left)

    def _threshold(self, j: int, at: int, *, after_zeros: bool) -> float:
        """A number between the entry `at` of column j, or its zeros, and what comes next."""
        begin, numbers = int(self.begin[j]), int(self.begin[j + 1] - self.missing[j])
        zeros = -1 if self.zeros[j] < 0 else begin + int(self.zeros[j])
        below = 0.0 if after_zeros else self._value(at, j)
        if not after_zeros and at + 1 == zeros:
            above = 0.0
        elif at + 1 < numbers:
            above = self._value(at + 1, j)
        else:
            return np.inf
        middle = below / 2 + above / 2
        return float(middle) if below <= middle < above else float(below)

    def _value(self, entry: int, j: int) -> float:
        row = int(self.entries[entry] & _ROW)
        return float(self.X[row, j])


def stump_ensemble(members: list[tuple[Stump, tuple[int, int], np.ndarray]]) -> Ensemble:
    """An ensemble with a tree for every member and output.

    A member is its stump, the numbers of training rows on both sides, and the values (2, K) of the sides.
    """
    parts = {name: [array] for name, array in empty_ensemble().items()}
    for stump, (n_left, n_right), values in members:
        size = 3 if stump.splits else 1
        meta = np.arange(size, dtype=np.uint64) | np.uint64((LEAF | MISSING_LEFT) << 56)
        words = np.column_stack([np.full(size, np.inf).view(np.uint64), meta])
        counts, leaves = np.array([n_left]), values[:1]
        if stump.splits:
            flags = MISSING_LEFT if stump.missing_left else 0
            words[0, 0] = np.float64(stump.threshold).view(np.uint64)
            words[0, 1] = np.uint64(1 | stump.feature << 32 | flags << 56)
            counts, leaves = np.array([n_left + n_right, n_left, n_right]), np.vstack([0 * values[:1], values])
        for k in range(values.shape[1]):
            parts["nodes"].append(words)
            parts["values"].append(leaves[:, k])
            parts["roots"].append(parts["roots"][-1][-1:] + size)
            parts["gain"].append(np.zeros(size))
            parts["cover"].append(counts.astype(np.float64))
            parts["count"].append(counts)
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def stumps_as_trees(trees: Ensemble, classes: np.ndarray, n_features: int) -> list[DecisionTreeClassifier]:
    """Each stump as a fitted tree; a side has the shares 0 and 1 of the classes that it votes for."""
    m, out = len(classes), []
    K = 1 if m == 2 else m
    for t in range(0, n_trees(trees), K):
        rows = slice(int(trees["roots"][t]), int(trees["roots"][t + 1]))
        size = rows.stop - rows.start
        votes = np.stack([trees["values"][rows.start + k * size : rows.stop + k * size] for k in range(K)], axis=1)
        votes = np.hstack([-votes, votes]) if K == 1 else votes
        count, shares = trees["count"][rows], np.eye(m)[votes.argmax(axis=1)]
        model = DecisionTreeClassifier(max_depth=1, random_state=t // K)
        model.tree_ = Tree(
            trees["nodes"][rows],
            trees["levels"],
            shares,
            np.full(size, np.nan),
            count,
            count.astype(np.float64),
            n_features,
            np.array([m]),
        )
        model.classes_, model.n_features_in_ = classes, n_features
        model.categories_, model._from_frame_ = {}, False
        out.append(model)
    return out
