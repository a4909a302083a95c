"""Paths of least angle regression: followed to their end, recorded, read between breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import ParameterError
from epicycle.linear.lars._angles import angles_of
from epicycle.linear.lars._least_angle import LeastAngle, Step
from epicycle.linear.lasso._solver import LassoSolver


@dataclass(frozen=True)
class PathOptions:
    """The rules of a path, and where it ends.

    lasso : whether coefficients that reach zero leave.
    positive : whether coefficients have to be non-negative; lasso only.
    alpha : the smallest common correlation.
    max_columns : most active columns; None for as many as are independent.
    eps : share of its length squared that a column must have outside the span of the active ones.
    max_iter : most steps; None for 1000 and twenty for each column.
    """

    lasso: bool
    positive: bool = False
    alpha: float = 0.0
    max_columns: int | None = None
    eps: float = 2.2e-16
    max_iter: int | None = None


class PathRecord:
    """Points of one path, of which only the active coefficients are stored."""

    def __init__(self) -> None:
        self.alphas: list[float] = []
        self._columns: list[np.ndarray] = []
        self._values: list[np.ndarray] = []
        self._signs = np.empty(0)

    @property
    def n_steps(self) -> int:
        """Points without the first."""
        return len(self.alphas) - 1

    def add(self, path: LeastAngle, step: Step | None = None) -> None:
        """The point where the path, or a step of it, has come to."""
        self.alphas.append(path.C if step is None else step.alpha)
        if step is not None and step.alpha != path.C:  # a step of length zero: the coefficients are those before it
            self._columns.append(self._columns[-1])
            self._values.append(self._values[-1])
        else:
            self._columns.append(path.active)
            self._values.append(path.w.copy())
            self._signs = path.s

    def block(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns that points first .. last - 1 use, and their coefficients, of shape (columns, points)."""
        if last == first + 1:
            order = np.argsort(self._columns[first])
            return self._columns[first][order], self._values[first][order, None]
        used = np.unique(np.concatenate(self._columns[first:last]))
        W = np.zeros((len(used), last - first))
        for i in range(first, last):
            W[np.searchsorted(used, self._columns[i]), i - first] = self._values[i]
        return used, W

    def replace_last(self, path: LeastAngle) -> None:
        """The end of the path once more, without the rounding of the way there."""
        self._columns[-1], self._values[-1] = path.active, path.w.copy()

    def active(self) -> np.ndarray:
        """Columns at the end."""
        return self._columns[-1].copy()

    def matrix(self, p: int) -> sp.csc_array:
        """The coefficients, one column for each point."""
        starts = np.cumsum([0, *(len(columns) for columns in self._columns)])
        rows, values = np.concatenate(self._columns), np.concatenate(self._values)
        matrix = sp.csc_array((values, rows, starts), shape=(p, len(self.alphas)))
        matrix.sort_indices()
        return matrix

    def last(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Active columns, signs, coefficients and C, to go on from."""
        return self._columns[-1], self._signs, self._values[-1], self.alphas[-1]

    def state(self) -> dict[str, Any]:
        """All of it, as plain arrays."""
        return {
            "alphas": np.array(self.alphas),
            "lengths": np.array([len(columns) for columns in self._columns]),
            "columns": np.concatenate(self._columns),
            "values": np.concatenate(self._values),
            "signs": self._signs,
        }

    @classmethod
    def resumed(cls, state: Mapping[str, Any]) -> PathRecord:
        """The record of an interrupted fit."""
        record = cls()
        cuts = np.cumsum(np.asarray(state["lengths"]))[:-1]
        record.alphas = [float(alpha) for alpha in state["alphas"]]
        record._columns = np.split(np.asarray(state["columns"]), cuts)
        record._values = np.split(np.asarray(state["values"]), cuts)
        record._signs = np.asarray(state["signs"])
        return record


def follow(
    solver: LassoSolver,
    options: PathOptions,
    record: PathRecord | None = None,
    on_step: Callable[[PathRecord, LeastAngle, Step], bool] | None = None,
) -> tuple[LeastAngle, PathRecord, str]:
    """Follow a path to its end, from the end of a record where there is one.

    `on_step` is called after every step; a true answer ends the path. The last value is "converged", "max_iter" or
    "stopped".
    """
    p = solver.p
    limit = p if options.max_columns is None else min(options.max_columns, p)
    path = LeastAngle(
        angles_of(solver),
        lasso=options.lasso,
        positive=options.positive,
        alpha=options.alpha,
        max_columns=limit,
        eps=options.eps,
    )
    if record is None:
        record = PathRecord()
        record.add(path)
    else:
        path.resume(*record.last())
    most = 1000 + 20 * p if options.max_iter is None else options.max_iter
    reason = "max_iter"
    while record.n_steps < most:
        steps = path.steps()
        if not steps:
            break
        for step in steps:
            record.add(path, step)
            if on_step is not None and on_step(record, path, step):
                return path, record, "stopped"
    if path.finished:
        reason = "converged"
    path.settle_accounts()
    record.replace_last(path)
    return path, record, reason


def point_at_alpha(
    path: sp.csc_array, alphas: np.ndarray, intercepts: np.ndarray, alpha: float
) -> tuple[np.ndarray, float]:
    """Coefficients and intercept where the common correlation is alpha."""
    if not alpha >= alphas[-1]:
        raise ParameterError(f"alpha={alpha:g}; the path ends at {alphas[-1]:g}: fit with a smaller alpha")
    i = int(np.searchsorted(-alphas, -alpha, side="right"))  # alphas[i - 1] >= alpha > alphas[i]
    if i == 0 or i == len(alphas):
        at = 0 if i == 0 else i - 1
        return path[:, [at]].toarray()[:, 0], float(intercepts[at])
    return _mixed(path, intercepts, i, (alphas[i - 1] - alpha) / (alphas[i - 1] - alphas[i]))


def point_at_bound(path: sp.csc_array, intercepts: np.ndarray, bound: float) -> tuple[np.ndarray, float]:
    """Coefficients and intercept where their L1 norm first reaches the bound."""
    if not bound >= 0:
        raise ParameterError(f"bound={bound:g}; expected a number >= 0")
    norms = np.asarray(abs(path).sum(axis=0)).ravel()
    reached = np.flatnonzero(norms >= bound)
    if len(reached) == 0:
        raise ParameterError(f"bound={bound:g}; the norm along the path is at most {norms.max():g}")
    i = int(reached[0])
    if i == 0:
        return path[:, [0]].toarray()[:, 0], float(intercepts[0])
    return _mixed(path, intercepts, i, (bound - norms[i - 1]) / (norms[i] - norms[i - 1]))


def _mixed(path: sp.csc_array, intercepts: np.ndarray, i: int, share: float) -> tuple[np.ndarray, float]:
    """The point that divides piece i, from point i - 1 to point i."""
    before, after = (path[:, [j]].toarray()[:, 0] for j in (i - 1, i))
    return (1 - share) * before + share * after, float((1 - share) * intercepts[i - 1] + share * intercepts[i])
