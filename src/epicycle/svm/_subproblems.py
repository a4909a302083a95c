"""The problems of one machine: one for two classes, one for each pair or class of more; and their solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from epicycle.core._monitor import Monitor
from epicycle.kernels._positivity import least_eigenvalue, never_negative
from epicycle.svm._coordinate_descent import coordinate_descent
from epicycle.svm._decomposition import DualSolution, Limits, decompose, step_limit
from epicycle.svm._dual_problem import DualProblem, Evidence
from epicycle.svm._kernel_rows import KernelRows, WholeMatrix

__all__ = ["Options", "Solved", "Subproblem", "hard_margin", "nu_machine", "soft_margin", "solve"]

Array = np.ndarray
_TOUCHING = 1e-6  # of the longest row: hulls that come closer than this are taken to meet


@dataclass(frozen=True)
class Options:
    """How to solve."""

    tol: float
    max_iter: int
    cache_bytes: float
    solver: str = "smo"
    seed: int = 0
    shrinking: bool = True


@dataclass(frozen=True)
class Subproblem:
    """Rows (by number), the dual problem on them, and how its solution becomes a function.

    `form` is "plain" (the coefficients are the variables), "nu" (the variables are divided by the margin they lead to)
    or "hull" (the variables are the nearest points of two convex hulls).
    """

    rows: Array
    problem: DualProblem
    form: str = "plain"
    #: The problem whose solution the scaled variables are, for "hull".
    scaled: DualProblem | None = None

    def function(self, b: Array, constants: Array) -> tuple[Array, float, float]:
        """(coefficients, intercept, the factor between variables and coefficients)."""
        if self.form == "plain":
            return b, float(constants[0]), 1.0
        # Free rows of either class have f = -constant.
        half = -(constants[0] - constants[1]) / 2
        factor = 1 / half if half > 0 else np.nan
        return b * factor, float(constants[0] + constants[1]) / 2 * factor, factor


@dataclass(frozen=True)
class Solved:
    """A function and the evidence for it."""

    coefficients: Array
    intercept: float
    norm: float  # |f|
    evidence: Evidence
    reason: str
    rounds: int
    steps: int
    #: The least eigenvalue or curvature that was seen, where it is negative and the kernel no Mercer kernel.
    indefinite: float = 0.0
    message: str = ""
    #: Where the solver is, to go on from.
    state: Mapping[str, Any] = field(default_factory=dict)

    def saved(self) -> dict[str, Any]:
        e = self.evidence
        numbers = [
            self.intercept, self.norm, e.objective, e.dual, e.primal, e.gap, e.violation, self.rounds, self.steps,
            self.indefinite,
        ]  # fmt: skip
        return {"b": self.coefficients, "numbers": np.array(numbers), "constants": e.constants, "reason": self.reason}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Solved:
        x = [float(v) for v in np.asarray(state["numbers"])]
        objective, dual, primal, gap, violation = x[2:7]
        evidence = Evidence(objective, dual, primal, gap, violation, np.asarray(state["constants"]))
        b = np.asarray(state["b"], dtype=np.float64)
        return cls(b, x[0], x[1], evidence, str(state["reason"]), int(x[7]), int(x[8]), x[9])


# ------------------------------------------------------------------------------------------------ the problems


def soft_margin(rows: Array, sign: Array, C: Array, *, squared: bool, constant: bool = True) -> Subproblem:
    """1/2 |f|^2 + sum_i C_i xi_i, or C_i xi_i^2 / 2 for the squared slack."""
    top = np.full(len(sign), np.inf) if squared else C
    lo, hi = np.where(sign > 0, 0.0, -top), np.where(sign > 0, top, 0.0)
    ridge = 1 / C if squared else None
    return Subproblem(rows, DualProblem(sign, lo, hi, ridge=ridge, constant=constant, stretches=True))


def hard_margin(rows: Array, sign: Array) -> Subproblem:
    """The largest margin that nothing lies in, by its dual: the nearest points of the two convex hulls."""
    group = (sign < 0).astype(np.int64)
    start = np.zeros(len(sign))
    start[[int(np.argmax(sign > 0)), int(np.argmax(sign < 0))]] = 1.0, -1.0
    top = np.full(len(sign), np.inf)
    lo, hi = np.where(sign > 0, 0.0, -top), np.where(sign > 0, top, 0.0)
    hull = DualProblem(np.zeros(len(sign)), lo, hi, group=group, start=start)
    return Subproblem(rows, hull, "hull", DualProblem(sign, lo, hi, stretches=True))


def nu_machine(rows: Array, sign: Array, weight: Array, nu: float) -> Subproblem:
    """1/2 |f|^2 - nu rho sum w + sum w_i xi_i, with the margin rho: at most a share nu of the weight lies inside it."""
    group = (sign < 0).astype(np.int64)
    start = np.zeros(len(sign))
    for g in (0, 1):
        mine = np.flatnonzero(group == g)
        start[mine] = filled(weight[mine], nu * weight.sum() / 2) * (1 if g == 0 else -1)
    lo, hi = np.where(sign > 0, 0.0, -weight), np.where(sign > 0, weight, 0.0)
    return Subproblem(rows, DualProblem(np.zeros(len(sign)), lo, hi, group=group, start=start), "nu")


def filled(top: Array, total: float) -> Array:
    """The first entries at their upper bound, as many as give the total."""
    before = np.concatenate([[0.0], np.cumsum(top)[:-1]])
    return np.clip(total - before, 0.0, top)


# ------------------------------------------------------------------------------------------------ solution


def solve(
    sub: Subproblem,
    rows: KernelRows,
    options: Options,
    *,
    mercer: bool,
    monitor: Monitor | None = None,
    state: Mapping[str, Any] | None = None,
) -> Solved:
    """Solve one problem; `mercer` says that the kernel is known for a Mercer kernel."""
    n = sub.problem.n
    steps = step_limit(options.max_iter, n)
    limits = Limits(options.tol, options.tol, steps, options.cache_bytes / 4, shrinking=options.shrinking)
    method: Callable[..., DualSolution] = decompose
    extra: dict[str, Any] = {}
    if options.solver == "dual-cd":
        method, extra = coordinate_descent, {"seed": options.seed}
    if sub.form == "hull":
        return _nearest_points(sub, rows, limits, mercer, monitor, state)
    found = method(sub.problem, rows, limits, monitor=monitor, state=state, **extra)
    b, intercept, factor = sub.function(found.b, found.evidence.constants)
    message = ""
    if not np.isfinite(factor):
        b, intercept, factor = found.b, float(found.evidence.constants.mean()), 1.0
        message = "the margin is zero: the classes coincide for this nu and kernel"
        found.reason = "stalled"
    norm = factor * float(np.sqrt(max(found.b @ found.f, 0.0)))
    indefinite = 0.0 if mercer else _indefinite(rows, found.curvature)
    return Solved(
        b, intercept, norm, found.evidence, found.reason, found.rounds, found.steps, indefinite, message, found.state
    )


def _nearest_points(
    sub: Subproblem,
    rows: KernelRows,
    limits: Limits,
    mercer: bool,
    monitor: Monitor | None,
    state: Mapping[str, Any] | None,
) -> Solved:
    """The hard margin: the nearest points, nearer and nearer until the scaled function keeps its conditions."""
    assert sub.scaled is not None
    scale = float(max(rows.diagonal.max(), np.finfo(np.float64).tiny))
    touching = _TOUCHING**2 * scale
    tol = 1e-2 * scale
    problem = sub.problem
    while True:
        now = replace(limits, tol=tol, gap=limits.gap, round_steps=50 * problem.n + 1000)
        found = decompose(problem, rows, now, monitor=monitor, state=state, stop=lambda b, f: float(b @ f) <= touching)
        state = {"b": found.b, "rounds": found.rounds, "steps": found.steps}
        square = float(found.b @ found.f)
        if found.reason == "diverged" or square <= touching:
            distance = float(np.sqrt(max(square, 0.0)))
            message = (
                f"no function of this kernel separates the classes: their convex hulls come within {distance:.1e} of "
                f"each other, which is less than {_TOUCHING:g} of the longest row ({scale**0.5:.2g})"
            )
            return Solved(found.b, 0.0, distance, found.evidence, "infeasible", found.rounds, found.steps, 0.0, message)
        b, _, factor = sub.function(found.b, found.evidence.constants)
        if np.isfinite(factor):
            f = factor * found.f
            evidence = sub.scaled.evidence(b, f, scale)
            if found.reason != "converged" or limits.met(evidence):
                norm = factor * float(np.sqrt(square))
                indefinite = 0.0 if mercer else _indefinite(rows, found.curvature)
                return Solved(
                    b, float(evidence.constants[0]), norm, evidence, found.reason, found.rounds, found.steps,
                    indefinite, state=found.state,
                )  # fmt: skip
        elif found.reason != "converged":
            return Solved(
                found.b, 0.0, float(np.sqrt(square)), found.evidence, found.reason, found.rounds, found.steps,
                state=found.state,
            )  # fmt: skip
        tol = min(0.1 * tol, 0.25 * limits.tol * square)


def _indefinite(rows: KernelRows, curvature: float) -> float:
    """The least eigenvalue where it can be had and is negative beyond rounding, or else a negative curvature seen."""
    if isinstance(rows, WholeMatrix) and rows.n <= 2000:
        return least_eigenvalue(rows.K)
    return never_negative(curvature, float(np.abs(rows.diagonal).max()))
