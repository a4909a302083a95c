"""Kernel logistic and softmax regression: objective, dual, Newton's method on the coefficients of the rows.

With weights v_i, labels Y (n x t, t = 1 for two classes), Z = K C + 1 b' and probabilities P of the scores Z,

    minimise  F(C, b) = sum_i v_i loss(z_i, y_i) + l/2 tr C'K C.

Optimality: l C = R and 1'R = 0 with residuals R = V (Y - P). Coefficients of the optimum add up to zero, so K may be
centred in both directions: f moves by a constant, which b takes up. The dual is over distributions Q,

    maximise  D(Q) = sum_i v_i entropy(q_i) - tr R'K R / 2 l,     R = V (Y - Q),  1'R = 0,

and at C = R / l the gap is a sum without cancellation,  F - D = sum_i v_i KL(q_i | p_i).

Newton's step solves (W K + l) dC = R - l C, with W the curvature of the loss after b is eliminated. The operator is
symmetric in the inner product of K, and conjugate gradients in it are preconditioned by (D K + l)^-1 with the diagonal
curvature D of every row; for two classes that is the whole of W but for b, and a few steps are enough.

Small problems and kernels of low rank, K = G G' with r columns, take exact steps instead. With g = G'dC,

    (G'W G + l) g = G'rho,      K dC = G g,      dC = (rho - W G g) / l,      rho = R - l C:

a system of r t unknowns, positive definite, whatever the curvature W.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from epicycle.core._certificate import Certificate
from epicycle.core._monitor import Monitor
from epicycle.core._threads import n_threads
from epicycle.linalg._cholesky import Factor, NotPositiveError, factor
from epicycle.linalg._pivoted_cholesky import pivoted_cholesky
from epicycle.linalg._shifted_systems import matrix_product
from epicycle.optim import Solution
from epicycle.stats._class_scores import log_probabilities

_ROWS_AT_ONCE = 512  # copied to single precision
_ROUNDING = 1e-13  # of F: differences below it are noise
_MAX_IDLE_STEPS = 4  # that do not halve the gap, after which only rounding is left
_MAX_UNKNOWNS = 1500  # of an exact step: its system costs less than conjugate gradients then
_MANY_ROWS, _LOW_RANK = 2000, 128  # beyond so many rows only a rank as low as this is looked for
_ARMIJO = 1e-4  # share of the promised decrease that a step has to bring


@dataclass
class Point:
    """Coefficients, with K C, the best b for it, and all that follows from them."""

    C: np.ndarray
    KC: np.ndarray
    b: np.ndarray
    log_p: np.ndarray
    P: np.ndarray
    value: float


class LogisticProblem:
    """F for a kernel matrix, which is centred in place where there is an intercept.

    Y : (n, t), zeros and ones; one column for two classes.
    """

    def __init__(
        self, K: np.ndarray, Y: np.ndarray, weight: np.ndarray, l2: float, *, intercept: bool, n_jobs: int | None
    ) -> None:
        self.K, self.Y, self.V, self.l2, self.intercept = K, Y, weight[:, None], l2, intercept
        self.threads = n_threads(float(K.size) * 8, n_jobs)
        self.factor_threads = n_threads(float(len(K)) ** 3 / 3, n_jobs)
        if intercept:
            means = K.mean(axis=0)
            K -= means
            K -= means[:, None]
            K += float(means.mean())
        self.low_rank = _low_rank_factor(K, Y.shape[1])

    def times_kernel(self, C: np.ndarray) -> np.ndarray:
        return matrix_product(self.K, C, self.threads)

    def curvature(self, P: np.ndarray, U: np.ndarray) -> np.ndarray:
        """W U before b is eliminated."""
        if U.shape[1] == 1:
            return np.asarray(self.V * P * (1 - P) * U)
        return np.asarray(self.V * P * (U - (P * U).sum(axis=1, keepdims=True)))

    def eliminated(self, P: np.ndarray, U: np.ndarray, S: np.ndarray | None) -> np.ndarray:
        """W U with b eliminated, for S the inverse of 1'W 1."""
        W = self.curvature(P, U)
        return W if S is None else W - self.curvature(P, np.tile(S @ W.sum(axis=0), (len(W), 1)))

    def intercept_curvature(self, P: np.ndarray) -> np.ndarray:
        """1'W 1, of shape (t, t)."""
        VP = self.V * P
        if P.shape[1] == 1:
            return np.asarray((VP * (1 - P)).sum(axis=0)[:, None])
        return np.asarray(np.diag(VP.sum(axis=0)) - P.T @ VP)

    def intercept_inverse(self, P: np.ndarray) -> np.ndarray | None:
        """The inverse of 1'W 1, for more than two classes on scores that add up to zero; None without an intercept."""
        if not self.intercept:
            return None
        M = self.intercept_curvature(P)
        t = len(M)
        if t == 1:
            return np.array([[1 / M[0, 0] if M[0, 0] > 0 else 0.0]])
        # 1 is its null vector: lifted, inverted and taken out again, which a threshold on eigenvalues may miss
        lift = float(np.trace(M)) / t
        if not lift > 0:
            return np.zeros_like(M)
        return np.linalg.pinv(M + lift / t, hermitian=True) - 1 / (lift * t)

    def at(self, C: np.ndarray, KC: np.ndarray, b: np.ndarray) -> Point:
        """The point, with b moved to the minimum of F over it."""
        for _ in range(50):
            log_p = log_probabilities(KC + b)
            P = np.exp(log_p[:, 1:] if KC.shape[1] == 1 else log_p)
            if not self.intercept:
                break
            slope = (self.V * (self.Y - P)).sum(axis=0)
            if not np.abs(slope).max() > 1e-12 * float(self.V.sum()):  # or no number: C is far too large
                break
            # Newton steps for b alone, at most 2 long: far out the loss is nearly linear. lstsq, for the null vector 1.
            step = np.linalg.lstsq(self.intercept_curvature(P), slope, rcond=1e-14)[0]
            longest = float(np.abs(step).max())
            b = b + step * min(1.0, 2.0 / longest if longest > 0 else 1.0)
        value = self._value(C, KC, log_p)
        return Point(C, KC, b, log_p, P, value if np.isfinite(value) else np.inf)

    def _value(self, C: np.ndarray, KC: np.ndarray, log_p: np.ndarray) -> float:
        own = np.where(self.Y > 0, log_p[:, 1:], log_p[:, :1]) if self.Y.shape[1] == 1 else self.Y * log_p
        return float(-(self.V * own).sum() + self.l2 / 2 * np.vdot(C, KC))

    def residual(self, P: np.ndarray) -> np.ndarray:
        """R = V (Y - Q) for feasible Q next to P; with an intercept its columns add up to zero."""
        R = self.V * (self.Y - P)
        if not self.intercept:
            return np.asarray(R)
        excess = R.sum(axis=0)
        # taken from rows in the measure of their smallest probability, so that no probability becomes negative
        room = self.V[:, 0] * (np.minimum(P[:, 0], 1 - P[:, 0]) if P.shape[1] == 1 else P.min(axis=1))
        total = float(room.sum())
        if total <= 0 or np.abs(excess).max() > total:
            return np.asarray(R)
        return np.asarray(R - room[:, None] / total * excess)

    def gap(self, R: np.ndarray, point: Point) -> float:
        """sum_i v_i KL(q_i | p_i) for the distributions behind R, at the point C = R / l2."""
        if self.intercept and np.abs(R.sum(axis=0)).max() > 1e-9 * float(self.V.sum()):
            return np.inf
        Q = self.Y - R / self.V
        log_p = point.log_p
        if Q.shape[1] == 1:
            Q = np.hstack([1 - Q, Q])
        Q = np.clip(Q, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(Q > 0, Q * (np.log(Q) - log_p), 0.0) - Q + np.exp(log_p)
        # what rounding left of 1'R counts too, times the b that it would move
        rest = float(np.abs(R.sum(axis=0)) @ np.abs(point.b)) if self.intercept else 0.0
        return float((self.V * np.maximum(terms, 0.0)).sum()) + rest

    def preconditioner(self, P: np.ndarray) -> tuple[Factor | None, np.ndarray]:
        """K + l2 / D factored in float32, and D."""
        D = (self.V * P * (1 - P)).mean(axis=1) if P.shape[1] > 1 else self.V[:, 0] * P[:, 0] * (1 - P[:, 0])
        # Rows with a probability of 0 or 1 have no curvature; l / D must stay finite.
        D = np.maximum(D, 1e-6 * max(float(D.mean()), 1e-300))
        n = len(D)
        for lift in (0.0, 1e-6, 1e-3):
            S = np.empty(self.K.shape, dtype=np.float32)
            for start in range(0, n, _ROWS_AT_ONCE):
                stop = min(start + _ROWS_AT_ONCE, n)
                S[start:stop, :stop] = self.K[start:stop, :stop]
            S[np.arange(n), np.arange(n)] += self.l2 / D + lift * float(np.diagonal(self.K).mean())
            try:
                return factor(S, self.factor_threads), D
            except NotPositiveError:
                continue
        return None, D

    def newton_step(self, point: Point, forcing: float, max_iter: int) -> tuple[np.ndarray, np.ndarray, int]:
        """(dC, K dC, steps of conjugate gradients, 0 for an exact step)."""
        if self.low_rank is not None:
            try:
                return *_exact_step(self, self.low_rank, point), 0
            except np.linalg.LinAlgError:
                pass  # not positive definite to rounding
        found, D = self.preconditioner(point.P)
        S = self.intercept_inverse(point.P)

        def apply(KU: np.ndarray, U: np.ndarray) -> np.ndarray:
            return self.eliminated(point.P, KU, S) + self.l2 * U

        def precondition(r: np.ndarray) -> np.ndarray:
            z = r / self.l2 if found is None else found.solve(r / D[:, None])
            return z - z.mean(axis=0) if self.intercept else z

        rho = self.V * (self.Y - point.P) - self.l2 * point.C
        dC, KdC = np.zeros_like(point.C), np.zeros_like(point.C)
        z = precondition(rho)
        Kz = self.times_kernel(z)
        q, Kq = z, Kz
        size = float(np.vdot(rho, Kz))
        first = size
        for step in range(1, max_iter + 1):
            Aq = apply(Kq, q)
            curvature = float(np.vdot(Kq, Aq))
            if not (curvature > 0 and size > 0):  # only rounding is left
                return dC, KdC, step
            length = size / curvature
            dC, KdC = dC + length * q, KdC + length * Kq
            rho = rho - length * Aq
            z = precondition(rho)
            Kz = self.times_kernel(z)
            size, before = float(np.vdot(rho, Kz)), size
            if size <= forcing**2 * first:
                return dC, KdC, step
            q, Kq = z + size / before * q, Kz + size / before * Kq
        return dC, KdC, max_iter


def _low_rank_factor(K: np.ndarray, n_scores: int) -> np.ndarray | None:
    """G of shape (n, r) with K = G G' to rounding, or None where r is too large for exact steps."""
    n = len(K)
    rank = min(n, _MAX_UNKNOWNS // n_scores)
    if n > _MANY_ROWS:
        rank = min(rank, _LOW_RANK)
    diagonal, floor = np.diagonal(K), 4 * n * float(np.finfo(np.float64).eps)
    _, R, rest = pivoted_cholesky(diagonal, lambda i: K[i], rank, floor=floor)
    if not len(R) or float(rest.max()) > floor * max(float(diagonal.max()), 0.0):
        return None
    return np.ascontiguousarray(R.T)


def _exact_step(problem: LogisticProblem, G: np.ndarray, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """(dC, K dC) of Newton's step, from a kernel matrix G G'."""
    P, V, r = point.P, problem.V, G.shape[1]
    t = P.shape[1]
    rho = V * (problem.Y - P) - problem.l2 * point.C
    H = np.zeros((t * r, t * r))  # the upper triangle is not read, but it is added to
    B = np.empty((t * r, t))  # G'W 1
    for k in range(t):
        for j in range(k + 1):
            weight = V[:, 0] * P[:, k] * ((1.0 if j == k else 0.0) - P[:, j])
            H[k * r : (k + 1) * r, j * r : (j + 1) * r] = G.T @ (weight[:, None] * G)
            B[k * r : (k + 1) * r, j] = sums = G.T @ weight
            B[j * r : (j + 1) * r, k] = sums
    S = problem.intercept_inverse(P)
    if S is not None:
        H -= B @ S @ B.T
    H[np.diag_indices(t * r)] += problem.l2
    # The penalty keeps H positive definite, by a margin that rounding may eat up where it is tiny.
    found = scipy.linalg.cho_factor(H, lower=True, check_finite=False)
    g = scipy.linalg.cho_solve(found, (G.T @ rho).T.ravel(), check_finite=False)
    U = G @ g.reshape(t, r).T
    return (rho - problem.eliminated(P, U, S)) / problem.l2, U


def _line_search(problem: LogisticProblem, point: Point, dC: np.ndarray, KdC: np.ndarray) -> Point:
    """A step that lowers F enough; where it can only lower it by rounding, Newton's own step."""
    slope = min(float(np.vdot(problem.l2 * point.C - problem.V * (problem.Y - point.P), KdC)), 0.0)
    length = 1.0
    while True:
        trial = problem.at(point.C + length * dC, point.KC + length * KdC, point.b)
        if trial.value <= point.value + _ARMIJO * length * slope + _ROUNDING * abs(point.value):
            return trial
        if length < 1e-8:
            return point
        length /= 2


def _relative(gap: float, value: float) -> float:
    return gap / value if value > 0 else gap


def minimise(
    problem: LogisticProblem,
    *,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    start: np.ndarray | None,
    start_b: np.ndarray | None,
    done: int,
) -> tuple[Solution, Point]:
    """Newton's method until the duality gap is at most tol times F."""
    n, t = problem.Y.shape
    C = np.zeros((n, t)) if start is None else start
    KC = np.zeros((n, t)) if start is None else problem.times_kernel(C)
    point = problem.at(C, KC, np.zeros(t) if start_b is None else start_b)
    reason, gap, best, idle = "max_iter", np.inf, point, 0
    iteration = done
    for iteration in range(done + 1, max_iter + 1):
        # Far from the optimum an exact step is wasted; near it the steps have to keep up with Newton's digits.
        forcing = 0.1 if iteration == 1 else 1e-3 if gap > 1e-3 * point.value else 1e-5
        dC, KdC, inner = problem.newton_step(point, forcing, 200)
        earlier, point = point, _line_search(problem, point, dC, KdC)
        # The dual point at hand gives coefficients of its own, for which the gap is known.
        R = problem.residual(point.P)
        certified = problem.at(R / problem.l2, problem.times_kernel(R / problem.l2), point.b)
        new = problem.gap(R, certified)
        lowered = point.value < earlier.value * (1 - _ROUNDING)
        idle = 0 if lowered or new < 0.5 * gap else idle + 1
        if (new <= gap and np.isfinite(certified.value)) or certified.value < best.value * (1 - _ROUNDING):
            gap, best = new, certified
        if certified.value < point.value * (1 - _ROUNDING):
            point = certified
        state = {"C": best.C, "b": best.b, "done": iteration}
        facts = {"gap": _relative(gap, best.value), "steps": float(inner)}
        x = np.append(best.C.ravel(), best.b)
        stop = monitor(iteration, x, objective=best.value, state=partial(dict, state), **facts)
        if gap <= tol * best.value:
            reason = "converged"
        elif stop:
            reason = "stopped"
        elif idle >= _MAX_IDLE_STEPS:
            reason = "stalled"
        else:
            continue
        break
    relative = _relative(gap, best.value)
    certificate = Certificate(
        "duality gap", relative, tol, f"the objective is at most {relative:.1e} of its value above its minimum"
    )
    left = {"C": best.C, "b": best.b, "done": iteration}
    return Solution(best.C.ravel(), best.value, monitor.history(), certificate, iteration, reason, state=left), best
