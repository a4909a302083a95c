"""Descents from several starts: centres are improved round after round, and the best end of all starts is kept.

A round never raises the objective; a rise beyond rounding is an error, because then the rounds are not what they claim
to be. A fit can be stopped after any round and go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epicycle.core._exceptions import ConvergenceError
from epicycle.core._monitor import Monitor

#: Rounding of an objective, relative to its scale, that is no rise.
ROUNDING = 1e-9


@dataclass
class Round:
    """Result of a round: the centres, the objective, and how far the centres moved."""

    centers: np.ndarray
    value: float
    moved: float


@dataclass
class Run:
    """The end of a descent from one start."""

    centers: np.ndarray
    value: float
    moved: float
    n_iter: int
    reason: str


@dataclass
class Place:
    """State of a fit: the start, the rounds done in it, those of all starts before, and the best so far."""

    start: int
    done: int
    rounds: int
    seed: int
    best: Run | None

    def state(self, number: int, centers: np.ndarray) -> Mapping[str, Any]:
        """All that is needed to go on from here."""
        at = {"seed": self.seed, "start": self.start, "round": number, "rounds": self.rounds, "centers": centers}
        if self.best is None:
            return at
        return {**at, "best": self.best.centers, "best_value": self.best.value, "best_moved": self.best.moved}


@dataclass
class Descent:
    """Rounds from `starts` starts.

    `begin(start)` gives first centres, and `rounds_from(start)` a function of centres that makes one round. `shown`
    maps the centres to the vector that monitors see. `scale` is the size of the objective's terms, to tell a rise from
    rounding. `criterion`, where given, is what centres of different starts are compared by, in place of the objective.
    """

    starts: int
    max_iter: int
    tol: float
    begin: Callable[[int], np.ndarray]
    rounds_from: Callable[[int], Callable[[np.ndarray], Round]]
    shown: Callable[[np.ndarray], np.ndarray]
    scale: float
    criterion: Callable[[np.ndarray], float] | None = None

    def best(self, monitor: Monitor, seed: int, state: Mapping[str, Any] | None) -> Run:
        """The best of all starts, or of those that are left after the state of an earlier fit."""
        place, centers = Place(0, 0, 0, seed, None), None
        if state is not None:
            place = Place(int(state["start"]), int(state["round"]), int(state["rounds"]), seed, None)
            centers = np.array(state["centers"])
            if "best" in state:
                value, moved = float(state["best_value"]), float(state["best_moved"])
                place.best = Run(np.array(state["best"]), value, moved, 0, "converged")
        least = np.inf if place.best is None else self._score(place.best)
        for start in range(place.start, self.starts):
            place.start = start
            run = self._descend(self.begin(start) if centers is None else centers, monitor, place)
            score = self._score(run)
            if place.best is None or score < least:
                place.best, least = run, score
            centers, place.done, place.rounds = None, 0, place.rounds + run.n_iter
            if run.reason == "stopped":
                break
        assert place.best is not None
        return place.best

    def _score(self, run: Run) -> float:
        return run.value if self.criterion is None else self.criterion(run.centers)

    def _descend(self, centers: np.ndarray, monitor: Monitor, place: Place) -> Run:
        step = self.rounds_from(place.start)
        now = Round(centers, np.inf, np.inf)
        for number in range(place.done + 1, self.max_iter + 1):
            before, now = now.value, step(now.centers)
            require_no_rise(before, now.value, self.scale, number)
            stop = monitor(
                place.rounds + number,
                self.shown(now.centers),
                objective=now.value,
                state=partial(place.state, number, now.centers),
                start=place.start,
                movement=now.moved,
            )
            if now.moved <= self.tol or stop:
                return Run(
                    now.centers, now.value, now.moved, number, "converged" if now.moved <= self.tol else "stopped"
                )
        return Run(now.centers, now.value, now.moved, self.max_iter, "max_iter")


def require_no_rise(before: float, after: float, scale: float, number: int) -> None:
    """An objective that rises is an error, not a warning."""
    if not after <= before + ROUNDING * scale:
        raise ConvergenceError(
            f"the distortion rose from {before:.17g} to {after:.17g} in round {number}; expected none to rise by more "
            f"than rounding, {ROUNDING * scale:.3g}"
        )
