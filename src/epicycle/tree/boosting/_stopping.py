"""Early stopping of boosting: by the loss of a validation set, by a score of it, or by the training rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.utils import _safe_indexing

from epicycle.core._exceptions import DataTypeError
from epicycle.data import Scan
from epicycle.tree.boosting._boosting import Boosting, MemoryBoosting
from epicycle.tree.boosting._held_out import MemoryValidation, Validation


@dataclass
class Stopping:
    """The rule by which a fit ends before its last round.

    Parameters
    ----------
    patience : int or None
        Rounds without improvement that end the fit; None never ends it.
    tol : float
        Smallest decrease that counts; with the reference "best" relative to it.
    held_out : int, float or None
        Number or share of the rows that are held out as validation set.
    reference : {"worst", "before", "best"}
        A round ends the fit when its value is not below the largest of the `patience` values before it; or when none of
        the last `patience` values is below the one right before them, or below the smallest of all before them. With
        "best" the rounds after the best one are dropped.
    scorer : callable or None
        ``scorer(model, X, y)``, larger is better; None is the negative loss.
    """

    patience: int | None
    tol: float
    held_out: float | None = None
    reference: Literal["worst", "before", "best"] = "worst"
    scorer: Callable[..., float] | None = None
    #: Values, smaller is better, before the first round and after each: of the training rows and of the validation set.
    train: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    _measures: list[tuple[list[float], Callable[[], float]]] = field(default_factory=list)

    def resume(self, interrupted: Any, earlier: Any) -> None:
        """Go on with the values of a fit that was interrupted; those of an earlier one count by one rule alone."""
        memory = earlier if interrupted is None and self.reference == "before" else interrupted
        if memory is not None:
            self.train, self.held = list(memory["train"]), list(memory["held"])

    def memory(self) -> dict[str, list[float]]:
        """The values so far."""
        return {"train": list(self.train), "held": list(self.held)}

    def begin(self, model: Any, X: Any, X_val: Any, boosting: Boosting, validation: Validation | None) -> None:
        """Take the values before the first round; `model` predicts for the scorer the rows X, or X_val."""
        if self.patience is None:
            return
        self._measures = [(self.train, lambda: boosting.mean_loss)]
        if validation is not None:
            self._measures.append((self.held, lambda: validation.loss_now))
        if self.scorer is not None:
            self._measures = []
            for values, part, rows in ((self.train, boosting, X), (self.held, validation, X_val)):
                if part is None:
                    continue
                if not isinstance(part, MemoryBoosting | MemoryValidation) or isinstance(rows, Scan):
                    raise DataTypeError("scoring: a score needs rows in memory; expected scoring='loss' for other data")
                some = _rows(X, part.which) if part is boosting or X_val is None else X_val
                about = part.bins if isinstance(part, MemoryBoosting) else part
                self._measures.append((values, self._scored(model, some, part.score, about)))
        # Values of an earlier fit end with those before this one.
        for values, measure in self._measures:
            if not values:
                values.append(measure())

    def _scored(self, model: Any, X: Any, score: np.ndarray, rows: Any) -> Callable[[], float]:
        """The negative score of these rows by the scores (K, n) that they have when it is called."""
        assert self.scorer is not None
        scorer, twin = self.scorer, copy.copy(model)
        twin._scores = lambda _: np.ascontiguousarray(score.T)
        y = rows.y if not hasattr(model, "classes_") else model.classes_[rows.y.astype(np.intp)]
        given = {} if rows.weight is None else {"sample_weight": rows.weight}
        return lambda: -float(scorer(twin, X, y, **given))

    def is_stale(self) -> bool:
        """Take the values after a round; whether the last rounds brought no improvement."""
        if self.patience is None:
            return False
        for values, measure in self._measures:
            values.append(measure())
        values = self._measures[-1][0]
        if self.reference != "worst":
            if len(values) <= self.patience:
                return False
            before, tol = values[-self.patience - 1], self.tol
            if self.reference == "best":
                before = min(values[: -self.patience])
                tol *= abs(before)
            return min(values[-self.patience :]) >= before - tol
        after = values[1:]  # the value before the first round is not one of a round
        return len(after) > self.patience and not after[-1] + self.tol < max(after[-self.patience - 1 : -1])

    def kept(self, rounds: int) -> int:
        """Number of the rounds that are kept, of those of this fit and earlier ones."""
        if self.patience is None or self.reference != "best" or not self.held:
            return rounds
        return rounds - (len(self.held) - 1 - int(np.argmin(self.held)))


def _rows(X: Any, which: np.ndarray) -> Any:
    return X if which.all() else _safe_indexing(X, np.flatnonzero(which))
