"""How well can the rows be separated? Bounds on the largest margin from both sides.

With z_i = y_i (x_i, 1) (or y_i x_i without an intercept) the largest margin is

    gamma = max_{|u| = 1} min_i u'z_i = min { |sum_i a_i z_i| : a_i >= 0, sum_i a_i = 1 }        (or <= 0).

Every w gives a lower bound, min_i w'z_i / |w|, and every a an upper one, |sum a_i z_i| / sum a_i. The perceptron's own
weights are such a sum: a_i counts the mistakes on row i. Coordinate ascent on a brings the two together where the rows
are separable, and where they are not it drives the upper bound to zero, which proves that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.data import Matrix

__all__ = ["Margin", "bracket", "own_margin"]

#: Passes over the rows at most, and multiply-adds that are always allowed.
PASSES, WORK = 2000, 1e9


@dataclass(frozen=True)
class Margin:
    """lower <= gamma <= upper, for rows of length `radius` at most (the intercept's 1 among the features)."""

    lower: float
    upper: float
    radius: float

    @property
    def separable(self) -> bool:
        return self.lower > 0

    def inseparable(self, tol: float) -> bool:
        """Whether no hyperplane has a margin above `tol` times the radius."""
        return not self.separable and self.upper <= tol * self.radius


def own_margin(X: Matrix, sign: np.ndarray, w: np.ndarray, intercept: bool) -> float:
    """min_i z_i'w / |w| over the rows with a sign that is not zero; -inf for w = 0."""
    norm = float(np.linalg.norm(w if intercept else w[:-1]))
    if norm == 0:
        return -np.inf
    scores = (np.asarray(X @ w[:-1], dtype=np.float64) + (w[-1] if intercept else 0.0)) * sign
    return float(scores[sign != 0].min(initial=np.inf)) / norm


def bracket(
    X: Matrix,
    sign: np.ndarray,
    square: np.ndarray,
    counts: np.ndarray,
    w: np.ndarray,
    *,
    intercept: bool,
    tol: float,
    passes: int = 20,
    want: float = 1e-3,
) -> Margin:
    """Bounds on the largest margin.

    Parameters
    ----------
    X : rows.
    sign : (n,), -1, 1, or 0 for rows that do not count.
    square : (n,), |x_i|^2, plus one with an intercept.
    counts : (n,), the a_i >= 0 that w is made of.
    w : (p + 1,), sum_i a_i z_i; the last is the intercept.
    tol : enough for the upper bound, relative to the radius, where nothing separates.
    passes : passes that may be made even where they are expensive.
    want : relative distance of the bounds that is close enough, where something does.
    """
    radius = float(np.sqrt(square[sign != 0].max(initial=0.0)))
    entries = X.nnz if sp.issparse(X) else X.shape[0] * X.shape[1]
    passes = int(min(PASSES, max(20, passes, WORK / max(entries, 1))))
    rounding = (X.shape[1] + 2) * np.finfo(np.float64).eps * radius
    a, w = counts.astype(np.float64), w.astype(np.float64)
    lower, upper = 0.0, np.inf
    done, step = 0, 1
    while True:
        low = own_margin(X, sign, w, intercept)
        lower = max(lower, low - rounding)
        if a.sum() > 0:
            upper = min(upper, float(np.linalg.norm(w if intercept else w[:-1])) / float(a.sum()))
        upper = max(upper, lower)  # equal up to rounding
        if (lower > 0 and upper - lower <= want * lower) or (lower == 0 and upper <= tol * radius) or done >= passes:
            return Margin(lower, upper, radius)
        if done == 0 and low > rounding:  # to the scale at which the smallest functional margin is one
            least = low * float(np.linalg.norm(w if intercept else w[:-1]))
            a, w = a / least, w / least
        for _ in range(step):
            _pass(X, sign, square, intercept, a, w)
        done += step
        step = min(step + 1, 10)


def _pass(X: Matrix, sign: np.ndarray, square: np.ndarray, intercept: bool, a: np.ndarray, w: np.ndarray) -> None:
    if sp.issparse(X):
        _native.csr_margin_pass(X.data, X.indices, X.indptr, X.shape[1], sign, square, intercept, a, w)
    else:
        _native.margin_pass(X, sign, square, intercept, a, w)
