"""The marginal likelihood by conjugate gradients, for S = K + D that is too large to factor.

The preconditioner is P = R'R + D with the partial, pivoted Cholesky factor R of K.
Solutions S^-1 [y, H] are as exact as asked for. The determinant and the traces are estimates from s draws z of N(0, P),
the preconditioner's own distribution, the same for all hyper-parameters:

    log det S = log det P + E z'P^-1/2 log(P^-1/2 S P^-1/2) P^-1/2 z,     tr S^-1 dS = E (S^-1 z)'dS (P^-1 z).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import DataError
from epicycle.core._memory import available
from epicycle.core._random import stream
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.gp._exact import LOG_2PI, RegressionLikelihood, Solved, best_mean
from epicycle.gp._inducing import NEGLIGIBLE_VARIANCE
from epicycle.gp._model import Model
from epicycle.gp._observations import Observations
from epicycle.gp._posterior import Posterior
from epicycle.kernels._gram import block_rows, gram_matrix, low_rank_factor
from epicycle.kernels._kernel import Kernel
from epicycle.linalg._conjugate_gradients import IterativeSolution, conjugate_gradients
from epicycle.linalg._shifted_systems import matrix_product

_DRAWS = 32  # probes: the error of the log determinant falls with their square root
_TILE = 512  # rows and columns of a tile of the kernel whose derivatives are contracted at once
_LIKELIHOOD_TOL, _SOLUTION_TOL = 1e-8, 1e-10  # relative residuals: during the search, and of the final coefficients
_MAX_STORED_BYTES = 1 << 30  # of a matrix that is stored rather than computed again and again


class CovarianceOperator:
    """S = K + diag(D) for prepared rows A, with the preconditioner P = R'R + D.

    Parameters
    ----------
    kernel : Kernel
    A : prepared rows
    D : ndarray of shape (n,)
    rank : int
        Of the preconditioner.
    n_jobs : int, optional
    stored : bool, optional
        Whether K is stored; None decides by its size.
    """

    def __init__(
        self, kernel: Kernel, A: Any, D: np.ndarray, rank: int, n_jobs: int | None, stored: bool | None = None
    ) -> None:
        self.kernel, self.A, self.D, self.n = kernel, A, D, len(D)
        self.threads = n_threads(20.0 * self.n * self.n, n_jobs)
        size = 8 * self.n * self.n
        if stored is None:
            stored = size <= min(_MAX_STORED_BYTES, (available() or 4 * _MAX_STORED_BYTES) // 4)
        self.K = gram_matrix(kernel, A, np.dtype(np.float64), n_jobs) if stored else None
        _, self.R, _ = low_rank_factor(kernel, A, rank, floor=NEGLIGIBLE_VARIANCE)
        # Less than the rounding of K counts as that much: it would change no product with S, but 1 / D may overflow.
        largest = float(np.abs(kernel.prepared_diagonal(A)).max())
        self.D = D = np.maximum(D, max(np.finfo(np.float64).eps * largest, np.finfo(np.float64).tiny))
        # Woodbury: P^-1 = D^-1 - D^-1 R'(I + R D^-1 R')^-1 R D^-1, and det P = det D det(I + R D^-1 R').
        while True:
            self._RD = self.R / D
            try:
                self._inner = scipy.linalg.cho_factor(np.eye(len(self.R)) + self._RD @ self.R.T, lower=True)
                break
            except np.linalg.LinAlgError:  # rounding of entries far larger than D: the first pivots alone will do
                self.R = self.R[: len(self.R) // 2]
        self.log_det_preconditioner = 2 * float(np.log(np.diagonal(self._inner[0])).sum()) + float(np.log(D).sum())

    def times(self, U: np.ndarray) -> np.ndarray:
        """S U."""
        if self.K is not None:
            return np.asarray(matrix_product(self.K, U, self.threads) + self.D[:, None] * U)
        out = self.D[:, None] * U
        rows = block_rows(self.n)

        def work(start: int) -> None:
            part = slice(start, min(start + rows, self.n))
            out[part] += self.kernel.block(self.A.take(part), self.A) @ U

        in_order(range(0, self.n, rows), work, None, self.threads)
        return np.asarray(out)

    def precondition(self, U: np.ndarray) -> np.ndarray:
        """P^-1 U."""
        scaled = U / self.D[:, None]
        # Products that overflow are refused by the solve, in words.
        inner = scipy.linalg.cho_solve(self._inner, self.R @ scaled, check_finite=False)
        return np.asarray(scaled - self._RD.T @ inner)

    def draw(self, e: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Draws of N(0, P) from standard normal e (n, s) and f (at least rank, s)."""
        return np.asarray(self.R.T @ f[: len(self.R)] + np.sqrt(self.D)[:, None] * e)

    def solve(self, Y: np.ndarray, tol: float) -> IterativeSolution:
        """S^-1 Y to a relative residual of `tol`."""
        found = conjugate_gradients(self.times, self.precondition, Y, tol)
        if not np.isfinite(found.log_quadrature).all() or not np.isfinite(found.residual).all():
            raise DataError(
                f"noise: products of y, the kernel {self.kernel!r:.80} and the noise overflow; scale X and y"
            )
        return found


class IterativeLikelihood(RegressionLikelihood):
    """An estimate of log p(y) as a function of theta; see :class:`~epicycle.gp._exact.ExactLikelihood`."""

    def __init__(
        self,
        model: Model,
        obs: Observations,
        H: np.ndarray,
        n_jobs: int | None,
        rank: int,
        seed: int,
        *,
        draws: int = _DRAWS,
        stored: bool | None = None,
    ) -> None:
        super().__init__(model, obs, H, n_jobs)
        self.rank, self.stored = min(rank, obs.n), stored
        rng = stream(seed, "probes")
        self.e, self.f = rng.standard_normal((obs.n, draws)), rng.standard_normal((self.rank, draws))

    def start(self, theta: np.ndarray) -> None:
        """Nothing has to be found first."""

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The draws follow from the seed."""

    def operator(self, model: Model) -> CovarianceOperator:
        d = self.obs.variances(model.noise)
        if not (d > 0).all():
            raise DataError("noise: method 'cg' needs noise; expected noise or alpha > 0")
        A = model.kernel.prepare(self.obs.rows)
        return CovarianceOperator(model.kernel, A, d / self.obs.weight, self.rank, self.n_jobs, self.stored)

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        model, obs, H = self.model.at(theta), self.obs, self.H
        S = self.operator(model)
        (n, t), q = obs.Y.shape, H.shape[1]
        z = S.draw(self.e, self.f)
        s = z.shape[1]
        found = S.solve(np.hstack([obs.Y, H, z]), _LIKELIHOOD_TOL)
        solved = best_mean(found.X[:, :t], found.X[:, t : t + q], H)
        log_det = S.log_det_preconditioner + float(found.log_quadrature[t + q :].mean())
        log_det += 2 * float(np.log(np.diagonal(solved.LA)).sum())
        beside, by_noise = obs.log_constant(model.noise)
        value = -0.5 * float(np.vdot(obs.Y, solved.C)) - t / 2 * (log_det + (n - q) * LOG_2PI) + beside
        if not gradient:
            return value, np.empty(0)
        # W = sum of c_i (u_i v_i' + v_i u_i') / 2 over pairs of columns; the draws one by one for their error
        Sz, Pz = found.X[:, t + q :], S.precondition(z)
        own = np.hstack([solved.C, np.sqrt(t) * solved.own_part])
        known = self._contract(S, model, own, own)
        drawn = np.stack([self._contract(S, model, Sz[:, [i]], Pz[:, [i]]) for i in range(s)]) if s <= 4 else None
        if drawn is None:  # in four groups: the error is that of their mean
            groups = np.array_split(np.arange(s), 4)
            drawn = np.stack([self._contract(S, model, Sz[:, g], Pz[:, g]) / len(g) for g in groups])
        traces = drawn.mean(axis=0)
        total = 0.5 * (known - t * traces)
        self.standard_error = float(t / 2 * (drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))).max(initial=0.0))
        if self.model.noise_bounds is not None:
            total[-1] += by_noise * model.noise
        return value, total

    def _contract(self, S: CovarianceOperator, model: Model, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """sum_i u_i'(dS / d theta) v_i, a tile of the kernel at a time."""
        n, kernel = self.obs.n, model.kernel
        everyone = np.arange(n)
        total = np.zeros(len(kernel.theta))

        def pairs() -> Iterator[tuple[int, int]]:
            for i in range(0, n, _TILE):
                for j in range(0, i + 1, _TILE):
                    yield i, j

        def work(pair: tuple[int, int]) -> np.ndarray:
            rows, cols = everyone[pair[0] : pair[0] + _TILE], everyone[pair[1] : pair[1] + _TILE]
            W = U[rows] @ V[cols].T
            if pair[0] != pair[1]:
                W += V[rows] @ U[cols].T
            K = None if S.K is None else S.K[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
            return kernel.contract_between(S.A, rows, cols, W, K)

        def add(part: np.ndarray) -> None:
            nonlocal total
            total = total + part

        if len(total):
            in_order(pairs(), work, add, S.threads)
        if self.model.noise_bounds is None:
            return total
        return np.append(total, float((np.einsum("ij,ij->i", U, V) / self.obs.weight).sum()) * model.noise)

    def conclude(self, theta: np.ndarray) -> tuple[Solved, np.ndarray, float]:
        """(solution, D, largest relative residual)."""
        model = self.model.at(theta)
        S = self.operator(model)
        t = self.obs.Y.shape[1]
        found = S.solve(np.hstack([self.obs.Y, self.H]), _SOLUTION_TOL)
        solved = best_mean(found.X[:, :t], found.X[:, t:], self.H)
        return solved, S.D, float(found.residual.max(initial=0.0))


@dataclass(frozen=True)
class IterativePosterior(Posterior):
    """Variances by a solution for every new row."""

    D: np.ndarray
    rank: int
    n_jobs: int | None

    @cached_property
    def _operator(self) -> CovarianceOperator:
        return CovarianceOperator(self.kernel, self.B, self.D, self.rank, self.n_jobs)

    def reduction(self, K: np.ndarray) -> np.ndarray:
        right = np.ascontiguousarray(K.T)
        return np.asarray(np.einsum("ij,ij->j", right, self._operator.solve(right, _LIKELIHOOD_TOL).X))

    def reduction_matrix(self, K: np.ndarray) -> np.ndarray:
        return np.asarray(K @ self._operator.solve(np.ascontiguousarray(K.T), _LIKELIHOOD_TOL).X)
