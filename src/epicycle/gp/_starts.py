"""Where a search for hyper-parameters begins, how it is rehearsed on some of the rows, and how it is put on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.optimize

from epicycle.core._monitor import Monitor
from epicycle.core._random import stream
from epicycle.linalg._cholesky import NotPositiveError
from epicycle.optim._box_bfgs import Summit, climb, steepness

__all__ = ["Likelihood", "Plan", "search"]

PART = 384  # rows of a rehearsal
WORTH = 1024  # rows above which the search is rehearsed


class Likelihood(Protocol):
    """What a search needs to know of a likelihood."""

    #: Half the number of observations, at least one: what the terms of the likelihood are about.
    scale: float
    #: Of the last gradient: its standard error where it is an estimate, or what rounding has done to it.
    standard_error: float

    def start(self, theta: np.ndarray) -> None:
        """Prepare for evaluations near theta."""

    def state(self) -> dict[str, Any]:
        """What belongs to the start, to go on from it later."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        """The logarithm of the likelihood, and its derivatives."""


@dataclass(frozen=True)
class Plan:
    """How to search."""

    theta: np.ndarray
    bounds: np.ndarray
    optimizer: Any
    restarts: int
    tol: float
    max_iter: int
    seed: int

    def starts(self) -> np.ndarray:
        """The given theta, then draws from the box: uniform on the scale of logarithms."""
        low, high = self.bounds.T
        drawn = stream(self.seed, "start").uniform(low, high, size=(self.restarts, len(self.theta)))
        return np.vstack([np.clip(self.theta, *self.bounds.T), drawn])


def search(
    likelihood: Likelihood,
    plan: Plan,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
    part: Likelihood | None = None,
    share: float = 1.0,
) -> Summit:
    """The best summit of all starts.

    Where there is a `part` of the data, all starts are climbed on it, and only the best of them is climbed once more,
    on all rows, with the curvature of the part divided by its `share`.
    """
    resumed = state is not None
    starts, B = plan.starts(), None
    best: Summit | None = None
    latest: Callable[[], dict[str, Any]] | None = None
    first, done = 0, 0
    if resumed:
        starts, first, done = np.asarray(state["starts"]), int(state["start"]), int(state["done"])
        B = np.asarray(state["B"])
        if "best_theta" in state:
            none = np.full(starts.shape[1], np.nan)
            before = np.asarray(state["best_theta"]), float(state["best_value"])
            best = Summit(*before, none, np.eye(len(none)), done, "stopped")
        starts = starts.copy()
        starts[first] = state["theta"]
    elif part is not None and plan.optimizer == "bfgs":
        rehearsed = _rehearse(part, plan, starts)
        if rehearsed is not None:
            starts, B = rehearsed.theta[None], rehearsed.B / share
    for index in range(first, len(starts)):
        if resumed and index == first:
            likelihood.restore(state)
        else:
            likelihood.start(starts[index])

        kept = {} if best is None else {"best_theta": best.theta, "best_value": best.value}

        def report(
            iteration: int,
            theta: np.ndarray,
            value: float,
            steep: float,
            B: np.ndarray,
            index: int = index,
            kept: dict[str, Any] = kept,
        ) -> bool:
            nonlocal latest

            def now() -> dict[str, Any]:
                mine = {"theta": theta, "B": B, "start": index, "done": iteration, "starts": starts, "seed": plan.seed}
                return {**mine, **likelihood.state(), **kept}

            latest = now
            return monitor(iteration, theta, objective=-value, gradient=steep, start=float(index), state=now)

        found = _climb(likelihood, starts[index], plan, B, report, done, resumed and index == first)
        B, done = None, found.n_iter
        if best is None or found.value > best.value:
            best = found
        if found.reason == "stopped":
            best = found if best is None else best
            best.reason = "stopped"
            break
    assert best is not None
    if np.isnan(best.gradient).any():  # of a start before the fit was resumed
        likelihood.start(best.theta)
        best.value, best.gradient = likelihood.value_and_gradient(best.theta)
        steep = steepness(best.theta, best.gradient, plan.bounds, likelihood.scale)
        best.reason = "converged" if steep <= plan.tol else best.reason
    best.n_iter = done
    best.state = {} if latest is None else latest()
    return best


def _rehearse(part: Likelihood, plan: Plan, starts: np.ndarray) -> Summit | None:
    """The best summit on some of the rows; None where every start fails there."""
    best: Summit | None = None
    for theta in starts:
        part.start(theta)
        found = climb(_curved(part), theta, plan.bounds, tol=100 * plan.tol, scale=part.scale, max_iter=plan.max_iter)
        if best is None or found.value > best.value:
            best = found
    return best


def _curved(likelihood: Any) -> Callable[[np.ndarray, bool], tuple[float, np.ndarray, np.ndarray | None]]:
    """The likelihood with its information, where it has one."""
    if hasattr(likelihood, "with_curvature"):
        return likelihood.with_curvature

    def plain(theta: np.ndarray, curved: bool) -> tuple[float, np.ndarray, np.ndarray | None]:
        return *likelihood.value_and_gradient(theta), None

    return plain


def _climb(
    likelihood: Likelihood,
    theta: np.ndarray,
    plan: Plan,
    B: np.ndarray | None,
    report: Callable[[int, np.ndarray, float, float, np.ndarray], bool],
    done: int,
    resumed: bool,
) -> Summit:
    if plan.optimizer == "bfgs":
        return climb(
            _curved(likelihood), theta, plan.bounds,
            tol=lambda: max(plan.tol, 0.5 * likelihood.standard_error / likelihood.scale), scale=likelihood.scale,
            max_iter=plan.max_iter, B=B, report=report, done=done, resumed=resumed,
        )  # fmt: skip

    worst = [np.inf]

    def objective(theta: np.ndarray, eval_gradient: bool = True) -> Any:
        try:
            value, gradient = likelihood.value_and_gradient(np.asarray(theta, dtype=np.float64), eval_gradient)
        except NotPositiveError:
            value, gradient = -10 * abs(worst[0]) - 1e6, np.zeros(len(theta))
        worst[0] = value
        return (-value, -gradient) if eval_gradient else -value

    if plan.optimizer == "fmin_l_bfgs_b":
        found = scipy.optimize.minimize(objective, theta, method="L-BFGS-B", jac=True, bounds=plan.bounds)
        end = np.asarray(found.x)
    else:
        end = np.asarray(plan.optimizer(objective, theta, plan.bounds)[0], dtype=np.float64)
    end = np.clip(end, *plan.bounds.T)
    value, gradient = likelihood.value_and_gradient(end)
    steep = steepness(end, gradient, plan.bounds, likelihood.scale)
    report(done + 1, end, value, steep, np.eye(len(end)))
    return Summit(end, value, gradient, np.eye(len(end)), done + 1, "converged" if steep <= plan.tol else "stalled")
