"""Titsias' variational bound of the marginal likelihood, from m inducing rows Z among the n rows of the data.

With V = Lm^-1 Kmn, Kmm = Lm Lm', Q = V'V, S = Q + D and B = I + V D^-1 V' = LB LB',

    F = log N(y | H beta, S) - tr D^-1 (K - Q) / 2  <=  log p(y),

which is log p(y) itself where Z is all rows. V S^-1 = B^-1 V D^-1 makes everything a matter of m x m matrices and of
passes over blocks of rows. With E = (a a' + t U U' - t S^-1 + t D^-1) / 2 the derivatives are

    dF / dKmn = 2 Lm^-T V E,    dF / dKmm = -Lm^-T (V E V') Lm^-1,    dF / dk_ii = -t / (2 D_ii),
    V E = (V a a' + t V U U' + t (I - B^-1) V D^-1) / 2,    V E V' = (V a a'V' + t V U U'V' + t (B - 2 I + B^-1)) / 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import DataError
from epicycle.core._random import stream
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.gp._exact import LOG_2PI, RegressionLikelihood, Solved
from epicycle.gp._model import Model
from epicycle.gp._observations import Observations
from epicycle.gp._posterior import Posterior
from epicycle.kernels._gram import kernel_column, low_rank_factor
from epicycle.kernels._kernel import Kernel
from epicycle.linalg._cholesky import Factor, NotPositiveError, factor, smallest_jitter

_DIAGONAL_SHARE = 1e-10  # of the mean of Kmm, always on its diagonal: Q <= K then holds in spite of rounding
NEGLIGIBLE_VARIANCE = 1e-9  # share of the largest variance below which a further row adds nothing but rounding


@dataclass
class Evaluation:
    """The bound at one set of hyper-parameters, with what its derivatives and predictions need."""

    model: Model
    A: Any
    Lm: np.ndarray
    LB: np.ndarray
    B: np.ndarray
    D: np.ndarray
    solved: Solved
    VY: np.ndarray
    VH: np.ndarray
    missing: float  # tr D^-1 (K - Q)
    value: float

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients of the inducing rows in the posterior mean, S^-1 H in the same terms): Lm^-T B^-1 V D^-1 []."""
        inner = scipy.linalg.cho_solve((self.LB, True), np.hstack([self.VY, self.VH]))
        back = scipy.linalg.solve_triangular(self.Lm, inner, lower=True, trans=1)
        t = self.VY.shape[1]
        return back[:, :t] - back[:, t:] @ self.solved.beta, back[:, t:]


def inducing_factor(kernel: Kernel, A: Any, rows: np.ndarray) -> tuple[Factor, float]:
    """(factor of Kmm, jitter that it needed beyond the share of its mean that is always added)."""
    Z = A.take(rows)
    Kmm = kernel.block(Z, Z)
    if not np.isfinite(Kmm).all():
        raise DataError(f"kernel: {kernel!r:.80} gives values that are not finite for X; scale X")
    mean = float(np.diagonal(Kmm).mean())
    index = np.arange(len(Kmm))

    def attempt(jitter: float) -> Factor:
        S = (Kmm + Kmm.T) / 2
        S[index, index] += _DIAGONAL_SHARE * mean + jitter
        return factor(S, 1)

    return smallest_jitter(attempt, mean, len(Kmm), refine=False)


def choose_rows(kernel: Kernel, A: Any, n_rows: int, how: str, seed: int) -> np.ndarray:
    """At most `n_rows` different rows, sorted: with the largest pivots, or drawn by squared distance (k-means++)."""
    if how == "greedy":
        return np.sort(low_rank_factor(kernel, A, n_rows, floor=NEGLIGIBLE_VARIANCE)[0])
    rng = stream(seed, "inducing")
    n = A.n_rows
    own = kernel.prepared_diagonal(A)
    chosen = [int(rng.integers(n))]
    distance = np.full(n, np.inf)
    while True:
        # |phi(x) - phi(z)|^2 = k(x, x) + k(z, z) - 2 k(x, z)
        last = chosen[-1]
        np.minimum(distance, np.maximum(own + own[last] - 2 * kernel_column(kernel, A, last), 0.0), out=distance)
        distance[last] = 0.0
        total = float(distance.sum())
        if len(chosen) >= min(n_rows, n) or not total > NEGLIGIBLE_VARIANCE * float(own.max()):
            return np.sort(np.array(chosen, dtype=np.intp))
        chosen.append(int(np.searchsorted(np.cumsum(distance), rng.random() * total, side="right").clip(0, n - 1)))


class InducingLikelihood(RegressionLikelihood):
    """The bound F as a function of theta; see :class:`~epicycle.gp._exact.ExactLikelihood`."""

    def __init__(
        self, model: Model, obs: Observations, H: np.ndarray, n_jobs: int | None, n_rows: int, how: str, seed: int
    ) -> None:
        super().__init__(model, obs, H, n_jobs)
        self.n_rows, self.how, self.seed = n_rows, how, seed
        self.threads = n_threads(float(obs.n) * n_rows * n_rows, n_jobs)
        self.rows = np.empty(0, dtype=np.intp)

    def start(self, theta: np.ndarray) -> None:
        """Choose the inducing rows for this theta."""
        kernel = self.model.at(theta).kernel
        self.rows = choose_rows(kernel, kernel.prepare(self.obs.rows), self.n_rows, self.how, self.seed)
        if not len(self.rows):
            raise DataError(f"kernel: {kernel!r:.80} is zero for all rows of X")

    def state(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.rows = np.asarray(state["rows"], dtype=np.intp)

    def _blocks(self) -> list[slice]:
        size = int(max(64, min(2048, (1 << 21) // max(len(self.rows), 1))))
        return [slice(s, min(s + size, self.obs.n)) for s in range(0, self.obs.n, size)]

    def evaluate(self, theta: np.ndarray) -> Evaluation:
        """F at theta, with what its derivatives need."""
        model, obs, H = self.model.at(theta), self.obs, self.H
        kernel, A = model.kernel, model.kernel.prepare(obs.rows)
        found, self.jitter = inducing_factor(kernel, A, self.rows)
        Lm, Z = np.tril(found.L), A.take(self.rows)
        d = obs.variances(model.noise)
        if not (d > 0).all():
            raise DataError("noise: method 'inducing' needs noise; expected noise or alpha > 0")
        D = d / obs.weight
        (n, t), q = obs.Y.shape, H.shape[1]
        m = len(Lm)
        both = np.hstack([obs.Y, H]) / D[:, None]
        # One pass over blocks of rows sums B = I + V D^-1 V', V D^-1 [Y, H] and tr D^-1 (K - Q).
        B, VR, missing = np.eye(m), np.zeros((m, t + q)), 0.0

        def work(part: slice) -> tuple[np.ndarray, np.ndarray, float]:
            mine = A.take(part)
            V = scipy.linalg.solve_triangular(Lm, kernel.block(Z, mine), lower=True, check_finite=False)
            left = kernel.prepared_diagonal(mine) - np.einsum("ij,ij->j", V, V)
            W = V / np.sqrt(D[part])
            return W @ W.T, V @ both[part], float((np.maximum(left, 0.0) / D[part]).sum())

        def add(found: tuple[np.ndarray, np.ndarray, float]) -> None:
            nonlocal B, VR, missing
            B, VR, missing = B + found[0], VR + found[1], missing + found[2]

        in_order(self._blocks(), work, add, self.threads)
        try:
            LB = np.linalg.cholesky(B)
        except np.linalg.LinAlgError:
            raise NotPositiveError("I + V D^-1 V' is not positive definite to working precision") from None
        # H'S^-1 H and so on need only products with V: S^-1 = D^-1 - D^-1 V'B^-1 V D^-1.
        half = scipy.linalg.solve_triangular(LB, VR, lower=True)
        inner = np.hstack([obs.Y, H]).T @ both - half.T @ half
        YY, HY, HH = inner[:t, :t], inner[t:, :t], inner[t:, t:]
        # Generalised least squares for beta, from H'S^-1 H and H'S^-1 Y alone.
        beta, LA = np.zeros((q, t)), np.zeros((0, 0))
        if q:
            LA = np.linalg.cholesky((HH + HH.T) / 2)
            beta = scipy.linalg.cho_solve((LA, True), HY)
        log_det = 2 * float(np.log(np.diagonal(LB)).sum()) + float(np.log(D).sum())
        log_det += 2 * float(np.log(np.diagonal(LA)).sum())
        fit = float(np.trace(YY)) - float(np.vdot(HY, beta))
        value = -0.5 * fit - t / 2 * (log_det + (n - q) * LOG_2PI + missing) + obs.log_constant(model.noise)[0]
        solved = Solved(np.zeros((0, t)), beta, np.zeros((0, q)), LA)
        return Evaluation(model, A, Lm, LB, B, D, solved, VR[:, :t], VR[:, t:], missing, value)

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        p = self.evaluate(theta)
        if not gradient:
            return p.value, np.empty(0)
        kernel, obs, H, D, t = p.model.kernel, self.obs, self.H, p.D, self.obs.Y.shape[1]
        Z, m, q = p.A.take(self.rows), len(p.Lm), H.shape[1]
        identity = np.eye(m)
        Binv = scipy.linalg.cho_solve((p.LB, True), identity)
        Vr = Binv @ (p.VY - p.VH @ p.solved.beta)  # V a
        # S^-1 H LA^-T, of which V times it:
        VU = scipy.linalg.solve_triangular(p.solved.LA, (Binv @ p.VH).T, lower=True).T if q else np.zeros((m, 0))
        ends = np.hstack([Vr, np.sqrt(t) * VU])
        VEV = 0.5 * (ends @ ends.T + t * (p.B - 2 * identity + Binv))
        back = scipy.linalg.solve_triangular(p.Lm, VEV, lower=True, trans=1)
        back = scipy.linalg.solve_triangular(p.Lm, back.T, lower=True, trans=1)  # Lm^-T (V E V') Lm^-1
        n_theta = len(kernel.theta)
        everyone = np.arange(obs.n)
        total = kernel.contract_between(p.A, self.rows, self.rows, -back) if n_theta else np.empty(0)
        by_noise = 0.0

        def work(part: slice) -> tuple[np.ndarray, float]:
            mine = p.A.take(part)
            Kmb = kernel.block(Z, mine)
            V = scipy.linalg.solve_triangular(p.Lm, Kmb, lower=True, check_finite=False)
            VD = V / D[part]
            both = np.hstack([obs.Y[part] - H[part] @ p.solved.beta, H[part]]) / D[part][:, None]
            inner = np.hstack([p.VY - p.VH @ p.solved.beta, p.VH])
            back_both = both - VD.T @ (Binv @ inner)  # S^-1 (Y - H beta) and S^-1 H of the block
            a = back_both[:, :t]
            U = scipy.linalg.solve_triangular(p.solved.LA, back_both[:, t:].T, lower=True).T if q else back_both[:, t:]
            rows = np.hstack([a, np.sqrt(t) * U])
            own = np.zeros(0)
            if n_theta:
                E2 = ends @ rows.T + t * (VD - Binv @ VD)  # 2 V E of the block
                P = scipy.linalg.solve_triangular(p.Lm, E2, lower=True, trans=1, check_finite=False)
                own = kernel.contract_between(p.A, self.rows, everyone[part], P, Kmb)
                own = own + _diagonal_contraction(kernel, p.A, everyone[part], -t / (2 * D[part]))
            # dF / dD: the diagonal of (a a' + t U U' - t S^-1) / 2, and of the trace
            half = scipy.linalg.solve_triangular(p.LB, VD, lower=True, check_finite=False)
            inverse = 1 / D[part] - np.einsum("ij,ij->j", half, half)
            left = np.maximum(kernel.prepared_diagonal(mine) - np.einsum("ij,ij->j", V, V), 0.0)
            slope = 0.5 * (np.einsum("ij,ij->i", rows, rows) - t * inverse + t * left / D[part] ** 2)
            return own, float((slope / obs.weight[part]).sum())

        def add(found: tuple[np.ndarray, float]) -> None:
            nonlocal total, by_noise
            total, by_noise = total + found[0], by_noise + found[1]

        in_order(self._blocks(), work, add, self.threads)
        if self.model.noise_bounds is None:
            return p.value, total
        return p.value, np.append(total, (by_noise + obs.log_constant(p.model.noise)[1]) * p.model.noise)

    def conclude(self, theta: np.ndarray) -> tuple[Evaluation, float]:
        """(the bound at theta, backward error of the coefficients)."""
        p = self.evaluate(theta)
        right = p.VY - p.VH @ p.solved.beta
        x = scipy.linalg.cho_solve((p.LB, True), right)
        size = np.linalg.norm(p.B, 1) * np.linalg.norm(x) + np.linalg.norm(right)
        return p, float(np.linalg.norm(p.B @ x - right) / size) if size > 0 else 0.0


def _diagonal_contraction(kernel: Any, A: Any, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """sum_i w_i dk(x_i, x_i) / d theta, for a few rows at a time."""
    total = np.zeros(len(kernel.theta))
    for start in range(0, len(rows), 64):
        some = rows[start : start + 64]
        total = total + kernel.contract_between(A, some, some, np.diag(weight[start : start + 64]))
    return total


@dataclass(frozen=True)
class InducingPosterior(Posterior):
    """The optimal variational distribution: C are coefficients of the inducing rows."""

    Lm: np.ndarray
    LB: np.ndarray

    def _halves(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V = scipy.linalg.solve_triangular(self.Lm, K.T, lower=True, check_finite=False)
        return V, scipy.linalg.solve_triangular(self.LB, V, lower=True, check_finite=False)

    def reduction(self, K: np.ndarray) -> np.ndarray:
        V, W = self._halves(K)
        return np.asarray(np.einsum("ij,ij->j", V, V) - np.einsum("ij,ij->j", W, W))

    def reduction_matrix(self, K: np.ndarray) -> np.ndarray:
        V, W = self._halves(K)
        return np.asarray(V.T @ V - W.T @ W)
