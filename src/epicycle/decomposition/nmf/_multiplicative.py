"""Multiplicative updates for beta-divergences: every entry of a factor is multiplied by a number above zero.

With Y = WH the gradient in w is  den - num  for  num = (X Y^(b-2)) H'  and  den = Y^(b-1) H',  both non-negative. The
divergence is bounded above by a function of each entry alone, which touches it here (Fevotte and Idier 2011); with
penalties its slope at  r w  is

    -num r^min(b-2, 0) + (den + l1) r^max(b-1, 0) + l2 w r^max(b-1, 1),

and the factor r at which this is zero lowers the objective, or leaves it. Without l2, or for b >= 2, that is
r = (num / (den + l1 + l2 w))^gamma; for b = 1 a quadratic; otherwise one equation for each entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle._native import decomposition as native
from epicycle.core._exceptions import ParameterError
from epicycle.data import Batch
from epicycle.decomposition._rounds import Rounds
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition.nmf._coordinate_descent import NEARLY, Factorization
from epicycle.decomposition.nmf._divergence import FactorPenalty, dense, divergence_of, weights

CHECK = 10  # rounds between two looks at the decrease
_ROWS = 256  # of sparse rows that are approximated at a time where zeros have terms of their own
_EPS = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Divergence:
    """The exponent b, and sizes that go with the data: the least approximation, and that of a typical factor."""

    beta: float
    least: float
    typical: float

    @property
    def gamma(self) -> float:
        if self.beta < 1:
            return 1.0 / (2.0 - self.beta)
        return 1.0 / (self.beta - 1.0) if self.beta > 2 else 1.0

    def require_finite(self, *values: Any) -> None:
        """Refuse what left floating point on the way."""
        if not all(np.isfinite(value).all() for value in values):
            raise ParameterError(
                f"beta_loss={self.beta:g}: powers of the entries of X, or penalties, overflow; "
                "scale X, alpha_W or alpha_H"
            )

    def without_dust(self, A: np.ndarray, limit: float) -> np.ndarray:
        """For exponents up to `limit` entries that are nothing but rounding are zero."""
        if self.beta <= limit:
            A[np.finfo(np.float64).eps * self.typical > A] = 0.0
        return A


def growth(num: np.ndarray, den: np.ndarray, A: np.ndarray, penalty: FactorPenalty, by: Divergence) -> np.ndarray:
    """The factors r of the entries of A."""
    den = den + penalty.l1
    if penalty.l2 > 0 and by.beta < 2:
        return _root(num, den, penalty.l2 * A, by.beta)
    den = den + penalty.l2 * A if penalty.l2 > 0 else den
    ratio = num / np.where(den > 0, den, np.finfo(np.float64).tiny ** 0.5)
    return np.asarray(ratio if by.gamma == 1 else ratio**by.gamma)


def _root(num: np.ndarray, den: np.ndarray, curve: np.ndarray, beta: float) -> np.ndarray:
    """r with  num = den r^p + curve r^q,  for p = max(1, 2 - beta) and q = 3 - beta."""
    if beta == 1:
        root = den + np.sqrt(den**2 + 4 * curve * num)
        return np.asarray(2 * num / np.where(root > 0, root, 1.0))
    p, q = max(1.0, 2.0 - beta), 3.0 - beta
    num, den, curve = np.broadcast_arrays(num, den, curve)
    some = num > 0
    with np.errstate(divide="ignore"):
        a, c, d = np.log(num[some]), np.log(den[some]), np.log(curve[some])
    u = np.minimum((a - c) / p, (a - d) / q)  # either term alone: at or above the root, from where Newton descends
    for _ in range(60):
        first, second = np.exp(c + p * u - a), np.exp(d + q * u - a)
        step = np.log(first + second) * (first + second) / (p * first + q * second)
        u = u - step
        if not (np.abs(step) > 1e-14).any():
            break
    r = np.zeros(num.shape)
    r[some] = np.exp(u)
    return r


@dataclass(frozen=True)
class Slopes:
    """num and den of a factor."""

    num: np.ndarray
    den: np.ndarray

    def violation(self, A: np.ndarray, penalty: FactorPenalty, typical: float) -> np.ndarray:
        """Violation by each row of A of  A >= 0, gradient >= 0, A * gradient = 0,  in units of the objective.

        Where the gradient is positive A times it; where it is negative |gradient| times A, or times the size of a
        typical entry where A is less.
        """
        gradient = self.den - self.num + penalty.l1 + penalty.l2 * A
        size = np.where(gradient > 0, A, np.maximum(A, typical))
        return np.asarray((size * np.abs(gradient)).sum(axis=1))


class Approximation:
    """Y = WH of the rows of a batch, where it is needed: at the stored entries of sparse rows."""

    def __init__(self, X: Any, W: np.ndarray, Ht: np.ndarray, by: Divergence) -> None:
        self.X, self.W, self.Ht, self.by = X, W, Ht, by
        self.Y = native.products_at(X, W, Ht) if sp.issparse(X) else W @ Ht.T

    def _ratios(self) -> Any:
        """X Y^(b-2)."""
        if self.by.beta == 2:
            return self.X if sp.issparse(self.X) else dense(self.X)
        values = dense(self.X.data if sp.issparse(self.X) else self.X)
        Y = np.maximum(self.Y, self.by.least) if self.by.beta < 2 else self.Y
        ratios = values / Y if self.by.beta == 1 else values * Y ** (self.by.beta - 2)
        if not sp.issparse(self.X):
            return ratios
        return sp.csr_array((ratios, self.X.indices, self.X.indptr), shape=self.X.shape)

    def _powers(self, Y: np.ndarray) -> np.ndarray:
        return np.asarray((np.maximum(Y, self.by.least) if self.by.beta < 1 else Y) ** (self.by.beta - 1))

    def for_rows(self) -> Slopes:
        """Of W."""
        num = np.asarray(self._ratios() @ self.Ht)
        beta = self.by.beta
        if beta == 2:
            return Slopes(num, self.W @ (self.Ht.T @ self.Ht))
        if beta == 1:
            return Slopes(num, self.Ht.sum(axis=0)[None, :])
        if not sp.issparse(self.X):
            return Slopes(num, self._powers(self.Y) @ self.Ht)
        pieces = [self._powers(self.W[i : i + _ROWS] @ self.Ht.T) @ self.Ht for i in range(0, len(self.W), _ROWS)]
        return Slopes(num, np.concatenate(pieces))

    def for_columns(self, v: np.ndarray) -> Slopes:
        """Of H', as sums over these rows; for b = 2 the second part is W'VW, for b = 1 one row."""
        vW = v[:, None] * self.W
        num = np.asarray(self._ratios().T @ vW)
        beta = self.by.beta
        if beta == 2:
            return Slopes(num, self.W.T @ vW)
        if beta == 1:
            return Slopes(num, vW.sum(axis=0)[None, :])
        if not sp.issparse(self.X):
            return Slopes(num, self._powers(self.Y).T @ vW)
        den = np.zeros_like(num)
        for i in range(0, len(vW), _ROWS):
            den += self._powers(self.W[i : i + _ROWS] @ self.Ht.T).T @ vW[i : i + _ROWS]
        return Slopes(num, den)


def completed(sums: Slopes, Ht: np.ndarray, beta: float) -> Slopes:
    """The slopes of H' from their sums over all rows."""
    return Slopes(sums.num, Ht @ sums.den) if beta == 2 else sums


def move_rows(W: np.ndarray, slopes: Slopes, on_W: FactorPenalty, by: Divergence) -> None:
    """Update W in place."""
    W *= growth(slopes.num, slopes.den, W, on_W, by)
    by.without_dust(W, 0.999)


def _step(
    batch: Batch, W: np.ndarray, Ht: np.ndarray, on_W: FactorPenalty, by: Divergence, move: bool
) -> tuple[float, float, float, np.ndarray, np.ndarray]:
    """(violation in W before, divergence and penalty of W after, sums for H after)."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by `multiply`
        return _summed(batch, W, Ht, on_W, by, move)


def _summed(
    batch: Batch, W: np.ndarray, Ht: np.ndarray, on_W: FactorPenalty, by: Divergence, move: bool
) -> tuple[float, float, float, np.ndarray, np.ndarray]:
    v = weights(batch)
    slopes = Approximation(batch.X, W, Ht, by).for_rows()
    violation = float(v @ slopes.violation(W, on_W, by.typical))
    if move:
        move_rows(W, slopes, on_W, by)
    now = Approximation(batch.X, W, Ht, by)
    sums = now.for_columns(v)
    divergence = divergence_of(batch, W, Ht, by.beta, by.least, now.Y)[0]
    penalty = float(v @ (on_W.l1 * W.sum(axis=1) + on_W.l2 / 2 * np.square(W).sum(axis=1)))
    return violation, divergence, penalty, sums.num, sums.den


def multiply(
    rows: RowFactors, Ht: np.ndarray, on_W: FactorPenalty, on_H: FactorPenalty, by: Divergence, run: Rounds
) -> Factorization:
    """Rounds until ten of them lower the divergence by little and the point is nearly stationary.

    Near a stationary point the excess is a quadratic in the gradient: a decrease of `tol` goes with a gradient of
    sqrt(tol), relative to the start.
    """
    first, error_at_start, before = run.known("first"), run.known("error_at_start"), run.known("before")
    if first is None or error_at_start is None or before is None:
        violation, before, _, attracted = _looked_at(rows, Ht, on_W, on_H, by)
        first = max(violation, NEARLY * attracted)
        error_at_start = before
    reason, round_, limit = "max_iter", run.done, float(np.sqrt(run.tol))
    for round_ in range(run.done + 1, run.max_iter + 1):
        violation, divergence, penalty, num, den = rows.step(_step, Ht, on_W, by, True)
        slopes = completed(Slopes(num, den), Ht, by.beta)
        violation += float(slopes.violation(Ht, on_H, by.typical).sum())
        value = divergence + penalty + on_H.of(Ht)
        if not np.isfinite(value):
            raise ParameterError(
                f"beta_loss={by.beta:g}: powers of the entries of X overflow; scale X, alpha_W or alpha_H"
            )
        Ht *= growth(slopes.num, slopes.den, Ht, on_H, by)
        by.without_dust(Ht, 1.0)
        relative, little = violation / first if first > 0 else 0.0, False
        if run.tol > 0 and round_ % CHECK == 0:
            error = float(np.sqrt(2 * max(divergence, 0.0)))
            little = before - error < run.tol * error_at_start or error == 0
            before = error
        if run.record(round_, value, relative, first=first, error_at_start=error_at_start, before=before):
            reason = "stopped"
            break
        if little and relative <= limit:
            reason = "converged"
            break
    violation, _, value, _ = _looked_at(rows, Ht, on_W, on_H, by)
    relative = violation / first if first > 0 else 0.0
    if reason == "max_iter" and relative <= limit:
        reason = "converged"
    return Factorization(Ht, value, relative, round_, reason)


def round_of(
    rows: RowFactors, Ht: np.ndarray, on_W: FactorPenalty, on_H: FactorPenalty, by: Divergence, *, move: bool = True
) -> tuple[float, float]:
    """(divergence, penalty of W) before a round, which moves W and Ht in place unless `move` is false."""
    _, divergence, penalty, num, den = rows.step(_step, Ht, on_W, by, False)
    if move:
        _, _, _, num, den = rows.step(_step, Ht, on_W, by, True)
        slopes = completed(Slopes(num, den), Ht, by.beta)
        Ht *= growth(slopes.num, slopes.den, Ht, on_H, by)
    return float(divergence), float(penalty)


def _looked_at(
    rows: RowFactors, Ht: np.ndarray, on_W: FactorPenalty, on_H: FactorPenalty, by: Divergence
) -> tuple[float, float, float, float]:
    """(violation, root of twice the divergence, objective, sum of num * H) at a point, which is left as it is."""
    violation, divergence, penalty, num, den = rows.step(_step, Ht, on_W, by, False)
    pull = float(np.vdot(num, Ht))
    violation += float(completed(Slopes(num, den), Ht, by.beta).violation(Ht, on_H, by.typical).sum())
    return violation, float(np.sqrt(2 * max(divergence, 0.0))), divergence + penalty + on_H.of(Ht), pull


def row_solutions(
    batch: Batch, Ht: np.ndarray, on_W: FactorPenalty, by: Divergence, tol: float, max_iter: int
) -> np.ndarray:
    """Factors of the rows for this H, from equal ones on; a row's do not depend on the other rows."""
    k = Ht.shape[1]
    sums = np.asarray(batch.X.sum(axis=1), dtype=np.float64).ravel()
    total = float(Ht.sum())
    W = np.repeat((sums / total if total > 0 else np.zeros_like(sums))[:, None], k, axis=1)
    active = np.arange(len(W))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(max_iter):
            moved = W[active]
            move_rows(moved, Approximation(batch.X[active], moved, Ht, by).for_rows(), on_W, by)
            change = np.linalg.norm(moved - W[active], axis=1)
            W[active] = moved
            active = active[change > tol * np.linalg.norm(moved, axis=1)]
            if not len(active):
                break
    by.require_finite(W)
    return W
