"""When the perceptron may stop: it has separated the rows, or it is shown that nothing can."""

from __future__ import annotations

import math

import numpy as np

from epicycle.linear.online._epochs import Epoch, StoppingRule
from epicycle.linear.online._learner import State
from epicycle.linear.online._margin import Margin, bracket
from epicycle.linear.online._row_order import Presentations, row_squares

__all__ = ["Separation"]


class Separation(StoppingRule):
    """Stop after a pass without a mistake. Where passes stop to improve, ask whether the rows are separable at all.

    Parameters
    ----------
    rows : Presentations
        For rows from files nothing can be asked: there the passes end when they stop to improve.
    positive : ndarray of shape (K,)
    dual : ndarray of shape (n, K), or None
        The derivatives that the learner adds up: minus the sign of a row times the mistakes on it.
    tol : float or None
        A pass improves if its mistakes, as a share of the rows, fall by more than this; None never asks.
    patience : int
        Passes without improvement before the question is asked.
    """

    def __init__(
        self,
        rows: Presentations,
        positive: np.ndarray,
        dual: np.ndarray | None,
        *,
        tol: float | None,
        patience: int,
        intercept: bool,
        from_zero: bool,
    ) -> None:
        super().__init__()
        self.rows, self.positive, self.dual, self.intercept = rows, positive, dual, intercept
        self.tol, self.patience, self.from_zero = tol, patience, from_zero
        self.memory = {"best": math.inf, "stale": 0.0, "asked": 0.0}
        self.clean = np.zeros(len(positive), dtype=bool)
        self._squares: np.ndarray | None = None

    @property
    def resolution(self) -> float:
        """Margins below this share of the radius count as none."""
        return 1e-3 if self.tol is None else max(self.tol, 1e-9)

    def stops(self, epoch: Epoch, state: State) -> bool:
        self.clean = epoch.mistakes == 0
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
        X, y = self.rows.memory.X, self.rows.memory.y
        if self._squares is None:
            self._squares = row_squares(X) + (1.0 if self.intercept else 0.0)
        shown = np.zeros(len(y), dtype=bool)
        shown[slice(None) if self.rows.memory.order is None else self.rows.memory.order] = True
        sign = np.where(y == self.positive[k], 1.0, -1.0) * shown
        w = np.append(state["v"][:, k], state["b"][k] if self.intercept else 0.0)
        counts = np.maximum(-sign * self.dual[:, k], 0.0)
        if not self.from_zero:  # w is not the sum of these mistakes alone
            w, counts = np.zeros_like(w), np.zeros_like(counts)
        return bracket(
            X, sign, self._squares, counts, w, intercept=self.intercept, tol=self.resolution, passes=2 * epochs
        )
