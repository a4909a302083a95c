"""Out-of-bag errors of bagging: averages over the members that did not draw a row, and their decomposition."""

from __future__ import annotations

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.ensemble._base import greedy

#: Entries of `oob_decomposition_`.
DECOMPOSITION = ("error", "low", "high", "squared", "members", "ambiguity")


class OutOfBagSums:
    """Sums over the members that did not draw a row.

    Parameters
    ----------
    truth : ndarray of shape (n, K)
        What the averages would best be.
    """

    def __init__(self, truth: np.ndarray) -> None:
        n = len(truth)
        self.truth, self.total = truth, np.zeros(truth.shape)
        self.count, self.squares, self.errors = np.zeros(n), np.zeros(n), np.zeros(n)

    def add(self, member: tuple[np.ndarray, np.ndarray]) -> None:
        """Add a member: the rows that it did not draw, and its answers for them."""
        rows, answer = member
        self.total[rows] += answer
        self.count[rows] += 1
        self.squares[rows] += (answer**2).sum(axis=1)
        self.errors[rows] += ((answer - self.truth[rows]) ** 2).sum(axis=1)

    @property
    def known(self) -> np.ndarray:
        """Mask of the rows that a member did not draw."""
        return self.count > 0

    @property
    def average(self) -> np.ndarray:
        """Average answers; NaN for rows that all members drew."""
        return np.asarray(self.total / np.where(self.known, self.count, np.nan)[:, None])

    def decomposition(self) -> tuple[float, float, float]:
        """(mean squared error of the averages, that of the members, the spread of the members around the averages)."""
        k, f, truth = self.count[self.known], self.average[self.known], self.truth[self.known]
        squared = ((f - truth) ** 2).sum(axis=1)
        spread = self.squares[self.known] / k - (f**2).sum(axis=1)
        return float(np.mean(squared)), float(np.mean(self.errors[self.known] / k)), float(np.mean(spread))


def oob_certificate(found: dict[str, float] | None) -> Certificate:
    """No optimality is claimed; the value is the out-of-bag error, where there is one."""
    if found is None:
        return greedy("bagging optimises nothing; oob_score=True estimates its error on new rows")
    if not np.isfinite(found["error"]):
        return greedy("bagging optimises nothing, and every member drew every row: no error can be estimated")
    claim = (
        f"bagging optimises nothing; its out-of-bag error is {found['error']:.4g} (95% interval {found['low']:.4g} "
        f"to {found['high']:.4g}), and averaging takes {found['ambiguity']:.4g} off the members' mean squared "
        f"error of {found['members']:.4g}"
    )
    return Certificate("none", found["error"], found["high"], claim)
