"""Separation of the rows: bounds on the largest margin from both sides.

With z_i = y_i (x_i, 1) (or y_i x_i without an intercept) the largest margin is

    gamma = max_{|u| = 1} min_i u'z_i = min { |sum_i a_i z_i| : a_i >= 0, sum_i a_i = 1 }        (or <= 0).

Every w gives a lower bound, min_i w'z_i / |w|, and every a an upper one, |sum a_i z_i| / sum a_i. The perceptron's own
weights are such a sum: a_i counts the mistakes on row i. In few dimensions the nearest point of the polytope to the
origin is found exactly (Wolfe 1976); in many, coordinate ascent on a brings the two bounds together. Where the rows are
not separable both drive the upper bound to zero, which proves it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.data import Matrix
from epicycle.linear.online._epochs import Epoch, StoppingRule
from epicycle.linear.online._learner import Presentations, Rule, State, row_squares

#: Passes over the rows at most, and multiply-adds that are always allowed.
MAX_PASSES, FREE_WORK = 2000, 1e9
#: Features up to which the nearest point is computed: it solves systems of that size.
MAX_FEATURES_EXACT = 500
#: A margin that is certainly none, relative to the radius.
NO_MARGIN = 1e-9
_BLOCK = 1 << 16  # rows


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


class _Signed:
    """The rows z_i with a sign that is not zero."""

    def __init__(self, X: Matrix, sign: np.ndarray, square: np.ndarray, intercept: bool) -> None:
        self.X, self.sign, self.square, self.intercept = X, sign, square, intercept
        self.counted = np.flatnonzero(sign)
        self.radius = float(np.sqrt(square[self.counted].max(initial=0.0)))
        # |w| times this bounds the rounding of a score w'z.
        self.rounding = (X.shape[1] + 2) * np.finfo(np.float64).eps * self.radius

    def scores(self, w: np.ndarray) -> np.ndarray:
        """w'z_i for the rows that count; inf for the others."""
        out = np.full(len(self.sign), np.inf)
        for start in range(0, len(out), _BLOCK):  # float32 rows become float64 block by block
            rows = slice(start, start + _BLOCK)
            out[rows] = np.asarray(self.X[rows] @ w[:-1], dtype=np.float64) + (w[-1] if self.intercept else 0.0)
        return np.where(self.sign == 0, np.inf, self.sign * out)

    def take(self, rows: list[int]) -> np.ndarray:
        """z_i for a few rows, dense, of shape (k, p + 1)."""
        part = self.X[rows]
        dense = part.toarray() if sp.issparse(part) else part
        ones = np.full((len(rows), 1), 1.0 if self.intercept else 0.0)
        return np.asarray(np.hstack([dense.astype(np.float64), ones]) * self.sign[rows][:, None])


class _Bounds:
    """The best bounds so far."""

    def __init__(self, rows: _Signed, tol: float, want: float) -> None:
        self.rows, self.tol, self.want = rows, tol, want
        self.lower, self.upper = 0.0, np.inf

    def see(self, w: np.ndarray, total: float) -> int:
        """Take the bounds that w = sum_i a_i z_i, sum_i a_i = total, gives; the row of the smallest score."""
        norm = float(np.linalg.norm(w))
        scores = self.rows.scores(w)
        last = int(scores.argmin())
        if norm > 0:
            self.lower = max(self.lower, float(scores[last]) / norm - self.rows.rounding)
        if total > 0:
            self.upper = max(min(self.upper, norm / total), self.lower)
        return last

    @property
    def enough(self) -> bool:
        if self.lower > 0:
            return self.upper - self.lower <= self.want * self.lower
        return self.upper <= self.tol * self.rows.radius

    def margin(self) -> Margin:
        return Margin(self.lower, self.upper, self.rows.radius)


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
    w : (p + 1,), sum_i a_i z_i; the last is the intercept, 0 without one.
    tol : enough for the upper bound, relative to the radius, where nothing separates.
    passes : passes that may be made even where they are expensive.
    want : relative distance of the bounds that is close enough, where something does.
    """
    rows = _Signed(X, sign, square, intercept)
    bounds = _Bounds(rows, tol, want)
    entries = X.nnz if sp.issparse(X) else X.shape[0] * X.shape[1]
    passes = int(min(MAX_PASSES, max(20, passes, FREE_WORK / max(entries, 1))))
    bounds.see(w, float(counts.sum()))
    if X.shape[1] <= MAX_FEATURES_EXACT:
        bounds.tol = min(tol, NO_MARGIN)  # finitely many steps: they may go on until hardly a margin is left
        if not bounds.enough:
            _nearest_point(rows, bounds, min(passes, 20 * (X.shape[1] + 5)))
        bounds.tol = tol
    if not bounds.enough:
        _ascend(rows, bounds, counts.astype(np.float64), w.astype(np.float64), passes)
    return bounds.margin()


def _nearest_point(rows: _Signed, bounds: _Bounds, passes: int) -> None:
    """Wolfe's method: the nearest point of the hull of a few rows, to which the row furthest behind it is added."""
    chosen = [int(np.where(rows.sign == 0, np.inf, rows.square).argmin())]
    share = np.ones(1)
    for _ in range(passes):
        Z = rows.take(chosen)
        w = share @ Z
        last = bounds.see(w, 1.0)
        if bounds.enough or last in chosen:
            return
        chosen.append(last)
        share = np.append(share, 0.0)
        Z = rows.take(chosen)
        while True:
            G = Z @ Z.T + rows.radius**2  # the nearest point of their affine hull
            best = np.linalg.lstsq(G, np.ones(len(G)), rcond=None)[0]
            if not (best.sum() > 0 and np.isfinite(best).all()):
                return
            best /= best.sum()
            if (best > 1e-12).all():
                share = best
                break
            falling = best <= 1e-12  # outside their hull: only as far as its border
            ratio = share[falling] / np.maximum(share[falling] - best[falling], 1e-300)
            share = share + min(1.0, float(ratio.min())) * (best - share)
            keep = share > 1e-12
            keep[int(np.argmax(share))] = True
            if keep.all():
                keep[int(np.flatnonzero(falling)[ratio.argmin()])] = False
            chosen = [row for row, kept in zip(chosen, keep, strict=True) if kept]
            share, Z = share[keep] / share[keep].sum(), Z[keep]


def _ascend(rows: _Signed, bounds: _Bounds, a: np.ndarray, w: np.ndarray, passes: int) -> None:
    """Coordinate ascent on the dual of the largest margin, from the mistakes of the perceptron."""
    scores = rows.scores(w)
    if scores.min() > 0:  # to the scale at which the smallest functional margin is one
        a, w = a / scores.min(), w / scores.min()
    done, step = 0, 1
    while done < passes and not bounds.enough:
        for _ in range(step):
            _pass(rows, a, w)
        done += step
        step = min(step + 1, 10)
        bounds.see(w, float(a.sum()))


def _pass(rows: _Signed, a: np.ndarray, w: np.ndarray) -> None:
    X = rows.X
    _native.online.margin_pass(X, rows.sign, rows.square, rows.intercept, a, w)


# --------------------------------------------------------------------------------------------------------------------
# When the perceptron may stop: it has separated the rows, or it is shown that nothing can.


class Separation(StoppingRule):
    """Stop after a pass without a mistake. Where passes stop to improve, ask whether the rows are separable at all.

    Parameters
    ----------
    rows : Presentations
        For rows from files separability is not decided: there the passes end when they stop to improve.
    positive : ndarray of shape (K,)
    dual : ndarray of shape (n, K), or None
        The derivatives that the learner adds up: minus the sign of a row times the mistakes on it.
    tol : float or None
        A pass improves if its mistakes, as a share of the rows, fall by more than this; None never asks.
    patience : int
        Passes without improvement before separability is decided.
    from_zero : bool
        Whether the weights are the sum of the mistakes of this fit.
    otherwise : StoppingRule, optional
        Decides in place of all this; separation is then only monitored.
    """

    def __init__(
        self,
        rows: Presentations,
        positive: Any,
        dual: np.ndarray | None,
        *,
        rule: Rule,
        tol: float | None,
        patience: int,
        from_zero: bool,
        otherwise: StoppingRule | None = None,
    ) -> None:
        super().__init__()
        self.rows, self.positive, self.dual, self.rule = rows, positive, dual, rule
        self.tol, self.patience, self.from_zero, self.otherwise = tol, patience, from_zero, otherwise
        self.memory = {"best": math.inf, "stale": 0.0, "asked": 0.0} if otherwise is None else otherwise.memory
        self.clean = np.zeros(len(positive), dtype=bool)
        self._squares: np.ndarray | None = None

    @property
    def resolution(self) -> float:
        """Margins below this share of the radius count as none."""
        return 1e-3 if self.tol is None else max(self.tol, 1e-9)

    def stops(self, epoch: Epoch, state: State) -> bool:
        self.clean = epoch.mistakes == 0
        if self.otherwise is not None:
            return self.otherwise.stops(epoch, state)
        if self.clean.all():
            return True
        if self.tol is None:
            return False
        memory = self.memory
        share = float(epoch.mistakes.sum()) / max(epoch.total, 1e-300)
        memory["stale"] = memory["stale"] + 1 if share > memory["best"] - self.tol else 0.0
        memory["best"] = min(memory["best"], share)
        if memory["stale"] < self.patience:
            return False
        if self.dual is None:
            return True
        memory["stale"] = 0.0
        if memory["asked"]:  # something separates them: the bound says that the mistakes will end
            return False
        memory["asked"] = 1.0
        unclear = np.flatnonzero(~self.clean)
        return all(self.margin(state, int(k), epoch.number).inseparable(self.resolution) for k in unclear)

    def margin(self, state: State, k: int, epochs: int) -> Margin:
        """Bounds on the largest margin of model k."""
        memory: Any = self.rows.memory  # asked for data in memory alone, as the dual is
        dual: Any = self.dual
        X, y, intercept = memory.X, memory.y, self.rule.intercept
        if self._squares is None:
            self._squares = row_squares(X) + (1.0 if intercept else 0.0)
        shown = np.zeros(len(y), dtype=bool)
        shown[slice(None) if memory.order is None else memory.order] = True
        sign = np.where(y == self.positive[k], 1.0, -1.0) * shown
        w = np.append(state["v"][:, k], state["b"][k] if intercept else 0.0) / self.rule.eta0
        counts = np.maximum(-sign * dual[:, k], 0.0)
        if not self.from_zero:  # w is not the sum of these mistakes alone
            w, counts = np.zeros_like(w), np.zeros_like(counts)
        return bracket(X, sign, self._squares, counts, w, intercept=intercept, tol=self.resolution, passes=2 * epochs)
