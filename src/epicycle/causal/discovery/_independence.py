"""Tests of conditional independence: partial correlations, or any function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice

import numpy as np
from scipy.special import ndtr, ndtri

from epicycle.core._exceptions import DataError

Array = np.ndarray
#: Tests after which a search gives up: dense graphs have sets without number.
MOST_TESTS = 20_000_000
Test = Callable[[int, int, tuple[int, ...]], float]


def _require_few(count: int) -> None:
    if count > MOST_TESTS:
        raise DataError(
            f"data: the graph is so dense that {MOST_TESTS:,} tests did not suffice; give max_size, a smaller alpha, "
            "or fewer columns"
        )


class GivenTest:
    """A function of (i, j, given) that returns a p-value."""

    def __init__(self, test: Test, alpha: float) -> None:
        self.test, self.alpha = test, alpha
        self.count = 0

    def independent(self, i: int, j: int, given: Sequence[int]) -> bool:
        """Whether independence is not rejected."""
        self.count += 1
        _require_few(self.count)
        return bool(self.test(i, j, tuple(given)) > self.alpha)

    def first_separator(self, i: int, j: int, candidates: Sequence[int], size: int) -> tuple[int, ...] | None:
        """The first set of this size among the candidates that makes i and j independent."""
        for given in combinations(candidates, size):
            if self.independent(i, j, given):
                return given
        return None


class PartialCorrelation:
    r"""Fisher's test: sqrt(n - |S| - 3) atanh(r) is standard normal where the partial correlation is zero.

    Sets are tried in growing batches, so that many take one factorisation of a stack of matrices and few are wasted
    where the first ones separate already.
    """

    def __init__(self, C: Array, n: int, alpha: float) -> None:
        self.C, self.n = C, n
        self.limit = float(ndtri(1 - alpha / 2))
        self.count = 0

    def statistics(self, i: int, j: int, given: Array) -> Array:
        """Absolute z of i and j for every row of `given`."""
        self.count += len(given)
        _require_few(self.count)
        size = given.shape[1]
        C = self.C
        if size == 0:
            r = np.full(len(given), C[i, j])
        elif size == 1:
            a, b = C[i, given[:, 0]], C[j, given[:, 0]]
            r = (C[i, j] - a * b) / np.sqrt(np.maximum((1 - a * a) * (1 - b * b), 1e-300))
        else:
            S = C[given[:, :, None], given[:, None, :]]
            both = np.stack([C[i][given], C[j][given]], axis=2)
            try:
                half = np.linalg.solve(S, both)
            except np.linalg.LinAlgError:  # a column that the others of a set determine adds nothing to it
                half = np.linalg.pinv(S, hermitian=True) @ both
            M = np.swapaxes(both, 1, 2) @ half
            r = (C[i, j] - M[:, 0, 1]) / np.sqrt(np.maximum((1 - M[:, 0, 0]) * (1 - M[:, 1, 1]), 1e-300))
        r = np.clip(np.abs(r), 0, 1 - 1e-15)
        return np.asarray(np.sqrt(max(self.n - size - 3, 0)) * np.arctanh(r))

    def p_value(self, i: int, j: int, given: Sequence[int]) -> float:
        """Probability of so large a partial correlation where there is none."""
        z = self.statistics(i, j, np.array([list(given)], dtype=np.int64).reshape(1, -1))[0]
        return float(2 * ndtr(-z))

    def independent(self, i: int, j: int, given: Sequence[int]) -> bool:
        """Whether independence is not rejected."""
        return bool(self.statistics(i, j, np.array([list(given)], dtype=np.int64).reshape(1, -1))[0] <= self.limit)

    def first_separator(self, i: int, j: int, candidates: Sequence[int], size: int) -> tuple[int, ...] | None:
        """The first set of this size among the candidates that makes i and j independent."""
        if size == 1:
            given = np.asarray(candidates, dtype=np.int64)[:, None]
            found = np.flatnonzero(self.statistics(i, j, given) <= self.limit)
            return (int(given[found[0], 0]),) if len(found) else None
        sets, batch = combinations(candidates, size), 32
        while chunk := list(islice(sets, batch)):
            given = np.array(chunk, dtype=np.int64).reshape(len(chunk), size)
            found = np.flatnonzero(self.statistics(i, j, given) <= self.limit)
            if len(found):
                return tuple(int(v) for v in given[found[0]])
            batch = min(4 * batch, 4096)
        return None


Independence = GivenTest | PartialCorrelation
