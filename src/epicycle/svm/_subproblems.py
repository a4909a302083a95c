"""The problems of one machine: one for two classes, one for each pair or class of more; and their solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from epicycle.core._monitor import Monitor
from epicycle.linalg._shifted_systems import least_eigenvalue
from epicycle.svm._decomposition import Decomposition, Limits
from epicycle.svm._dual_problem import DualProblem, Evidence
from epicycle.svm._kernel_rows import KernelRows, WholeMatrix

Array = np.ndarray
_TOUCHING = 1e-6  # of the longest row: hulls that come closer than this are taken to meet
_MOST_EPOCHS = 2000  # of coordinate descent, each up to 20 sweeps over a set of rows; hundreds of pairs may be hopeless
_SPECTRUM_ROWS = 2000  # up to which the least eigenvalue of a kernel matrix is computed
_NEGATIVE = 1e-6  # of the largest k(x, x): a curvature below minus this is no rounding


@dataclass(frozen=True)
class Options:
    """Tolerances and limits of a solution."""

    tol: float
    max_iter: int
    cache_bytes: float
    #: Of coordinate descent; None for sequential minimal optimisation.
    seed: int | None = None
    shrinking: bool = True


class Split(NamedTuple):
    """The rows of one function: their numbers, signs, arrays shared with other functions, labels, name in messages."""

    rows: Array
    sign: Array
    parts: Sequence[Array]
    labels: tuple[Any, Any]
    name: str


@dataclass(frozen=True)
class Subproblem:
    """Rows (by number), the dual problem on them, and how its solution becomes a function.

    `form` is "plain" (the coefficients are the variables), "nu" (the variables are divided by the margin they lead to),
    "hull" (the variables are the nearest points of two convex hulls) or "tube" (the variables of the rows above a tube,
    then those of the rows below it).
    """

    rows: Array
    problem: DualProblem
    form: str = "plain"
    #: The problem whose solution the scaled variables are, for "hull".
    scaled: DualProblem | None = None
    #: `rows` as the arrays that they have in common with other problems; all rows where it is empty.
    parts: Sequence[Array] = ()
    #: Added to the constant of the function.
    shift: float = 0.0
    #: Name in messages, such as " between 'a' and 'b'".
    name: str = ""

    def function(self, b: Array, constants: Array) -> tuple[Array, float, float]:
        """(coefficients, intercept, the factor between variables and coefficients)."""
        if self.form == "plain":
            return b, float(constants[0]), 1.0
        if self.form == "tube":  # the two constants are those of the upper and the lower edge
            return b, float(constants.mean()), 1.0
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
        values = (self.intercept, self.norm, e.objective, e.dual, e.primal, e.gap, e.violation)
        numbers = [*values, self.rounds, self.steps, self.indefinite]
        return {"b": self.coefficients, "numbers": np.array(numbers), "constants": e.constants, "reason": self.reason}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Solved:
        x = [float(v) for v in np.asarray(state["numbers"])]
        objective, dual, primal, gap, violation = x[2:7]
        evidence = Evidence(objective, dual, primal, gap, violation, np.asarray(state["constants"]))
        b = np.asarray(state["b"], dtype=np.float64)
        return cls(b, x[0], x[1], evidence, str(state["reason"]), int(x[7]), int(x[8]), x[9])


# ------------------------------------------------------------------------------------------------ the problems


def soft_margin(split: Split, C: Array, *, squared: bool, constant: bool = True) -> Subproblem:
    """1/2 |f|^2 + sum_i C_i xi_i, or C_i xi_i^2 / 2 for the squared slack."""
    sign = split.sign
    top = np.full(len(sign), np.inf) if squared else C
    lo, hi = np.where(sign > 0, 0.0, -top), np.where(sign > 0, top, 0.0)
    ridge = 1 / C if squared else None
    problem = DualProblem(sign, lo, hi, ridge=ridge, constant=constant, stretches=True)
    return Subproblem(split.rows, problem, parts=split.parts, name=split.name)


def hard_margin(split: Split) -> Subproblem:
    """The largest margin that nothing lies in, by its dual: the nearest points of the two convex hulls."""
    sign = split.sign
    group = (sign < 0).astype(np.int64)
    start = np.zeros(len(sign))
    start[[int(np.argmax(sign > 0)), int(np.argmax(sign < 0))]] = 1.0, -1.0
    top = np.full(len(sign), np.inf)
    lo, hi = np.where(sign > 0, 0.0, -top), np.where(sign > 0, top, 0.0)
    hull = DualProblem(np.zeros(len(sign)), lo, hi, group=group, start=start)
    scaled = DualProblem(sign, lo, hi, stretches=True)
    return Subproblem(split.rows, hull, "hull", scaled, split.parts, name=split.name)


def nu_machine(split: Split, weight: Array, nu: float) -> Subproblem:
    """1/2 |f|^2 - nu rho sum w + sum w_i xi_i, with the margin rho: at most a share nu of the weight lies inside it."""
    sign = split.sign
    group = (sign < 0).astype(np.int64)
    start = np.zeros(len(sign))
    for g in (0, 1):
        mine = np.flatnonzero(group == g)
        start[mine] = filled(weight[mine], nu * weight.sum() / 2) * (1 if g == 0 else -1)
    lo, hi = np.where(sign > 0, 0.0, -weight), np.where(sign > 0, weight, 0.0)
    problem = DualProblem(np.zeros(len(sign)), lo, hi, group=group, start=start)
    return Subproblem(split.rows, problem, "nu", parts=split.parts, name=split.name)


def filled(top: Array, total: float) -> Array:
    """The first entries at their upper bound, as many as give the total."""
    before = np.concatenate([[0.0], np.cumsum(top)[:-1]])
    return np.clip(total - before, 0.0, top)


def interim(sub: Subproblem, rows: KernelRows, x: Array) -> Solved:
    """The function of variables x that are not optimal yet."""
    problem = sub.problem
    f = rows.scores(x)
    up, low = problem.moves(x, problem.slopes(x, f))
    b, intercept, factor = sub.function(x, problem.constants(x, up, low))
    evidence = problem.evidence(x, f, 1.0)
    if not np.isfinite(factor):
        b, intercept = x, 0.0
    return Solved(b, intercept, 0.0, evidence, "stopped", 1, 0)


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
    # Only a hopeless problem needs as many steps as the default allows.
    steps = options.max_iter if options.max_iter >= 0 else max(10_000_000, 100 * sub.problem.n)
    rounds = _MOST_EPOCHS if options.seed is not None and options.max_iter < 0 else np.inf
    limits = Limits(options.tol, options.tol, steps, options.cache_bytes / 4, options.shrinking, rounds)
    if sub.form == "hull":
        return _nearest_points(sub, rows, limits, mercer, monitor, state)
    found = Decomposition(sub.problem, rows, limits, state, options.seed).run(monitor)
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
        now = replace(limits, tol=tol, round_steps=50 * problem.n + 1000, least_square=touching)
        found = Decomposition(problem, rows, now, state).run(monitor)
        state = {"b": found.b, "rounds": found.rounds, "steps": found.steps}
        square = float(found.b @ found.f)
        reason = found.reason
        if reason == "converged" and found.evidence.violation == found.evidence.gap == 0:
            reason = "stalled"  # a smaller tolerance finds nothing to do
        if reason == "diverged" or square <= touching:
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
            met = limits.met(evidence)
            if met or reason != "converged":
                norm = factor * float(np.sqrt(square))
                indefinite = 0.0 if mercer else _indefinite(rows, found.curvature)
                how = (evidence, found.reason if met else reason, found.rounds, found.steps, indefinite)
                return Solved(b, float(evidence.constants[0]), norm, *how, state=found.state)
        elif reason != "converged":
            how = (found.evidence, reason, found.rounds, found.steps, 0.0)
            return Solved(found.b, 0.0, float(np.sqrt(square)), *how, state=found.state)
        tol = min(0.1 * tol, 0.25 * limits.tol * square)


def _indefinite(rows: KernelRows, curvature: float) -> float:
    """The least eigenvalue where it can be had and is negative beyond rounding, or else a negative curvature seen."""
    if isinstance(rows, WholeMatrix) and rows.n <= _SPECTRUM_ROWS:
        return least_eigenvalue(rows.K)
    return curvature if curvature < -_NEGATIVE * max(float(np.abs(rows.diagonal).max()), 1e-300) else 0.0
