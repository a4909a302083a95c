"""Alternating coordinate descent for  1/2 sum_i v_i |x_i - w_i H|^2 + penalties  over  W, H >= 0.

With H fixed every row is a quadratic of its own, with curvature G = HH' + l2 I and products c_i = x_i H'; with W fixed
every column is one, with A = W'VW + l2 I and b_j = W'Vx_j, which are sums over rows. Each quadratic takes several
sweeps of coordinate descent for one product with X (Gillis and Glineur 2012), and none of them raises the objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle._native import decomposition as native
from epicycle.core._random import stream
from epicycle.data import ArrayData, Batch
from epicycle.decomposition._rounds import Rounds
from epicycle.decomposition._row_factors import RowFactors
from epicycle.decomposition.nmf._divergence import FactorPenalty, dense

SWEEPS, SHARE = 4, 0.3  # most sweeps for one product, and the share of the violation that is left to the next
_AHEAD = 0.5  # how far the second round starts ahead of the first, in steps of H
NEARLY = 1e-8  # of the gradient at zero: a start nearer than this to a stationary point is measured by that


@dataclass
class Factorization:
    """The end of the rounds: H', the objective and how stationary the point is relative to the start."""

    Ht: np.ndarray
    value: float
    stationarity: float
    n_iter: int
    reason: str


class Halves:
    """The two half rounds, on sums over batches; W and H' are changed in place."""

    def __init__(
        self, rows: RowFactors, on_W: FactorPenalty, on_H: FactorPenalty, squares: float, seed: int | None
    ) -> None:
        self.rows, self.on_W, self.on_H, self.squares, self.seed = rows, on_W, on_H, squares, seed

    def order(self, k: int, *keys: Any) -> np.ndarray:
        """In which coordinates are visited: as they come, or shuffled anew for every half of a round."""
        return np.arange(k) if self.seed is None else stream(self.seed, "order", *keys).permutation(k)

    def move_rows(self, Ht: np.ndarray, order: np.ndarray, sweeps: int) -> float:
        """Move W and keep its sums; returns the violation before."""
        G = Ht.T @ Ht + self.on_W.l2 * np.eye(Ht.shape[1])
        violation, self.w1, self.A, self.Bt = self.rows.step(_descend, Ht, G, self.on_W.l1, order, sweeps)
        return float(violation)

    def move_columns(self, Ht: np.ndarray, order: np.ndarray, sweeps: int) -> float:
        """Move H'; returns the violation before."""
        G = self.A + self.on_H.l2 * np.eye(len(self.A))
        violation, self.cross = native.descend_products(self.Bt, G, self.on_H.l1, order, sweeps, SHARE, None, Ht)
        return violation

    def round(self, Ht: np.ndarray, number: int) -> tuple[float, float]:
        """Move both factors; returns (violation found by the two halves, objective after them)."""
        k = Ht.shape[1]
        violation = self.move_rows(Ht, self.order(k, number, 0), SWEEPS)
        violation += self.move_columns(Ht, self.order(k, number, 1), SWEEPS)
        return violation, self.value(Ht)

    def gradient_at_zero(self) -> float:
        """The gradient of H at zero, which measures starts that are nearly stationary."""
        return float(self.Bt.sum())

    def value(self, Ht: np.ndarray) -> float:
        """The objective for the sums of W and this H', after `move_columns`."""
        fit = 0.5 * self.squares - self.cross + 0.5 * float(np.vdot(self.A, Ht.T @ Ht))
        penalty_W = self.on_W.l1 * self.w1 + self.on_W.l2 / 2 * float(np.trace(self.A))
        return float(max(fit, 0.0) + penalty_W + self.on_H.of(Ht))


class SparseHalves(Halves):
    """The same for sparse rows in memory: by columns no dense product of all columns is ever added up."""

    def __init__(
        self, rows: RowFactors, on_W: FactorPenalty, on_H: FactorPenalty, squares: float, seed: int | None
    ) -> None:
        super().__init__(rows, on_W, on_H, squares, seed)
        assert isinstance(rows.data, ArrayData)
        self.v, self.columns = rows.data.weight, ArrayData(sp.csr_array(rows.data.X.T))

    def move_rows(self, Ht: np.ndarray, order: np.ndarray, sweeps: int) -> float:
        G = Ht.T @ Ht + self.on_W.l2 * np.eye(Ht.shape[1])
        violation, _ = self.rows.step(_descend_sparse, Ht, G, self.on_W.l1, order, sweeps)
        W = self.rows.factors
        self.vW = W if self.v is None else self.v[:, None] * W
        self.A, self.w1 = W.T @ self.vW, float(self.vW.sum())
        return float(violation)

    def move_columns(self, Ht: np.ndarray, order: np.ndarray, sweeps: int) -> float:
        G = self.A + self.on_H.l2 * np.eye(len(self.A))
        columns = RowFactors(self.columns, Ht, self.rows.n_jobs)
        violation, self.cross = columns.step(_descend_sparse, self.vW, G, self.on_H.l1, order, sweeps)
        return float(violation)

    def gradient_at_zero(self) -> float:
        return float((self.columns.X @ self.vW.sum(axis=1)).sum())


def halves_of(rows: RowFactors, on_W: FactorPenalty, on_H: FactorPenalty, squares: float, seed: int | None) -> Halves:
    """The half rounds for rows wherever they are."""
    kind = SparseHalves if isinstance(rows.data, ArrayData) and rows.data.sparse else Halves
    return kind(rows, on_W, on_H, squares, seed)


def alternate(halves: Halves, Ht: np.ndarray, run: Rounds) -> Factorization:
    """Rounds until the projected gradient is `tol` of that at the start; Ht is changed in place.

    A round starts ahead of H, in the direction of the last one (Ang and Gillis 2019). Where it ends higher than the
    round before, it is made again from H itself, from where it cannot.
    """
    plain = np.arange(Ht.shape[1])
    reason, value, relative, round_ = "max_iter", np.inf, np.inf, run.done
    start, ahead = run.known("start"), run.known("ahead") or _AHEAD
    before: np.ndarray | None = None  # H of the round before, where it gives a direction
    for round_ in range(run.done + 1, run.max_iter + 1):
        here, rows = Ht.copy(), halves.rows.kept()
        if before is not None:
            np.maximum(Ht + ahead * (Ht - before), 0.0, out=Ht)
        violation, reached = halves.round(Ht, round_)
        if before is not None and not reached <= value:
            Ht[:], before, ahead = here, None, ahead / 2
            halves.rows.restore(rows)
            violation, reached = halves.round(Ht, round_)
        else:
            before, ahead = here, min(1.05 * ahead, 1.0)
        if start is None:
            start = max(violation, NEARLY * halves.gradient_at_zero())
        value, relative = reached, violation / start if start > 0 else 0.0
        if run.record(round_, value, relative, start=start, ahead=ahead):
            reason = "stopped"
            break
        # both halves found little to do: without moving anything, what is left at this point?
        if relative <= run.tol and (relative := _left(halves, Ht, plain, start)) <= run.tol:
            reason = "converged"
            break
    if reason != "converged":
        relative = _left(halves, Ht, plain, start or 0.0)
        reason = "converged" if relative <= run.tol and reason == "max_iter" else reason
    return Factorization(Ht, value, relative, round_, reason)


def _left(halves: Halves, Ht: np.ndarray, order: np.ndarray, start: float) -> float:
    """The projected gradient of both factors at one point, relative to the start."""
    violation = halves.move_rows(Ht, order, 0) + halves.move_columns(Ht, order, 0)
    return violation / start if start > 0 else 0.0


# ------------------------------------------------------------------------------------------------- of a batch


def _descend(
    batch: Batch, W: np.ndarray, Ht: np.ndarray, G: np.ndarray, l1: float, order: np.ndarray, sweeps: int
) -> tuple[float, float, np.ndarray, np.ndarray]:
    """(violation before, sum of vW, W'VW, X'VW)."""
    X, v = batch.X, batch.weight
    if sp.issparse(X):
        violation, _ = native.descend_sparse(X, Ht, G, l1, order, sweeps, SHARE, v, W)
    else:
        X = dense(X)
        violation, _ = native.descend_products(X @ Ht, G, l1, order, sweeps, SHARE, v, W)
    vW = W if v is None else v[:, None] * W
    return violation, float(vW.sum()), W.T @ vW, np.asarray(X.T @ vW)


def _descend_sparse(
    batch: Batch, W: np.ndarray, F: np.ndarray, G: np.ndarray, l1: float, order: np.ndarray, sweeps: int
) -> tuple[float, float]:
    return native.descend_sparse(batch.X, F, G, l1, order, sweeps, SHARE, batch.weight, W)


def row_solutions(batch: Batch, Ht: np.ndarray, on_W: FactorPenalty, tol: float, max_iter: int) -> np.ndarray:
    """The best factors of every row for this H, from zero on; a row's do not depend on the other rows."""
    W = np.zeros((batch.n_rows, Ht.shape[1]))
    G, order = Ht.T @ Ht + on_W.l2 * np.eye(Ht.shape[1]), np.arange(Ht.shape[1])
    if sp.issparse(batch.X):
        native.descend_sparse(batch.X, Ht, G, on_W.l1, order, max_iter, tol, None, W)
    else:
        native.descend_products(dense(batch.X) @ Ht, G, on_W.l1, order, max_iter, tol, None, W)
    return W
