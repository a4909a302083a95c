"""Gradient descent of a neighbour embedding in stages, from one check of its progress to the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.core._monitor import Monitor
from epicycle.core._threads import ThreadsUnderLoad, n_threads

#: How the field of repulsion is computed, by the numbers of native code.
METHODS = {"exact": 0, "barnes_hut": 1, "fft": 2}
#: Longest step of the grid, in widths of the kernel, for up to so many rows and for more: many rows lie close, and what
#: matters then is the field of many, which is smooth. Forces are met to 1% and 2%.
GRID_STEPS, MANY = (0.4, 0.5), 20_000
#: Rows up to which all pairs cost no more than a grid.
FEW = 1000


def grid_step(n: int) -> float:
    """The step of the grid for n rows."""
    return GRID_STEPS[n > MANY]


@dataclass(frozen=True)
class Repulsion:
    """The kernel of repulsion, whether its sum counts by its logarithm, and how it is computed."""

    method: str
    freedom: float = 1.0
    angle: float = 0.5
    normalised: bool = True
    factor: float = 1.0
    softness: float = 0.0  # > 0: the kernel of the cross-entropy
    step: float = GRID_STEPS[0]  # of the grid

    def forces(self, attraction: float) -> _native.manifold.Forces:
        """With a factor of attraction, as native code takes it."""
        return _native.manifold.Forces(
            self.softness > 0, self.softness, self.freedom, attraction, self.factor, self.normalised,
            METHODS[self.method], self.angle, self.step,
        )  # fmt: skip

    def energy(self, Z: float) -> float:
        """The share of repulsion in the energy."""
        return self.factor * (math.log(max(Z, 1e-300)) if self.normalised else Z)

    def work(self, n: int) -> float:
        """Multiply-adds for each of n rows, roughly."""
        return {"exact": 10.0 * n, "barnes_hut": 3000.0, "fft": 300.0}[self.method]


@dataclass(frozen=True)
class Stage:
    """Steps up to an iteration, with a factor of attraction, a momentum and a patience."""

    until: int
    attraction: float
    momentum: float
    rate: float
    patience: int


@dataclass
class Descent:
    """State of a descent."""

    points: np.ndarray
    velocity: np.ndarray
    gains: np.ndarray
    iteration: int = 0
    round: int = 0
    stage: int = 0
    best: float = math.inf
    best_iteration: int = 0
    value: float = math.nan
    gradient_norm: float = math.inf
    reason: str = "max_iter"

    @classmethod
    def at(cls, places: np.ndarray, state: Mapping[str, Any] | None) -> Descent:
        """A start, or where an earlier descent was left."""
        if state is not None and np.shape(np.asarray(state["points"])) == places.shape:
            points, velocity, gains = (
                np.array(state[name], dtype=np.float64) for name in ("points", "velocity", "gains")
            )
            found = cls(points, velocity, gains)
            for name in ("iteration", "round", "stage", "best_iteration"):
                setattr(found, name, int(state[name]))
            found.best = float(state["best"])
            return found
        points = np.ascontiguousarray(places, dtype=np.float64)
        return cls(points, np.zeros_like(points), np.ones_like(points))

    def state(self) -> dict[str, Any]:
        """All that is needed to go on."""
        names = ("points", "velocity", "gains", "iteration", "round", "stage", "best", "best_iteration")
        return {name: np.array(v) if isinstance(v := getattr(self, name), np.ndarray) else v for name in names}

    def next_stage(self) -> None:
        """Begin a stage from rest."""
        self.velocity, self.gains = np.zeros_like(self.points), np.ones_like(self.points)
        self.stage, self.best, self.best_iteration = self.stage + 1, math.inf, self.iteration


@dataclass
class Steps:
    """Steps of a stage, a few at a time; `last` holds (squared norm of the gradient, attraction, Z) after them."""

    descent: Descent
    edges: _native.manifold.Edges
    forces: _native.manifold.Forces
    stage: Stage
    last: tuple[float, float, float] = (math.inf, math.nan, math.nan)

    def take(self, count: int, threads: int) -> None:
        """So many steps on so many threads, which the result does not depend on."""
        d, stage = self.descent, self.stage
        self.last = _native.manifold.descend(
            d.points, d.velocity, d.gains, self.edges, self.forces, stage.rate, stage.momentum, count, threads
        )


def descend(
    descent: Descent,
    edges: _native.manifold.Edges,
    n_edges: int,
    repulsion: Repulsion,
    stages: list[Stage],
    *,
    every: int,
    least_norm: float,
    monitor: Monitor,
    value: Callable[[float, float], float],
    n_jobs: int | None,
) -> None:
    """Go through the stages; `value` makes of (attraction, Z) what the history shows."""
    n = len(descent.points)
    threads = ThreadsUnderLoad(n_threads(10.0 * n_edges + n * repulsion.work(n), n_jobs))
    for number, stage in enumerate(stages):
        if number < descent.stage:
            continue
        while descent.iteration < stage.until:
            count = min(every - descent.iteration % every, stage.until - descent.iteration)
            before = descent.points.copy()
            found = Steps(descent, edges, repulsion.forces(stage.attraction), stage)
            threads.run(count, found.take)
            norm, attraction, Z = found.last
            descent.iteration += count
            if not np.isfinite(descent.points).all():
                descent.points[:], descent.reason = before, "diverged"
                return
            descent.value, descent.gradient_norm = value(attraction, Z), math.sqrt(norm)
            energy = stage.attraction * attraction + repulsion.energy(Z)
            descent.round += 1
            stop = monitor(
                descent.round, descent.points.ravel(), objective=descent.value,
                gradient_norm=descent.gradient_norm, state=descent.state,
            )  # fmt: skip
            if stop:
                descent.reason = "stopped"
                return
            if energy < descent.best:
                descent.best, descent.best_iteration = energy, descent.iteration
            elif descent.iteration - descent.best_iteration > stage.patience:
                descent.reason = "stalled"
                break
            if descent.gradient_norm <= least_norm:
                descent.reason = "converged"
                break
        if number + 1 < len(stages):
            descent.next_stage()
            descent.reason = "max_iter"
