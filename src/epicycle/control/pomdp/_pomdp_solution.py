"""Solutions of planners of partially observed processes: vectors, bounds and evidence."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from epicycle._native import control as native
from epicycle.control.pomdp._pomdp import POMDP
from epicycle.core._certificate import Certificate
from epicycle.core._docs import documented
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._parameters import SHARED_PARAMETERS, InstanceOf, Integer, NoneOr, Real, check_parameter
from epicycle.core._plot_style import CYCLE, Axes, axes_of, ink, styled

Array = np.ndarray
DOMAINS = {
    "pomdp": InstanceOf(POMDP),
    "tol": Real(0, inclusive=False),
    "max_iter": Integer(minimum=1),
    "max_depth": Integer(minimum=1),
    "max_vectors": Integer(minimum=1),
    "n_beliefs": Integer(minimum=1),
    "horizon": NoneOr(Integer(minimum=1)),
    "time_limit": NoneOr(Real(0, inclusive=False)),
    "n_jobs": SHARED_PARAMETERS["n_jobs"],
}
#: Entries of docstrings that the planners share.
POMDP_DOCS = {
    "pomdp": "pomdp : POMDP\n    The process.",
    "tol": "tol : float, default={default}\n"
    "    Distance of the bounds at the start, relative to its value or the largest reward, that is good enough.",
    "max_iter": "max_iter : int, default={default}\n    Largest number of iterations.",
}


@dataclass(frozen=True)
class UpperBound:
    """Values that no policy exceeds: the lesser of a maximum of vectors and of a sawtooth through points.

    Attributes
    ----------
    corner : array (S,)
        Bounds where the state is known.
    vectors : array (K, S)
        Vectors whose maximum is a bound; may be none.
    points, values : arrays (N, S) and (N,)
        Beliefs with bounds on their values.
    """

    corner: Array
    vectors: Array
    points: Array
    values: Array

    def __call__(self, beliefs: Array) -> Array:
        return native.belief_upper(self.corner, self.vectors, self.points, self.values, beliefs)


@documented({})
@dataclass(frozen=True)
class POMDPSolution:
    """Policy of a partially observed process, with bounds on its value and on that of the best one.

    Attributes
    ----------
    alpha_vectors : array (K, S)
        Vectors whose maximum over a belief decides the action.
    alpha_actions : array (K,)
        Labels of the actions of the vectors.
    lower_vectors : array (L, S)
        Vectors whose maximum is a value that can be had; those of `alpha_vectors` unless the planner gives an upper
        bound only.
    upper_bound : callable
        Beliefs (N, S) to values (N,) that no policy exceeds.
    history : History
        Bounds at the start, numbers of vectors, seconds, one row for each iteration.
    certificate : Certificate
        Distance of the bounds, relative to values and rewards.
    n_iter : int
        Number of iterations.
    stages : list of (vectors, labels of actions) or None
        With a finite horizon, those for 1, 2, ... steps that are left.
    """

    _docs: ClassVar = {"beliefs": "beliefs : array (S,) or (N, S)\n    What is known of the state."}

    pomdp: POMDP = field(repr=False)
    alpha_vectors: Array = field(repr=False)
    alpha_actions: Array = field(repr=False)
    lower_vectors: Array = field(repr=False)
    upper_bound: UpperBound = field(repr=False)
    history: History = field(repr=False)
    certificate: Certificate
    n_iter: int
    stages: list[tuple[Array, Array]] | None = field(default=None, repr=False)

    def action(self, beliefs: Any, steps_left: int | None = None) -> Any:
        """Action at a belief, or at each of several.

        Parameters
        ----------
        steps_left : int, optional
            With a finite horizon, the number of steps that are left; by default all.

        Returns
        -------
        label, or array (N,) of labels
        """
        b = self._beliefs(beliefs)
        vectors, labels = self.alpha_vectors, self.alpha_actions
        if steps_left is not None:
            if self.stages is None or not 1 <= steps_left <= len(self.stages):
                most = "None" if self.stages is None else f"1 to {len(self.stages)}"
                raise DataError(f"steps_left={steps_left!r}: expected {most}")
            vectors, labels = self.stages[steps_left - 1]
        chosen = labels[np.argmax(b @ vectors.T, axis=1)]
        if np.ndim(beliefs) == 2:
            return chosen
        return chosen[0].item() if isinstance(chosen[0], np.generic) else chosen[0]

    def bounds(self, beliefs: Any) -> tuple[Any, Any]:
        """Lower bound of the value of `action`, where it has one, and upper bound of all policies.

        Returns
        -------
        lower, upper : floats or arrays (N,)
        """
        b = self._beliefs(beliefs)
        low, high = (b @ self.lower_vectors.T).max(axis=1), self.upper_bound(b)
        return (low, high) if np.ndim(beliefs) == 2 else (float(low[0]), float(high[0]))

    def value(self, beliefs: Any) -> Any:
        """Value in the middle between the bounds.

        Returns
        -------
        float, or array (N,)
        """
        low, high = self.bounds(beliefs)
        return 0.5 * (low + high)

    def _beliefs(self, beliefs: Any) -> Array:
        b = np.ascontiguousarray(np.atleast_2d(np.asarray(beliefs, dtype=np.float64)))
        if b.ndim != 2 or b.shape[1] != self.pomdp.n_states:
            raise DataError(f"beliefs: got shape {b.shape}; expected ({self.pomdp.n_states},) or (N, S)")
        if not (np.isfinite(b).all() and (b >= 0).all() and np.allclose(b.sum(axis=1), 1, atol=1e-6)):
            raise DataError("beliefs: expected probabilities that add up to 1")
        return b

    @styled
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the vectors of a process with two states over the belief in the second, with the bounds."""
        if self.pomdp.n_states != 2:
            raise DataError(f"plot: got {self.pomdp.n_states} states; expected 2, use plot_convergence")
        ax = axes_of(ax)
        x = np.linspace(0.0, 1.0, 401)
        beliefs = np.column_stack([1 - x, x])
        low, high = self.bounds(beliefs)
        best = np.argmax(beliefs @ self.alpha_vectors.T, axis=1)
        labels = self.pomdp.actions.tolist()
        colour = {label: CYCLE[i % len(CYCLE)] for i, label in enumerate(labels)}
        for vector, label in zip(self.alpha_vectors, self.alpha_actions.tolist(), strict=True):
            ax.plot([0, 1], vector, color=colour[label], lw=0.7, alpha=0.35)
        chosen = self.alpha_actions[best]
        edges = np.concatenate([[0], np.flatnonzero(chosen[1:] != chosen[:-1]) + 1, [len(x)]])
        named: set[Any] = set()
        for start, end in pairwise(edges):
            label = chosen[start].item() if isinstance(chosen[start], np.generic) else chosen[start]
            part = slice(start, min(end + 1, len(x)))
            ax.plot(x[part], low[part], color=colour[label], lw=2.6, label=None if label in named else f"{label}")
            named.add(label)
        ax.plot(x, high, color=ink(ax), ls="--", lw=1.1, label="upper bound")
        room = 0.12 * (high.max() - low.min()) or 1.0
        ax.set_ylim(low.min() - room, high.max() + room)
        ax.set_xlim(0, 1)
        ax.set_xlabel(f"belief in {self.pomdp.states[1]}")
        ax.set_ylabel("value")
        ax.legend(loc="best")
        return ax

    @styled
    def plot_convergence(self, *, ax: Axes | None = None) -> Axes:
        """Draw the bounds at the start against the iterations."""
        if "upper" not in self.history:
            raise DataError("plot_convergence: this planner gives one bound; expected a history of two")
        ax = axes_of(ax)
        step = np.arange(1, self.history.n_iter + 1)
        ax.plot(step, self.history["upper"], label="upper bound")
        ax.plot(step, self.history["lower"], label="lower bound")
        ax.fill_between(step, self.history["lower"], self.history["upper"], alpha=0.15, lw=0)
        ax.set_xlabel("iteration")
        ax.set_ylabel("value of the start")
        ax.legend(loc="best")
        return ax


def check(planner: str, **given: Any) -> None:
    """Raise if an argument of a planner is not what it should be."""
    for name, value in given.items():
        check_parameter(planner, name, value, DOMAINS[name])
    pomdp = given["pomdp"]
    if pomdp.discount == 1 and given.get("horizon") is None:
        raise DataError(f"{planner}: discount=1 needs a finite horizon (incremental_pruning); expected discount < 1")


def arguments(pomdp: POMDP) -> tuple[Any, Array, Array, float]:
    """The process as the kernels take it."""
    return pomdp.transitions_, pomdp.rewards_, pomdp.observations_, pomdp.discount


def scale_of(*values: Any) -> float:
    """Size of values, to which a distance of bounds is compared."""
    return max(float(np.abs(v).max(initial=0.0)) for v in values) or 1.0


def start_size(pomdp: POMDP, low: float, high: float) -> float:
    """Size to which the distance of bounds at the start is compared: its value, or the largest reward."""
    return max(scale_of(pomdp.rewards_), min(abs(low), abs(high)))


def rounding(pomdp: POMDP, *values: Any) -> float:
    """Error of a value by rounding: each backup is a sum of S + O rounded terms, and errors add up to the end."""
    size = float(np.abs(pomdp.rewards_).max()) + scale_of(*values)
    return float(2 * np.finfo(float).eps * (pomdp.n_states + pomdp.n_observations + 3) * size / (1 - pomdp.discount))


def bound_gap(
    planner: str, low: float, high: float, size: float, tol: float, where: str = "at the first belief"
) -> Certificate:
    """Certificate of two bounds, and a warning when it does not hold."""
    gap = max(high - low, 0.0) / size
    meaning = f"{where} this policy loses at most {gap:.1e} against the best one, relative to values and rewards"
    certificate = Certificate("distance of the bounds", gap, tol, meaning)
    if not certificate.holds:
        warnings.warn(f"{certificate}; raise max_iter of {planner}, or tol", ConvergenceWarning, stacklevel=4)
    return certificate


def of_bounds(
    planner: str, pomdp: POMDP, vectors: Array, actions: Array, bound: UpperBound, history: History, tol: float
) -> POMDPSolution:
    """Solution of vectors and an upper bound, with their distance at the start as certificate."""
    low, high = float((vectors @ pomdp.start).max()), float(bound(pomdp.start[None])[0])
    size = start_size(pomdp, low, high)
    return POMDPSolution(
        pomdp=pomdp,
        alpha_vectors=vectors,
        alpha_actions=pomdp.actions[actions],
        lower_vectors=vectors,
        upper_bound=bound,
        history=history,
        certificate=bound_gap(planner, low, high, size, tol),
        n_iter=history.n_iter,
    )
