"""Coordinate descent on the dual, one row after the other in random order, for rows in memory.

    max D(beta) = sum_i y_i beta_i - epsilon |beta_i| - d_i beta_i^2 / 2 - |theta(beta)|^2 / 2

with 0 <= y_i beta_i <= c_i (classification) or |beta_i| <= c_i (regression); squared losses have no bound and
d_i = 1 / (2 c_i). A pass costs two products with the rows that are not set aside. Its visits add up to an estimate of
the duality gap; when that is small enough, the gap is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native, engine
from epicycle.core._monitor import Monitor
from epicycle.core._threads import n_threads
from epicycle.data import ArrayData
from epicycle.engine._ordered import in_order
from epicycle.svm.linear._problem import MarginProblem, Optimum, loss_statistic

#: Problems that are solved side by side: each keeps four numbers a row.
_PROBLEMS_AT_ONCE = 4
#: Stored entries that a call of the kernel visits, more or less: callbacks run between calls.
_ENTRIES_PER_CALL = 5e7
#: Columns of the table of the kernel, and places in its vector of numbers and in its reports.
TARGET, BOUND, SQUARE, BETA = range(4)
ACTIVE, WORST, DUAL = range(3)
GAP, VALUE, KEPT, VIOLATION = range(4)


@dataclass
class Descent:
    """The state of one problem."""

    data: ArrayData
    problem: MarginProblem
    k: int
    seed: int
    tol: float
    table: np.ndarray
    order: np.ndarray
    w: np.ndarray
    number: np.ndarray
    passes: int
    target: float
    last: np.ndarray
    optimum: Optimum | None = None

    @classmethod
    def begin(
        cls, data: ArrayData, problem: MarginProblem, k: int, square: np.ndarray, seed: int, tol: float
    ) -> Descent:
        """All beta zero, but for rows that are zero themselves: theirs are known."""
        n, loss = data.n_rows, problem
        weight = problem.weights(data.rows(0, n))
        table = np.zeros((n, 4))
        table[:, TARGET] = problem.targets(np.asarray(data.y), k)
        table[:, BOUND] = problem.C if weight is None else problem.C * weight
        table[:, SQUARE] = square
        y, c = table[:, TARGET], table[:, BOUND]
        if loss.squared:
            table[:, SQUARE] += np.divide(0.5, c, out=np.zeros(n), where=c > 0)
        flat = (table[:, SQUARE] <= 0) & (c > 0)
        value = 0.0
        if flat.any():
            outside = np.abs(y[flat]) > loss.epsilon if loss.regression else np.ones(int(flat.sum()), dtype=bool)
            table[flat, BETA] = np.where(outside, np.sign(y[flat]) * c[flat], 0.0)
            value = float((table[flat, BETA] * y[flat] - loss.epsilon * np.abs(table[flat, BETA])).sum())
        order = np.flatnonzero((c > 0) & ~flat).astype(np.int64)
        number = np.array([float(len(order)), np.inf, value])
        w, last = np.zeros(data.n_features + 1), np.zeros((1, 4))
        return cls(data, problem, k, seed, tol, table, order, w, number, 0, tol, last)

    # ------------------------------------------------------------------- a pass

    def run(self, passes: int) -> np.ndarray:
        """Up to so many passes, fewer where the end is reached; one row of facts for each, and at least the last."""
        report = np.zeros((passes, 4))
        done = 0
        while done < passes and self.optimum is None:
            done += self._call(report[done:])
            gap, value = report[done - 1, GAP], report[done - 1, VALUE]
            ratio = gap / max(value + gap, 1e-300)
            if ratio <= self.target or self.number[ACTIVE] == 0:
                found = self.measure()
                report[done - 1, [GAP, VALUE]] = found.gap, found.primal - found.gap
                self.target = 0.7 * min(self.target, ratio)
        if done:
            self.last = report[done - 1 : done].copy()
        return report[:done] if done else self.last

    def _call(self, report: np.ndarray) -> int:
        problem, state = self.problem, (self.table, self.w, self.order, self.number)
        passes = _native.svm.Passes(self.seed, self.passes, self.target, report)
        done = _native.svm.dual_passes(self.data.X, problem.loss(), problem.scale, *state, passes)
        self.passes += done
        return done

    def measure(self, *, final: bool = False) -> Optimum:
        """The gap itself, at theta(beta) summed afresh. Where it is too large, all rows are visited again."""
        self.w = _native.svm.dual_weights(self.data.X, self.table, self.problem.scale)
        y, c, beta = self.table[:, TARGET], self.table[:, BOUND], self.table[:, BETA]
        half = 0.5 * float(self.w @ self.w)
        linear = float(y @ beta) - self.problem.epsilon * float(np.abs(beta).sum())
        if self.problem.squared:
            linear -= float(np.divide(beta * beta, 4 * c, out=np.zeros(len(c)), where=c > 0).sum())
        self.number[DUAL] = linear - half
        b = self.problem.scale * float(self.w[-1])
        (loss,) = engine.sum(loss_statistic, self.data, self.problem, self.k, self.w[:-1], b, n_jobs=1)
        primal = half + self.problem.C * loss
        found = Optimum(self.w.copy(), primal, max(primal - float(self.number[DUAL]), 0.0))
        if found.gap <= self.tol * primal or final:
            self.optimum = found
        self.number[ACTIVE], self.number[WORST] = float(len(self.order)), np.inf
        return found

    # ------------------------------------------------------------------- checkpoints

    def state(self) -> dict[str, Any]:
        return {
            "beta": self.table[:, BETA].copy(),
            **{name: getattr(self, name).copy() for name in ("order", "w", "number", "last")},
            **{name: getattr(self, name) for name in ("passes", "target", "seed")},
            "primal": np.nan if self.optimum is None else self.optimum.primal,
            "gap": np.nan if self.optimum is None else self.optimum.gap,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.table[:, BETA] = state["beta"]
        self.order[:], self.w[:], self.number[:] = state["order"], state["w"], state["number"]
        self.passes, self.target, self.seed = int(state["passes"]), float(state["target"]), int(state["seed"])
        self.last = np.array(state["last"])
        if np.isfinite(state["gap"]):
            self.optimum = Optimum(self.w.copy(), float(state["primal"]), float(state["gap"]))


def dual_descent(
    data: ArrayData,
    problem: MarginProblem,
    *,
    tol: float,
    max_iter: int,
    seed: int,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
    n_jobs: int | None,
) -> tuple[list[Optimum], str, dict[str, Any]]:
    """Solve all problems, a few side by side: (optima, why it ended, state to go on from)."""
    X: Any = data.X
    square = _native.core.row_squares(X)
    square += problem.scale**2
    entries = X.nnz if sp.issparse(X) else X.size
    # One pass at a time where there are callbacks; the passes themselves do not depend on it.
    together = 1 if type(monitor) is not Monitor else int(np.clip(_ENTRIES_PER_CALL / max(entries, 1), 1, 64))
    optima = [] if state is None else _unpacked(state)
    resumed = None if state is None else state["running"]
    step, stopped, kept = monitor.history().n_iter, False, {}
    while len(optima) < problem.n_problems:
        group = range(len(optima), min(len(optima) + _PROBLEMS_AT_ONCE, problem.n_problems))
        running = [Descent.begin(data, problem, k, square, seed, tol) for k in group]
        if resumed is not None:
            for one, saved in zip(running, resumed, strict=True):
                one.restore(saved)
            resumed = None
        threads = min(n_threads(float(entries) * len(running), n_jobs), len(running))
        snapshot = partial(_packed, list(optima), running)
        used = max(one.passes for one in running)
        while not stopped and used < max_iter and any(one.optimum is None for one in running):
            reports: list[np.ndarray] = []
            in_order(
                iter(running), partial(Descent.run, passes=min(together, max_iter - used)), reports.append, threads
            )
            theta = _stacked(optima, running, problem)
            made = max(len(report) for report in reports)
            used += made
            for j in range(made):
                facts = [report[min(j, len(report) - 1)] for report in reports]
                values = [f[VALUE] + f[GAP] for f in facts]
                step += 1
                gap = max(f[GAP] / max(v, 1e-300) for f, v in zip(facts, values, strict=True))
                objective, kept_rows = sum(o.primal for o in optima) + sum(values), sum(f[KEPT] for f in facts)
                stopped |= monitor(step, theta.ravel(), objective=objective, state=snapshot, gap=gap, rows=kept_rows)
        kept = snapshot()
        optima += [one.measure(final=True) if one.optimum is None else one.optimum for one in running]
        if stopped:  # what was not begun stays at zero, where the dual value is zero too
            optima += [_at_zero(data, problem, k) for k in range(len(optima), problem.n_problems)]
    return optima, "stopped" if stopped else "max_iter", kept


def _stacked(optima: list[Optimum], running: list[Descent], problem: MarginProblem) -> np.ndarray:
    theta = np.zeros((problem.n_problems, problem.n_features + 1))
    for k, optimum in enumerate(optima):
        theta[k] = optimum.theta
    for one in running:
        theta[one.k] = one.w
    return theta


def _packed(optima: list[Optimum], running: list[Descent]) -> dict[str, Any]:
    return {
        **{name: np.array([getattr(o, name) for o in optima]) for name in ("theta", "primal", "gap")},
        "running": [one.state() for one in running],
    }


def _unpacked(state: Mapping[str, Any]) -> list[Optimum]:
    saved = zip(state["theta"], state["primal"], state["gap"], strict=True)
    return [Optimum(np.array(theta), float(primal), float(gap)) for theta, primal, gap in saved]


def _at_zero(data: ArrayData, problem: MarginProblem, k: int) -> Optimum:
    (loss,) = engine.sum(loss_statistic, data, problem, k, np.zeros(data.n_features), 0.0, n_jobs=1)
    return Optimum(np.zeros(data.n_features + 1), problem.C * loss, problem.C * loss)
