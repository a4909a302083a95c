"""Perceptrons in the space of a kernel, one for each class: their mistakes, and bounds on the margin.

A perceptron's w = sum_i c_i y_i phi(x_i), c >= 0, proves more than it was made for: a unit vector u with
y_i u'phi(x_i) >= m for all rows has  |w| >= u'w >= m sum_i c_i,  so no margin is larger than |w| / sum_i c_i. After M
mistakes on rows no longer than D that is at most D / sqrt(M).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from epicycle import _native

__all__ = ["KernelLearner", "MarginBounds"]


@dataclass(frozen=True)
class MarginBounds:
    """The largest margin there is lies between these; `lower` is 0 where nothing is known to separate."""

    lower: float
    upper: float


@dataclass
class KernelLearner:
    """One perceptron: coefficients, scores on the rows, |w|^2, and every mistake (row, share, time)."""

    sign: np.ndarray
    counts: np.ndarray
    scores: np.ndarray
    mercer: bool = True
    square: float = 0.0
    clean: bool = False
    rows: list[np.ndarray] = field(default_factory=list)
    shares: list[np.ndarray] = field(default_factory=list)
    times: list[np.ndarray] = field(default_factory=list)

    def show(self, K: np.ndarray, order: np.ndarray, share: np.ndarray | None, began: float) -> float:
        """One pass over the rows in this order, from time `began`; gives the weight of the mistakes."""
        at, self.square = _native.kernel.perceptron_pass(
            K, order, share, 0, self.sign, self.scores, self.counts, self.square
        )
        shares = np.ones(len(at)) if share is None else share[at]
        times = at.astype(np.float64) if share is None else np.cumsum(share)[at] - shares
        self.rows.append(order[at])
        self.shares.append(shares)
        self.times.append(began + times)
        self.clean = len(at) == 0
        return float(shares.sum())

    @property
    def margin_above(self) -> float:
        """No margin is larger."""
        total = float(self.counts.sum()) if self.mercer else 0.0
        return float(np.sqrt(max(self.square, 0.0))) / total if total > 0 else np.inf

    def sequence(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, shares and times of all mistakes, in order."""
        empty = np.empty(0)
        return (
            np.concatenate([*self.rows, empty.astype(np.int64)]),
            np.concatenate([*self.shares, empty]),
            np.concatenate([*self.times, empty]),
        )

    def settle(self, K: np.ndarray) -> None:
        """Scores and |w|^2 again from the coefficients, without the rounding of many steps."""
        w = self.counts * self.sign
        self.scores = K @ w
        self.square = float(w @ self.scores)
        self.clean = self.clean and bool((self.sign * self.scores > 0).all())

    def bounds(self, K: np.ndarray, passes: int, want: float = 1e-3) -> MarginBounds:
        """Bounds on the largest margin, closer by coordinate ascent on its dual from the coefficients at hand."""
        if not self.mercer:
            return MarginBounds(0.0, np.inf)
        a, scores, square = self.counts.copy(), self.scores.copy(), self.square
        rounding = 4 * np.finfo(np.float64).eps * len(K) * float(np.abs(np.diagonal(K)).max())
        lower, upper = 0.0, np.inf
        least = float((self.sign * scores).min())
        if least > 0:  # to the scale at which the least functional margin is one
            a, scores, square = a / least, scores / least, square / least**2
        for number in range(passes + 1):
            norm, total = float(np.sqrt(max(square, 0.0))), float(a.sum())
            if norm > 0:
                lower = max(lower, float((self.sign * scores).min()) / norm - rounding / norm * total)
            if total > 0:
                upper = min(upper, norm / total)
            if lower > 0 and upper - lower <= want * lower:
                break
            if number < passes:
                square = _native.kernel.margin_pass(K, self.sign, scores, a, square)
        return MarginBounds(max(lower, 0.0), max(upper, lower))
