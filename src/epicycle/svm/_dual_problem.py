"""The dual problem of all support vector machines, in signed variables b:

    minimise  1/2 b'Kb + 1/2 sum_t d_t b_t^2 - z'b + e |b|_1,      lo <= b <= hi,   sum of b over each group = s.

A classifier has b_t = y_t alpha_t, z = y, e = 0; a regression b_t = alpha_t - alpha_t*, z = y and the tube e; squared
slack has d_t = 1 / C_t and no upper bound. The sums belong to the constants (one for each group) of the function
f(x) + c; without constants there are none.

For any function f = sum_t b_t k(x_t, .) and any constants c the value of the primal problem,

    P = 1/2 |f|^2 + sum_t h_t(z_t - f(x_t) - c) + c s,    h_t(r) = max over lo <= x <= hi of r x - e |x| - d_t x^2 / 2,

is at least that of the dual, D = z'b - e |b|_1 - 1/2 b'(K + diag d) b, and the two meet at the optimum: P - D is the
duality gap, a bound on how far either is from it.

A bound that is infinite (a hard margin or tube) makes h_t infinite wherever r_t - e > 0 or r_t + e < 0, so P is finite
only for constants between the largest z_t - f(x_t) - e and the smallest z_t - f(x_t) + e of such variables. Where these
cross by 2 x, f + c is feasible for a tube e + x, and the gap is that of the problem with this tube: D falls by x |b|_1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Evidence:
    """Distance of a point from the optimum, computed from scores in double precision."""

    objective: float  # the minimised value: minus the dual
    dual: float
    primal: float
    gap: float  # relative
    violation: float
    constants: Array


@dataclass(frozen=True)
class DualProblem:
    """The problem; `group` is None for one constant, and `constant` False for none at all."""

    z: Array
    lo: Array
    hi: Array
    epsilon: float = 0.0
    ridge: Array | None = None
    group: Array | None = None
    constant: bool = True
    #: Whether f + c may be stretched to find a better primal point: where z are labels.
    stretches: bool = False
    start: Array | None = None
    n: int = field(init=False)
    totals: Array = field(init=False)  # s of every group

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", len(self.z))
        groups = self.members()
        totals = np.zeros(len(groups))
        if self.start is not None:
            totals[:] = [self.start[g].sum() for g in groups]
        object.__setattr__(self, "totals", totals)

    def members(self) -> list[Array]:
        """The variables of each group."""
        if self.group is None:
            return [np.arange(self.n)]
        return [np.flatnonzero(self.group == g) for g in range(int(self.group.max()) + 1)]

    def slopes(self, b: Array, f: Array) -> Array:
        """v = z - (K + diag d) b, from f = K b."""
        v = self.z - f
        return np.asarray(v if self.ridge is None else v - self.ridge * b)

    def moves(self, b: Array, v: Array) -> tuple[Array, Array]:
        """Gain of each variable by growing, and loss by shrinking; minus and plus infinity where it cannot move."""
        # e |b| has the slope e for growing from b >= 0 on and -e below: the one-sided derivatives at 0 differ.
        e = self.epsilon
        up = np.where(b >= self.hi, -np.inf, v - e if e == 0 else np.where(b >= 0, v - e, v + e))
        low = np.where(b <= self.lo, np.inf, v - e if e == 0 else np.where(b > 0, v - e, v + e))
        return up, low

    def violation(self, up: Array, low: Array) -> float:
        """By how much the worst pair, or without constants the worst variable, breaks the optimality conditions."""
        if not self.constant:
            return float(max(up.max(), -low.min(), 0.0))
        if self.group is None:
            return float(max(up.max() - low.min(), 0.0))
        return float(max(max(up[g].max() - low[g].min(), 0.0) for g in self.members()))

    def constants(self, b: Array, up: Array, low: Array) -> Array:
        """The constant of each group: the mean slope of the free variables, or the middle of where it may lie."""
        if not self.constant:
            return np.zeros(1)
        # The KKT conditions hold with equality for variables between their bounds: there the slope is the constant.
        free = (up == low) & np.isfinite(up)
        found = []
        for g in self.members():
            mine = free[g]
            if mine.any():
                found.append(float(up[g][mine].mean()))
                continue
            top, bottom = float(up[g].max()), float(low[g].min())
            ends = [end for end in (top, bottom) if np.isfinite(end)]
            found.append(sum(ends) / len(ends) if ends else 0.0)
        return np.array(found)

    def objective(self, b: Array, f: Array) -> float:
        value = 0.5 * float(b @ f) - float(self.z @ b)
        if self.ridge is not None:
            value += 0.5 * float(self.ridge @ (b * b))
        return value + self.epsilon * float(np.abs(b).sum())

    def _feasible(self, v: Array, constants: Array) -> tuple[Array, float]:
        """The constants nearest to these for which P is finite, and x: by how much the tube has to grow for it."""
        least = np.where(np.isinf(self.hi), v - self.epsilon, -np.inf)
        most = np.where(np.isinf(self.lo), v + self.epsilon, np.inf)
        if not self.constant:
            return constants, float(max(least.max(), -most.min(), 0.0))
        found, excess = [], 0.0
        for g, c in zip(self.members(), constants, strict=True):
            low, high = float(least[g].max()), float(most[g].min())
            found.append((low + high) / 2 if low > high else min(max(float(c), low), high))
            excess = max(excess, (low - high) / 2)
        return np.array(found), excess

    def _stretched(self, square: float, margin: Array) -> float:
        """The least P at t (f + c) over the factors t = 1 / m_i with which a row lies on the margin.

        P = t^2 |f|^2 / 2 + sum of C_i (1 - t m_i) over the rows with m_i < 1 / t: those of a huge C have to be none.
        """
        order = np.argsort(margin)
        m = margin[order]
        first = int(np.searchsorted(m, 0.0, side="right"))
        if self.ridge is not None or first == self.n:  # of squared slack only the factor that leaves none
            return 0.5 * square / float(m[0]) ** 2 if first == 0 else np.inf
        top = np.maximum(self.hi, -self.lo)[order]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inside = np.concatenate([np.zeros((2, 1)), np.cumsum([top, top * m], axis=1)[:, :-1]], axis=1)[:, first:]
            t = 1.0 / m[first:]
            values = 0.5 * square * t * t + (inside[0] - t * inside[1])
        return float(np.where(np.isfinite(values), values, np.inf).min())

    def evidence(self, b: Array, f: Array, scale: float) -> Evidence:
        """The duality gap and the worst violation at b, whose scores are f = K b; `scale` is the largest k(x, x)."""
        v = self.slopes(b, f)
        up, low = self.moves(b, v)
        constants = self.constants(b, up, low)
        feasible, excess = constants, 0.0
        hard = self.ridge is None and bool(np.isinf(self.hi).any() or np.isinf(self.lo).any())
        if hard:
            feasible, excess = self._feasible(self.z - f, constants)
        c = feasible[0] if self.group is None else feasible[self.group]
        square, r = float(b @ f), self.z - f - c
        value = self.objective(b, f)
        if self.ridge is not None:  # one of the bounds is zero, the other infinite
            reach = np.where(self.hi > 0, np.maximum(r, 0.0), np.minimum(r, 0.0))
            losses = reach * reach / (2 * self.ridge)
        else:  # infinite bounds are constraints, which the constants keep
            hi, lo = (np.where(np.isinf(end), 0.0, end) for end in (self.hi, self.lo))
            losses = np.maximum(np.maximum(hi * (r - self.epsilon), lo * (r + self.epsilon)), 0.0)
        primal = 0.5 * square + float(np.sum(losses)) + float(feasible @ self.totals)
        primal += excess * float(np.abs(b).sum()) if excess > 0 else 0.0
        if self.stretches:
            primal = min(np.inf if hard else primal, self._stretched(square, self.z * (f + c)))
        # Near b = 0 both values vanish: the scale is at least a share of the bound on |f|^2 / 2.
        floor = 1e-6 * 0.5 * float(np.square(np.abs(b).sum())) * scale
        size = max(abs(primal), abs(value), floor, np.finfo(np.float64).tiny)
        gap = (primal + value) / size if np.isfinite(primal) and np.isfinite(size) else np.inf
        return Evidence(value, -value, primal, max(gap, 0.0), self.violation(up, low), constants)
