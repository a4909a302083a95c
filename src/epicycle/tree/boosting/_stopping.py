"""Early stopping of boosting: by the loss of a validation set, by a score of it, or by the training rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from epicycle.core._exceptions import DataTypeError
from epicycle.data import Scan
from epicycle.tree.boosting._boosting import Boosting, MemoryBoosting, MemoryValidation, Validation


@dataclass
class Stopping:
    """The rule by which a fit ends before its last round.

    Parameters
    ----------
    patience : int or None
        Rounds without improvement that end the fit; None never ends it.
    tol : float
        Smallest decrease that counts; relative to the loss where `relative`.
    held_out : float or None
        Share of the rows that is held out as validation set.
    relative : bool
        Whether the smallest value before the last `patience` rounds is the reference, and `tol` relative to it; else
        the value right before them is.
    keeps_best : bool
        Whether the rounds after the best one are dropped.
    scorer : callable or None
        ``scorer(model, X, y)``, larger is better; None is the negative loss.
    """

    patience: int | None
    tol: float
    held_out: float | None = None
    relative: bool = True
    keeps_best: bool = True
    scorer: Callable[..., float] | None = None
    #: Values, smaller is better, before the first round and after each: of the training rows and of the validation set.
    train: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    _measures: list[tuple[list[float], Callable[[], float]]] = field(default_factory=list)
    _first: int = 0

    def resume(self, memory: Any) -> None:
        """Go on with the values of an earlier fit."""
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
            self._measures.append((self.held, lambda: validation.losses[-1]))
            if isinstance(validation, Validation) and self.relative:
                self.held[:] = validation.losses[:-1]
                self._first = validation.first
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
            if not values or self.relative:
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
        if len(values) <= self.patience:
            return False
        recent = values[-self.patience :]
        if not self.relative:
            return min(recent) >= values[-self.patience - 1] - self.tol
        before = min(values[: -self.patience])
        return bool(min(recent) >= before - self.tol * abs(before))

    def kept(self, rounds: int) -> int:
        """Number of the rounds that are kept."""
        if self.patience is None or not self.keeps_best or not self.held:
            return rounds
        return self._first + int(np.argmin(self.held))


def _rows(X: Any, which: np.ndarray) -> Any:
    return X if which.all() else _safe_indexing(X, np.flatnonzero(which))
