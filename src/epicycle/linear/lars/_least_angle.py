"""Least angle regression from one breakpoint of its path to the next, also as the homotopy of the lasso.

Columns and y are about their means, row weights sum to one; r = y - Xw and c_j = <x_j, r>. On the path all columns of
the active set A have |c_j| = C, all others less. With s the signs of c_A and G the Gram matrix, while C falls to C - g,

    w_A moves by g v,   v = G_AA^-1 s,        c_j falls by g f_j,   f = G_.A v   (f_A = s),

until a column from outside has |c_j| = C - g and enters. Coefficients of the lasso have the sign of their correlation,
so that in its path a column leaves where its coefficient reaches zero (Efron, Hastie, Johnstone and Tibshirani 2004).
C is the alpha at which :class:`~epicycle.Lasso` has the same solution.

Several events may fall together: they are taken one by one, without moving, and of those that enter a lasso only the
ones stay whose coefficient then moves away from zero with the right sign. The direction v of a lasso minimises v'Gv / 2
- s'v under these conditions on signs, so that Lawson and Hanson's rule for non-negative least squares decides about
columns that left and would now fall behind C: each exchange lowers that minimum, and none repeats. A column that
depends on the active ones keeps |c_j| = C by itself and is passed over for as long as they are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import _native
from epicycle.linear.lars._angles import Angles

EPS = float(np.finfo(np.float64).eps)
#: Share of its fall by which a correlation must fall behind that of the active columns.
BEHIND = 1e-9
#: Steps after which coefficients and correlations are computed anew, so that rounding does not pile up.
REFRESH_EVERY = 16


@dataclass(frozen=True)
class Event:
    """A column that entered or left, its correlation coefficient with the residuals at that time."""

    column: int
    enters: bool
    correlation: float


@dataclass(frozen=True)
class Step:
    """One step: the event at its beginning, and where it ended."""

    event: Event
    alpha: float
    half_square: float


def _record(events: list[Event], event: Event) -> None:
    """Add an event, or take back the opposite one of the same column: together they are none."""
    before = [e for e in events if e.column != event.column]
    events[:] = [*events, event] if len(before) == len(events) else before


class LeastAngle:
    """The path: call :meth:`steps` until it gives no more.

    Parameters
    ----------
    angles : Angles
    lasso : whether coefficients that reach zero leave.
    positive : whether only positive correlations count; lasso only.
    alpha : where the path ends.
    max_columns : most active columns.
    eps : share of its length squared that a column must have outside the span of the active ones, in units of their
        number.
    """

    def __init__(
        self, angles: Angles, *, lasso: bool, positive: bool, alpha: float, max_columns: int, eps: float
    ) -> None:
        self.angles, self.lasso, self.positive = angles, lasso, positive
        self.end, self.max_columns, self.eps = alpha, max_columns, eps
        self.active = np.empty(0, dtype=np.int64)
        self.s, self.w = np.empty(0), np.empty(0)
        self._L = np.zeros((8, 8))
        self._out = angles.norm > 0  # columns that may enter
        self._v = np.empty(0)
        self._barred = np.zeros(angles.p, dtype=bool)  # columns that left at this C
        self._side = np.zeros(angles.p)  # the signs that they had
        self._entering = -1  # what the last move ended with
        self._leaving: int | None = None
        self._moves = 0
        self._most_idle = 100 + 10 * angles.p  # moves in a row to no event
        self.passed_over = False  # whether a column was, because it depends on the active ones
        size = angles.c if positive else np.abs(angles.c)
        self.C = max(float(size[self._out].max(initial=0.0)), 0.0)
        self.rr = angles.yy
        self._floor = 16 * EPS * float(angles.norm.max(initial=0.0) * np.sqrt(angles.yy))
        self.finished = not alpha < self.C

    @property
    def coef(self) -> np.ndarray:
        """All coefficients."""
        w = np.zeros(self.angles.p)
        w[self.active] = self.w
        return w

    def resume(self, active: np.ndarray, s: np.ndarray, w: np.ndarray, C: float) -> None:
        """Go on from a point of the path."""
        for j, sign in zip(active, s, strict=True):
            self._enter(int(j), float(sign))
        self.w, self.C = w.copy(), C
        self.rr = self.angles.refresh(self.active, self.w)
        self.angles.look_at_all()
        at_zero = np.flatnonzero((w == 0) & self.lasso)
        self._leaving = int(at_zero[0]) if len(at_zero) else None
        self.finished = not self.end < self.C

    def steps(self) -> list[Step]:
        """Take the events that are due, move on to the next; one step for each event, all but the last of length 0.

        None where the path has ended, or where rounding alone makes what looks like events.
        """
        for _ in range(self._most_idle):
            if self.finished:
                break
            events = self._settle()
            if self.finished and not events:
                break
            start, before = self.C, self.rr / 2
            if not self.finished:
                self._move()
            if events:
                held = [Step(event, start, before) for event in events[:-1]]
                return [*held, Step(events[-1], self.C, self.rr / 2)]
        return []

    # ---------------------------------------------------------------- events

    def _tolerance(self) -> np.ndarray:
        """The rounding of correlations."""
        length = float(np.sqrt(self.angles.yy)) + float(self.angles.norm[self.active] @ np.abs(self.w))
        return 128 * EPS * (self.angles.norm * length + self.C)

    def _settle(self) -> list[Event]:
        """The active set for the next move, and its direction."""
        events: list[Event] = []
        if self._leaving is not None:
            events.append(self._event(int(self.active[self._leaving]), enters=False))
            self._leave(self._leaving)
        ties = self.angles.tied(self.C, self._out & ~self._barred, self.positive, self._tolerance())
        j = self._entering
        if j >= 0 and self._out[j] and not self._barred[j] and j not in ties:
            ties = np.append(ties, j)
        self._leaving, self._entering = None, -1
        if len(ties) > 1:
            ties = ties[np.argsort(-np.abs(self.angles.c[ties]), kind="stable")]
        for j in ties:
            if len(self.active) >= self.max_columns:
                self.finished = True
                break
            if len(self.active) >= self.angles.max_rank:
                break
            if self._enter(int(j), 1.0 if self.angles.c[j] > 0 else -1.0):
                events.append(self._event(int(j), enters=True))
                if self.lasso:
                    self._take_back(events)
        self._v = self._solve(self.s)
        self.angles.turn(self.active, self._v)
        if self.lasso:
            self._readmit(events)
        return events

    def _readmit(self, events: list[Event]) -> None:
        """Columns that left at this C come back where they would stay above it.

        Each exchange lowers a minimum, so that no active set comes twice: where one does, it is rounding that decides
        between columns that nearly depend on each other, and any of these sets will do.
        """
        seen: set[bytes] = set()
        for _ in range(self._most_idle):
            waiting = np.flatnonzero(self._out & self._barred)
            if len(waiting) == 0 or len(self.active) >= min(self.max_columns, self.angles.max_rank):
                return
            state = np.sort(self.active).tobytes() + self._out.tobytes()  # of what may enter: some are passed over
            if state in seen:
                return
            seen.add(state)
            behind = 1.0 - self._side[waiting] * self.angles.slopes(waiting)
            j = int(waiting[np.argmax(behind)])
            if not behind.max() > BEHIND:
                return
            if not self._enter(j, float(self._side[j])):
                continue
            _record(events, self._event(j, enters=True))
            v = np.append(self._v, 0.0)
            while True:
                target = self._solve(self.s)
                wrong = np.flatnonzero((self.w == 0) & (self.s * target <= 0))
                if len(wrong) == 0:
                    break
                share = self.s[wrong] * v[wrong] / (self.s[wrong] * (v[wrong] - target[wrong]))
                i = int(wrong[np.argmin(share)])
                v = np.delete(v + share.min() * (target - v), i)
                _record(events, self._event(int(self.active[i]), enters=False))
                self._leave(i)
            self._v = target
            self.angles.turn(self.active, self._v)

    def _take_back(self, events: list[Event]) -> None:
        """Columns that have just entered and would move to the wrong side stay out."""
        while True:
            rise = self.s * self._solve(self.s)
            wrong = np.flatnonzero((self.w == 0) & (rise < 0))
            if len(wrong) == 0:
                return
            i = int(wrong[np.argmin(rise[wrong])])
            _record(events, self._event(int(self.active[i]), enters=False))
            self._leave(i)

    def _event(self, j: int, *, enters: bool) -> Event:
        length = float(self.angles.norm[j] * np.sqrt(self.rr))
        return Event(j, enters, min(self.C / length, 1.0) if length > 0 else 0.0)

    def _enter(self, j: int, sign: float) -> bool:
        """Take column j into the factor; False where it depends on the active ones."""
        k = len(self.active)
        if k == len(self._L):
            grown = np.zeros((2 * k, 2 * k))
            grown[:k, :k] = self._L
            self._L = grown
        square = float(self.angles.norm[j] ** 2)
        products = np.ascontiguousarray(self.angles.gram_with(j, self.active))
        least = 10 * (k + 1) * self.eps * square
        self._out[j] = False
        if _native.linear.cholesky_append(self._L, k, products, square, least) <= least:
            self.passed_over = True
            return False
        self.active = np.append(self.active, j)
        self.s, self.w = np.append(self.s, sign), np.append(self.w, 0.0)
        return True

    def _leave(self, i: int) -> None:
        self._barred[self.active[i]], self._side[self.active[i]] = True, self.s[i]
        _native.linear.cholesky_remove(self._L, len(self.active), i)
        self.active = np.delete(self.active, i)
        self.s, self.w = np.delete(self.s, i), np.delete(self.w, i)
        self._out = self.angles.norm > 0  # what depended on it may enter now
        self._out[self.active] = False

    def settle_accounts(self) -> None:
        """Coefficients, residuals and all correlations anew, for the certificate."""
        self.w = np.where((self.w == 0) & self.lasso, 0.0, self._solve(self.angles.xy[self.active] - self.C * self.s))
        self.rr = self.angles.refresh(self.active, self.w)
        self.angles.look_at_all()

    def excess(self) -> float:
        """Distance of the residuals from those of least squares: 1/2 c'G^-1 c, and the gain of one more column."""
        c = self.angles.c
        gain = float(c[self.active] @ self._solve(c[self.active])) / 2
        others = np.setdiff1d(np.flatnonzero(self.angles.norm > 0), self.active)
        free = np.maximum(c[others], 0.0) if self.positive else c[others]
        alone = (free / self.angles.norm[others]) ** 2 / 2
        return min(gain + float(alone.max(initial=0.0)), self.rr / 2)

    def _solve(self, b: np.ndarray) -> np.ndarray:
        x = b.copy()
        _native.linear.cholesky_solve(self._L, x)
        return x

    # ---------------------------------------------------------------- moves

    def _move(self) -> None:
        limit = self.C - self.end
        leaving, g = self._first_zero(limit) if self.lasso else (None, limit)
        entering = -1
        if len(self.active) < self.angles.max_rank:
            g, entering = self.angles.first_entry(self.C, self._out, self._barred, self.positive, g)
        if entering >= 0:
            leaving = None
        self._entering, self._leaving = entering, leaving
        if self.end < self.C - g <= self._floor:  # what is left of the correlations is rounding
            g, self._entering, leaving, self._leaving = limit, -1, None, None
        if g > 4 * EPS * self.C:
            self._barred[:] = False
        self.angles.advance(g)
        self.w += g * self._v
        speed = float(self.s @ self._v)
        self.rr = max(self.rr - g * (2 * self.C - g) * speed, 0.0)
        self.C -= g
        j = self._entering
        if j >= 0 and float(self.angles.norm[j] * np.sqrt(self.angles.yy)) < self.C + g:
            # C - g carries the rounding of C, which may be far above that of the correlation of a shorter column.
            self.C = min(max(abs(float(self.angles.c[j])), self.end), self.C + g)
        if g == limit:
            self.C, self.finished = self.end, True
        self._moves += 1
        if self._moves % REFRESH_EVERY == 0 or self.finished:
            self.w = self._solve(self.angles.xy[self.active] - self.C * self.s)
            self.rr = self.angles.refresh(self.active, self.w)
        if leaving is not None:
            self.w[leaving] = 0.0

    def _first_zero(self, limit: float) -> tuple[int | None, float]:
        """The active coefficient that reaches zero first, and how far C falls until then."""
        rise = self.s * self._v
        if not (rise < 0).any():
            return None, limit
        # A coefficient that rounding has taken to the other side is at zero.
        g = np.where(rise < 0, np.maximum(self.s * self.w, 0.0) / np.where(rise < 0, -rise, 1.0), np.inf)
        i = int(np.argmin(g))
        return (i, float(g[i])) if g[i] < limit else (None, limit)
