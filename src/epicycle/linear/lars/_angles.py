"""Correlations of columns with residuals that move along a direction, as least angle regression asks for them.

Where C is the common correlation of the active columns and falls by g, c_j falls by g f_j (see
:mod:`epicycle.linear.lars._least_angle`). The numbers come from a Gram matrix, or from columns in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from epicycle import _native
from epicycle.data import ArrayData, Data
from epicycle.linear.lasso._problem import LassoProblem, lasso_problem, moment_problem
from epicycle.linear.lasso._solver import ColumnSolver, LassoSolver, MomentSolver

#: Columns up to which the Gram matrix pays in memory, where there are twice as many rows.
MAX_GRAM_IN_MEMORY = 2000
#: Columns outside that are looked at first.
FIRST_LOOK = 64
#: Entries of X up to which it is quicker to look at all of them.
SMALL = 3e5


class Angles(ABC):
    """Correlations of all columns with the residuals, and how they change along a direction."""

    p: int
    xy: np.ndarray
    yy: float
    norm: np.ndarray
    #: Most columns that can be independent.
    max_rank: int
    #: c, up to date where a method below says so.
    c: np.ndarray

    @abstractmethod
    def gram_with(self, j: int, active: np.ndarray) -> np.ndarray:
        """<x_j, x_a> for the active columns."""

    @abstractmethod
    def turn(self, active: np.ndarray, v: np.ndarray) -> None:
        """From now on w_A moves along v."""

    @abstractmethod
    def first_entry(
        self, C: float, outside: np.ndarray, left: np.ndarray, positive: bool, limit: float
    ) -> tuple[float, int]:
        """(g, j): how far C falls, at most `limit`, until a column outside reaches it; j is -1 at the limit.

        Columns that have just `left` are at C, and reach it from the other side only.
        """

    @abstractmethod
    def slopes(self, columns: np.ndarray) -> np.ndarray:
        """f of some columns, in the present direction."""

    @abstractmethod
    def advance(self, g: float) -> None:
        """Let C fall by g."""

    @abstractmethod
    def tied(self, C: float, outside: np.ndarray, positive: bool, tolerance: np.ndarray) -> np.ndarray:
        """Columns outside whose correlation is C but for the tolerance; their c is up to date."""

    @abstractmethod
    def refresh(self, active: np.ndarray, w: np.ndarray) -> float:
        """Start anew from these coefficients of the active columns; returns |r|^2."""

    @abstractmethod
    def look_at_all(self) -> None:
        """Bring every correlation up to date."""


def _falls_to(C: float, c: np.ndarray, f: np.ndarray, left: np.ndarray, positive: bool) -> np.ndarray:
    """The fall g of C at which each column has |c_j - g f_j| = C - g (c_j - g f_j for positive lassos)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        g = np.where((f < 1) & ~(left & (c > 0)), np.maximum(C - c, 0.0) / (1 - f), np.inf)
        if not positive:
            below = np.where((f > -1) & ~(left & (c < 0)), np.maximum(C + c, 0.0) / (1 + f), np.inf)
            g = np.minimum(g, below)
    return g


def _first_of_all(
    C: float, c: np.ndarray, f: np.ndarray, outside: np.ndarray, left: np.ndarray, positive: bool, limit: float
) -> tuple[float, int]:
    g = _falls_to(C, c, f, left, positive)
    g[~outside] = np.inf
    j = int(np.argmin(g))
    return (float(g[j]), j) if g[j] < limit else (limit, -1)


class GramAngles(Angles):
    """From the second moments: everything is in the Gram matrix."""

    def __init__(self, solver: MomentSolver) -> None:
        self.p, self.xy, self.yy, self.norm = solver.p, solver.xy, solver.yy, solver.norm
        self.G, self.c, self.max_rank = solver.G, solver.xy.copy(), solver.p
        self._f = np.zeros(self.p)

    def gram_with(self, j: int, active: np.ndarray) -> np.ndarray:
        return np.asarray(self.G[j, active])

    def turn(self, active: np.ndarray, v: np.ndarray) -> None:
        self._f = np.zeros(self.p)
        _native.linear.gram_lasso_move(self.G, active, -v, self._f)

    def first_entry(
        self, C: float, outside: np.ndarray, left: np.ndarray, positive: bool, limit: float
    ) -> tuple[float, int]:
        return _first_of_all(C, self.c, self._f, outside, left, positive, limit)

    def slopes(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self._f[columns])

    def advance(self, g: float) -> None:
        self.c -= g * self._f

    def tied(self, C: float, outside: np.ndarray, positive: bool, tolerance: np.ndarray) -> np.ndarray:
        size = self.c if positive else np.abs(self.c)
        return np.flatnonzero(outside & (size >= C - tolerance))

    def refresh(self, active: np.ndarray, w: np.ndarray) -> float:
        self.c = self.xy.copy()
        _native.linear.gram_lasso_move(self.G, active, w, self.c)
        return max(self.yy - float(w @ (self.xy[active] + self.c[active])), 0.0)

    def look_at_all(self) -> None:
        """They always are."""


class ColumnAngles(Angles):
    """From columns in memory, which are read only where they may be the next to enter.

    |c_j| changes by at most |x_j| times the way of the residuals since it was computed, so that a column whose old
    correlation is far enough below C cannot be the next one.
    """

    def __init__(self, solver: ColumnSolver) -> None:
        self.design, self.y = solver.design, solver.y
        self.p, self.xy, self.yy, self.norm = solver.p, solver.xy, solver.yy, solver.norm
        self.c, self.r = solver.xy.copy(), solver.y.copy()
        rows = self.design.n if self.design.v is None else int(np.count_nonzero(self.design.v))
        self.max_rank = min(self.p, rows - 1 if self.design.centre else rows)
        self._small = self.design.cost * self.p <= SMALL
        self._way, self._seen = 0.0, np.zeros(self.p)
        self._h, self._speed = np.zeros(self.design.n), 0.0
        self._f = np.zeros(self.p)
        self._known = np.empty(0, dtype=np.int64)  # columns whose c and f belong to the present direction

    def gram_with(self, j: int, active: np.ndarray) -> np.ndarray:
        x = np.zeros(self.design.n)
        self.design.subtract(np.array([j]), np.array([-1.0]), x)
        return self._correlate(x, active)

    def _correlate(self, r: np.ndarray, columns: np.ndarray) -> np.ndarray:
        out = np.empty(self.p)
        self.design.correlations(self.design.weighted(r), columns, out)
        return np.asarray(out[columns])

    def turn(self, active: np.ndarray, v: np.ndarray) -> None:
        self._h = np.zeros(self.design.n)
        self.design.subtract(active, -v, self._h)
        self._speed = float(np.sqrt(self.design.weighted(self._h) @ self._h))
        self._known = np.empty(0, dtype=np.int64)

    def _reach(self, positive: bool) -> np.ndarray:
        """A bound of |c_j| at the present residuals."""
        return (self.c if positive else np.abs(self.c)) + self.norm * (self._way - self._seen)

    def _update(self, columns: np.ndarray) -> None:
        stale = columns[self._seen[columns] < self._way]
        if len(stale):
            self.c[stale] = self._correlate(self.r, stale)
            self._seen[stale] = self._way

    def _look_at(self, columns: np.ndarray) -> None:
        """Bring c up to date and compute f: a column is read once for both."""
        stale = columns[self._seen[columns] < self._way]
        both = np.empty((2, self.p))
        self.design.correlations(self.design.weighted(np.stack((self.r, self._h))), columns, both)
        self.c[stale], self._f[columns] = both[0, stale], both[1, columns]
        self._seen[stale] = self._way

    def slopes(self, columns: np.ndarray) -> np.ndarray:
        return self._correlate(self._h, columns)

    def first_entry(
        self, C: float, outside: np.ndarray, left: np.ndarray, positive: bool, limit: float
    ) -> tuple[float, int]:
        if self._small:
            self._known = np.arange(self.p)
            self._update(self._known)  # moves at full rank and refreshes leave correlations behind
            self._f = self._correlate(self._h, self._known)
            return _first_of_all(C, self.c, self._f, outside, left, positive, limit)
        with np.errstate(over="ignore"):
            least = np.maximum(C - self._reach(positive), 0.0) / (1 + self.norm * self._speed)
        least[~outside] = np.inf
        best, entering = limit, -1
        known = np.zeros(self.p, dtype=bool)
        look = np.flatnonzero(least < limit)
        if len(look) > FIRST_LOOK:
            look = look[np.argpartition(least[look], FIRST_LOOK)[:FIRST_LOOK]]
        while len(look):
            look.sort()
            self._look_at(look)
            known[look] = True
            g = _falls_to(C, self.c[look], self._f[look], left[look], positive)
            i = int(np.argmin(g))
            if g[i] < best:
                best, entering = float(g[i]), int(look[i])
            look = np.flatnonzero((least < best) & ~known)
        self._known = np.flatnonzero(known)
        return best, entering

    def advance(self, g: float) -> None:
        self.r -= g * self._h
        self._way += g * self._speed
        self.c[self._known] -= g * self._f[self._known]
        self._seen[self._known] = self._way

    def tied(self, C: float, outside: np.ndarray, positive: bool, tolerance: np.ndarray) -> np.ndarray:
        near = np.flatnonzero(outside & (self._reach(positive) >= C - tolerance))
        self._update(near)
        size = self.c[near] if positive else np.abs(self.c[near])
        return near[size >= C - tolerance[near]]

    def refresh(self, active: np.ndarray, w: np.ndarray) -> float:
        before, self.r = self.r, self.y.copy()
        self.design.subtract(active, w, self.r)
        difference = self.r - before
        self._way += float(np.sqrt(self.design.weighted(difference) @ difference))
        self._known = np.empty(0, dtype=np.int64)
        u = self.design.weighted(self.r)
        return float(u @ self.r)

    def look_at_all(self) -> None:
        self.design.correlations(self.design.weighted(self.r), None, self.c)
        self._seen[:] = self._way


def lars_problem(data: Data, *, centre: bool, n_jobs: int | None) -> LassoProblem:
    """Second moments where rows are many or not in memory, columns otherwise."""
    p = data.n_features
    if isinstance(data, ArrayData) and not data.sparse and p <= MAX_GRAM_IN_MEMORY and data.n_rows >= 2 * p:
        return moment_problem(data, centre, n_jobs)
    return lasso_problem(data, centre=centre, n_jobs=n_jobs, many=True)


def angles_of(solver: LassoSolver) -> Angles:
    """Correlations as the steps ask for them."""
    if isinstance(solver, MomentSolver):
        return GramAngles(solver)
    assert isinstance(solver, ColumnSolver)
    return ColumnAngles(solver)
