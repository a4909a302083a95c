"""Huber's regression with a scale, in summation form:

    F(theta, sigma) = sum_i s_i (sigma + sigma H(r_i / sigma)) + sum_j a_j theta_j^2,   r = y - A theta,

with H(z) = z^2 for |z| <= epsilon and 2 epsilon |z| - epsilon^2 beyond. F is convex in both together (Huber 1981; Owen
2007). Given which rows are outliers, and on which side, F is a simple function of sums over the rows, and its minimum
on that piece solves  (G + sigma A) step = h + sigma (epsilon o - A theta)  and one equation in sigma. If the rows on
both sides of epsilon sigma are then still the same, it is the minimum of F; so one pass after the other ends there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import brentq

from epicycle import _native, engine
from epicycle.data import Batch, Data
from epicycle.linalg._least_squares import solve_normal_equations
from epicycle.linear.logistic._statistics import Largest, least_weight_statistic
from epicycle.linear.robust._quantile_problem import Frame

#: In one step sigma moves by at most this factor: the rows on both sides follow.
MAX_SCALE_RATIO = 16.0
#: A scale for which no row is an outlier.
NO_OUTLIER_SCALE = float(np.finfo(np.float64).max) / 1e10


@dataclass(frozen=True)
class Point:
    """(theta, sigma), the sums over the rows there, and what follows from them.

    G, h, square : sums of x x', x r and r^2 over the inliers.
    largest : the largest |r| of an inlier.
    gap : to the dual objective, relative to the value, or to the spread of y where the fit is nearly perfect.
    o, outlier_weight, outlier_sum, outliers : sums of sign(r) x, of weights, of |r| over the outliers; their number.
    """

    theta: np.ndarray
    sigma: float
    G: np.ndarray
    h: np.ndarray
    square: float
    o: np.ndarray
    outlier_weight: float
    outlier_sum: float
    outliers: float
    largest: float
    value: float
    gradient: np.ndarray
    slope: float
    gap: float = np.inf

    def same_rows(self, other: Point) -> bool:
        """Whether the same rows are outliers on the same sides."""
        return (
            self.outliers == other.outliers
            and self.outlier_weight == other.outlier_weight
            and bool(np.array_equal(self.o, other.o))
        )


def huber_statistic(batch: Batch, frame: Frame, coef: np.ndarray, intercept: float, limit: float) -> tuple[Any, ...]:
    """Sums over inliers and outliers.

    Second moments of (x, 1, r) over inliers; sum of sign(r) (x, 1) over outliers; the total weight; of outliers the
    weight, sum of |r| and number; the largest |r| of an inlier.
    """
    y = (batch.y - frame.y_shift) / frame.y_scale
    sums = _native.linear.huber_sums(batch.X, y, batch.weight, frame.shift, coef, intercept, limit)
    return *sums[:-1], Largest(sums[-1])


class HuberObjective:
    """F over a data set, in the coordinates of a frame; a fixed sigma makes it a function of theta alone.

    Parameters
    ----------
    lengths : (p + 1,) root mean squares of the columns in the frame.
    squares : (p + 1,) penalty a_j of each coordinate; the frame's infinite penalties hold a coordinate at zero.
    floor : the least sigma, where F is minimised over it.
    """

    def __init__(
        self,
        data: Data,
        frame: Frame,
        lengths: np.ndarray,
        squares: np.ndarray,
        epsilon: float,
        *,
        sigma: float | None,
        floor: float,
        n_jobs: int | None,
    ) -> None:
        self.data, self.frame, self.squares, self.epsilon = data, frame, squares, epsilon
        self.lengths = np.where(np.isfinite(lengths), lengths, 1.0)
        self.sigma, self.floor, self.n_jobs = sigma, floor, n_jobs
        self.free = np.flatnonzero(np.isfinite(frame.penalty))
        self.weight = np.nan  # of all rows, known after the first pass
        self.least_weight = 1.0
        if data.has_weight:
            self.least_weight = -float(engine.sum(least_weight_statistic, data, None, n_jobs=n_jobs)[0])

    def at(self, theta: np.ndarray, sigma: float, *, prove: bool = True) -> Point:
        """One pass over the rows; the gap is left out where nothing is to be proven."""
        frame, e = self.frame, self.epsilon
        M, o, self.weight, away, total, outliers, largest = engine.sum(
            huber_statistic,
            self.data,
            frame,
            theta[:-1] * frame.inv_scale,
            float(theta[-1]),
            e * sigma,
            n_jobs=self.n_jobs,
        )
        scale = np.append(frame.inv_scale, 1.0)
        G, h, square, o = M[:-1, :-1] * scale * scale[:, None], M[-1, :-1] * scale, float(M[-1, -1]), o * scale
        penalty = float(self.squares @ theta**2)
        value = self.weight * sigma + square / sigma + 2 * e * total - e * e * sigma * away + penalty
        gradient = -2 * h / sigma - 2 * e * o + 2 * self.squares * theta
        gradient[np.isinf(frame.penalty)] = 0.0
        slope = self.weight - square / sigma / sigma - e * e * away
        at = Point(theta, sigma, G, h, square, o, away, total, outliers, float(largest), value, gradient, slope)
        return at if not prove else replace(at, gap=max(self.excess(at), 0.0) / max(abs(value), self.weight))

    # ------------------------------------------------------------------------------------------- the piece

    def minimum_of_piece(self, at: Point, ridge: float) -> tuple[np.ndarray, float, bool] | None:
        """The minimum of F if the outliers stayed what they are at this point; False if that is further.

        A piece without enough inliers has none; a ridge (relative to the Gram matrix of all rows) keeps the step
        short there.
        """
        if self.sigma is not None:
            step = self._step(at, self.sigma, ridge)
            return None if step is None else (at.theta + step, self.sigma, True)
        low, high = max(self.floor, at.sigma / MAX_SCALE_RATIO), MAX_SCALE_RATIO * at.sigma
        if not self.squares.any() and ridge == 0:  # the step is linear in sigma
            solve = self._solver(at.G)
            plain, tilt = solve(at.h), solve(self.epsilon * at.o)
            if plain is None or tilt is None:
                return None
            square = max(at.square - float(at.h @ plain), 0.0)
            room = self.weight - self.epsilon**2 * at.outlier_weight - self.epsilon * float(at.o @ tilt)
            sigma = float(min(max(np.sqrt(square / room), low), high)) if room > 0 else high
            return at.theta + plain + sigma * tilt, sigma, low < sigma < high or sigma == self.floor
        if self._step(at, high, ridge) is None or self._step(at, low, ridge) is None:
            return None

        def derivative(log_sigma: float) -> float:  # of the minimum over theta, increasing in sigma
            sigma = float(np.exp(log_sigma))
            step = self._step(at, sigma, ridge)
            square = max(at.square - 2 * float(at.h @ step) + float(step @ at.G @ step), 0.0)
            return self.weight - self.epsilon**2 * at.outlier_weight - square / sigma / sigma

        if derivative(np.log(low)) >= 0:
            sigma = low
        elif derivative(np.log(high)) <= 0:
            sigma = high
        else:
            try:
                sigma = float(np.exp(brentq(derivative, np.log(low), np.log(high), xtol=1e-15, rtol=1e-15)))
            except ValueError:  # squares of steps that overflow, or signs that rounding made equal
                return None
        return at.theta + self._step(at, sigma, ridge), sigma, low < sigma < high or sigma == self.floor

    def _step(self, at: Point, sigma: float, ridge: float, strict: bool = True) -> np.ndarray | None:
        H = at.G + np.diag(sigma * self.squares)
        if ridge:
            H = H + ridge * np.diag(self.weight * self.lengths**2)
        solve = self._solver(H, strict)
        return solve(at.h + sigma * (self.epsilon * at.o - self.squares * at.theta))

    def _solver(self, H: np.ndarray, strict: bool = True) -> Callable[[np.ndarray], np.ndarray | None]:
        """H^-1 on the coordinates that are free; where H is singular None (if strict) for what it does not reach."""
        free = self.free
        H = H[np.ix_(free, free)]
        diagonal = np.diagonal(H)
        scale = np.divide(1.0, np.sqrt(diagonal), out=np.zeros(len(H)), where=diagonal > 0)
        S = H * scale * scale[:, None]
        if not len(S):
            return lambda rhs: np.zeros_like(rhs)
        if not np.isfinite(S).all():  # a penalty times a scale beyond what numbers hold
            return lambda rhs: None if strict else np.zeros(len(rhs))
        factor, info = dpotrf(S, lower=1)
        regular = info == 0 and np.diagonal(factor).min(initial=1.0) >= 1e-7
        if regular:

            def inverse(rhs: np.ndarray) -> np.ndarray:
                return np.asarray(dpotrs(factor, rhs, lower=1)[0])

        else:
            eigenvalues, V = eigh(S, check_finite=False)
            kept = eigenvalues > 1e-13 * len(S) * eigenvalues.max(initial=0.0)
            V, eigenvalues = V[:, kept], eigenvalues[kept]

            def inverse(rhs: np.ndarray) -> np.ndarray:
                return np.asarray(V @ ((V.T @ rhs) / eigenvalues))

        def solve(rhs: np.ndarray) -> np.ndarray | None:
            b = scale * rhs[free]
            x = inverse(b)
            x = x + inverse(b - S @ x)
            if strict and not regular and np.linalg.norm(b - S @ x) > 1e-9 * np.linalg.norm(b):
                return None
            out = np.zeros(len(rhs))
            out[free] = scale * x
            return out

        return solve

    def start(self) -> tuple[np.ndarray, float]:
        """The (ridge) least-squares fit and its residual standard deviation."""
        everything = self.at(np.zeros(self.frame.size), NO_OUTLIER_SCALE, prove=False)
        theta = np.zeros(self.frame.size)
        free = self.free
        H = (everything.G + np.diag(self.squares))[np.ix_(free, free)]
        theta[free] = solve_normal_equations(H, everything.h[free]).x
        square = everything.square - 2 * float(everything.h @ theta) + float(theta @ everything.G @ theta)
        return theta, float(np.sqrt(max(square, 0.0) / self.weight))

    # ------------------------------------------------------------------------------------------- the proof

    def gap_nearby(self, at: Point, theta: np.ndarray, sigma: float, enough: float) -> float:
        """The gap at a point near to another whose gap is known, relative as there; a pass only where that is needed.

        A row changes F by at most 2 epsilon s_i times the move of its residual, and by s_i (1 + epsilon^2) times that
        of sigma; the mean absolute value of a column is at most its root mean square.
        """
        scale = max(abs(at.value), self.weight)
        move = 2 * self.epsilon * float(self.lengths @ np.abs(theta - at.theta))
        move += (1 + self.epsilon**2) * abs(sigma - at.sigma)
        bound = at.gap + (self.weight * move + float(self.squares @ np.abs(theta**2 - at.theta**2))) / scale
        if bound <= enough:
            return bound
        here = self.at(theta, sigma)
        own = here.gap * max(abs(here.value), self.weight) / scale
        return max(min(bound, own, at.gap + (here.value - at.value) / scale), 0.0)

    def excess(self, at: Point) -> float:
        """F minus the dual objective at a dual point that is feasible.

        The dual is  max y'd - sum_j (A'd)_j^2 / (4 a_j)  subject to  |d_i| <= 2 epsilon s_i,  (A'd)_j = 0 for a_j = 0,
        and  Q = sum d_i^2 / (4 s_i) <= sum s_i;  where sigma is fixed, sigma (sum s_i - Q) is added instead of that.
        With  d_i = s_i H'(r_i / sigma) it is A'd = 2 a theta - gradient; one Newton step on the inliers takes the
        gradient away, and shrinking d by a common factor puts back what then exceeds a bound. By a step D an inlier
        moves by at most (D'GD / s_i)^(1/2), since no leverage exceeds one.
        """
        a, sigma, e = self.squares, at.sigma, self.epsilon
        step = self._step(at, sigma, 0.0, strict=False)
        rest = at.gradient + 2 * (at.G @ step / sigma + a * step)
        rest[np.isinf(self.frame.penalty)] = 0.0
        theta = at.theta + step
        moved = float(step @ at.G @ step)
        square = max(at.square - 2 * float(at.h @ step) + moved, 0.0)
        used = square / sigma / sigma + e * e * at.outlier_weight
        quadratic = float(a @ theta**2)
        product = 2 * square / sigma + 2 * e * (at.outlier_sum - float(at.o @ step)) + 2 * quadratic
        charge = float(np.abs(rest) @ np.maximum(np.abs(theta), 1.0))
        shrink = min(1.0, e * sigma / max(at.largest + np.sqrt(max(moved, 0.0) / self.least_weight), 1e-300))
        if self.sigma is None and used > 0:
            shrink = min(shrink, float(np.sqrt(self.weight / used)))
        slack = (self.weight - shrink**2 * used) * (self.floor if self.sigma is None else sigma)
        return float(at.value - (shrink * product - shrink**2 * quadratic + slack) + charge)
