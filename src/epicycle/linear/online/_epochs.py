"""Passes over the rows until a rule says stop; each is one iteration of the fit."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.linear.online._learner import (
    CAPPED,
    ETA,
    FIRST,
    STEP,
    Piece,
    Presentations,
    Rule,
    State,
    coefficients,
    copy_state,
    learn,
)
from epicycle.optim import Monitor


@dataclass(frozen=True)
class Epoch:
    """The result of one pass: `objective` is the mean loss before each step plus the penalty at the end."""

    number: int
    objective: float
    mistakes: np.ndarray
    #: How many rows the pass counts for.
    total: float
    score: float | None = None


class StoppingRule(ABC):
    """Decides after every epoch; remembers what it needs in `memory`, so that a checkpoint can take it along."""

    def __init__(self) -> None:
        self.memory: dict[str, float] = {}

    @abstractmethod
    def stops(self, epoch: Epoch, state: State) -> bool:
        """Whether this was the last epoch. May change the step of the schedule "adaptive" in `state`."""


class NoImprovement(StoppingRule):
    """Stop when the objective (or the score) has not improved by `tol` in `patience` epochs in a row.

    With `adaptive` steps they are divided by five instead, until they are at most 1e-6.
    """

    def __init__(self, tol: float | None, patience: int, *, adaptive: bool = False) -> None:
        super().__init__()
        self.tol, self.patience, self.adaptive = tol, patience, adaptive
        self.memory = {"best": math.inf, "stale": 0.0}

    def stops(self, epoch: Epoch, state: State) -> bool:
        value = epoch.objective if epoch.score is None else -epoch.score
        if self.tol is None:
            return False
        self.memory["stale"] = self.memory["stale"] + 1 if value > self.memory["best"] - self.tol else 0.0
        self.memory["best"] = min(self.memory["best"], value)
        if self.memory["stale"] < self.patience:
            return False
        if self.adaptive and state["number"][ETA] > 1e-6:
            state["number"][ETA] /= 5
            self.memory["stale"] = 0.0
            return False
        return True


@dataclass
class Run:
    """The end of the epochs."""

    state: State
    reason: str
    n_epochs: int
    #: Epochs of this run, without those of an earlier one that it went on from.
    passes: int
    total: float
    objective: float
    saved: Mapping[str, Any]


def run_epochs(
    state: State,
    rule: Rule,
    rows: Presentations,
    stopping: StoppingRule,
    *,
    positive: np.ndarray | None,
    max_iter: int,
    monitor: Monitor,
    seed: int,
    resume: Mapping[str, Any] | None = None,
    dual: np.ndarray | None = None,
    after_piece: Callable[[Piece, np.ndarray], None] | None = None,
    score: Callable[[State], float] | None = None,
    observe: Callable[[State], None] = lambda _state: None,
) -> Run:
    """Learn epoch after epoch.

    Parameters
    ----------
    state : the learner, changed in place; replaced by that of `resume` where there is one.
    dual : (n, K), to which the derivatives of every row's loss are added, for data in memory.
    after_piece : called after every piece with the scores that its rows had before they were learnt.
    score : state -> score on the validation set, which then decides in place of the objective.
    observe : called before the monitor with the current state, so that what callbacks see can follow it.
    """
    done = 0
    if resume is not None:
        done = int(resume["epoch"])
        state = {name[6:]: np.array(array) for name, array in resume.items() if name.startswith("state_")}
        stopping.memory.update({name[5:]: float(value) for name, value in resume.items() if name.startswith("stop_")})
    first, K = done, state["v"].shape[1]
    total, objective, reason = 0.0, math.nan, "max_iter"

    def saved() -> dict[str, Any]:
        arrays = {f"state_{name}": array for name, array in copy_state(state).items()}
        return {"epoch": done, "seed": seed, **arrays, **{f"stop_{k}": v for k, v in stopping.memory.items()}}

    while done < max_iter:
        before, capped = state["mistakes"].copy(), state["number"][CAPPED]
        losses = total = 0.0
        for piece in rows.epoch(done):
            scores = None if after_piece is None else np.empty((piece.n_shown, K))
            losses += learn(
                state,
                rule,
                piece.X,
                piece.y,
                positive,
                order=piece.order,
                fraction=piece.fraction,
                dual=dual,
                scores=scores,
                one=K == 1,
            )
            if after_piece is not None and scores is not None:
                after_piece(piece, scores)
            total += piece.total
        done += 1
        W, b = coefficients(state, rule)
        if not (math.isfinite(losses) and np.isfinite(W).all() and np.isfinite(b).all()):
            raise DataError(
                f"Floating-point under-/overflow occurred at epoch #{done}. Scaling input data with StandardScaler or "
                "MinMaxScaler might help, or a smaller eta0"
            )
        objective = losses / total + rule.penalty(W, b)
        epoch = Epoch(done, objective, state["mistakes"] - before, total, None if score is None else score(state))
        columns = {"step": _step(state, rule)}
        if positive is not None:
            columns["mistakes"] = float(epoch.mistakes.sum())
        if state["number"][CAPPED] > 0:
            columns["capped"] = float(state["number"][CAPPED] - capped)
        if epoch.score is not None:
            columns["validation_score"] = epoch.score
        enough = stopping.stops(epoch, state)
        observe(state)
        stopped = monitor(done, np.array([float(done)]), objective=objective, state=saved, **columns)
        if enough or stopped:
            reason = "converged" if enough else "stopped"
            break
    return Run(state, reason, done, done - first, total, objective, saved())


def _step(state: State, rule: Rule) -> float:
    """The length of the next step."""
    number = state["number"]
    t = float(number[STEP])
    if rule.schedule == "optimal":
        return 1.0 / (rule.alpha * (float(number[FIRST]) + t - 1.0))
    if rule.schedule == "adaptive":
        return float(number[ETA])
    with np.errstate(over="ignore", divide="ignore", under="ignore"):  # any power of t may be asked for
        power = np.float64(t) ** rule.exponent
        divisor = {"invscaling": power, "c/t": t, "a/(b+k)": rule.offset + t}.get(rule.schedule, 1.0)
        return float(np.float64(rule.eta0) / divisor)
