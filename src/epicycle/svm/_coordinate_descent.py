"""Dual coordinate descent, for a function without a constant.

Without a constant the variables have no sum to keep, and one can be moved at a time: exactly to its minimum

    b_i <- clip(b_i + v_i / k_ii, lo_i, hi_i),      v = z - K b.

An epoch visits the rows in a random order, in sets; of each set those that violate their condition are moved in turn
until they agree with each other, and the slopes of all rows follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.core._monitor import Monitor
from epicycle.core._random import stream
from epicycle.svm._decomposition import DualSolution, Limits, Rounds
from epicycle.svm._dual_problem import DualProblem
from epicycle.svm._kernel_rows import KernelRows

__all__ = ["coordinate_descent"]

Array = np.ndarray
_SWEEPS = 20  # over one set


def coordinate_descent(
    problem: DualProblem,
    rows: KernelRows,
    limits: Limits,
    *,
    seed: int,
    monitor: Monitor | None = None,
    state: Mapping[str, Any] | None = None,
    stop: Callable[[Array, Array], bool] | None = None,
) -> DualSolution:
    """Epochs until violation and relative gap are within the tolerances; arguments as of `decompose`."""
    run = _Epochs(problem, rows, limits, state)
    run.seed = seed if not state else int(state["seed"])
    return run.until_done(monitor, stop)


class _Epochs(Rounds):
    """A round is an epoch."""

    seed = 0

    def saved(self) -> dict[str, Any]:
        return {**super().saved(), "seed": self.seed}

    def round(self) -> bool:
        self.rounds += 1
        order = stream(self.seed, "epoch", self.rounds).permutation(self.problem.n)
        target = max(0.5 * self.limits.tol * self.tightness, self.share * self.violation)
        before = self.steps
        for start in range(0, len(order), self.size):
            up, low = self.problem.moves(self.b, self.v)
            part = order[start : start + self.size]
            part = part[np.maximum(up[part], -low[part]) > 0]
            if len(part):
                self.optimise(part, target, self.limits.max_steps)
        return self.steps > before

    def inner(self, G: Array, chosen: Array, b: Array, v: Array, target: float, limit: int) -> tuple[int, float]:
        p = self.problem
        ridge = None if self.ridge is None else self.ridge[chosen]
        steps, _, curvature = _native.svm.coordinate_sweeps(
            G, self.diagonal[chosen], ridge, p.lo[chosen], p.hi[chosen], p.epsilon, b, v, target, _SWEEPS
        )
        return steps, curvature
