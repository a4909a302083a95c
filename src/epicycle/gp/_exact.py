"""The marginal likelihood of Gaussian process regression, exact:  y ~ N(H beta, S),  S = K + D.

D is the diagonal of noise variances over weights, H a basis of the mean with a flat prior for beta (or nothing). With
a = S^-1 (y - H beta) at the best beta, A = H'S^-1 H and P = S^-1 - S^-1 H A^-1 H'S^-1,

    log p(y) = -y'a / 2 - log det S / 2 - log det A / 2 - (n - q) log(2 pi) / 2,
    d log p / d theta = tr((a a' - P) dS / d theta) / 2.

The inverse is never stored: its tiles are made from L^-1 and contracted with the derivatives of the kernel at once. The
curvature of -log p is estimated by the average of the observed and the expected information (Gilmour, Thompson and
Cullis, 1995), which needs products with vectors only:  (dS_i a)'P (dS_j a) / 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._threads import n_threads
from epicycle.gp._model import Model
from epicycle.gp._observations import Observations
from epicycle.kernels._gram import gram_matrix
from epicycle.linalg._cholesky import (
    Factor,
    NotPositiveError,
    diagonal_of_inverse,
    factor,
    inverse_tiles,
    inverted,
    lower_product,
    smallest_jitter,
)
from epicycle.linalg._shifted_systems import matrix_product

LOG_2PI = float(np.log(2 * np.pi))
_MAX_ROUNDING = 1e-6  # of the predictions at the observed rows, relative to the targets


@dataclass(frozen=True)
class Solved:
    """S^-1 (Y - H beta) and what belongs to it.

    C : (n, t), a of every target
    beta : (q, t)
    SH : (n, q), S^-1 H
    LA : (q, q), lower factor of A = H'S^-1 H
    """

    C: np.ndarray
    beta: np.ndarray
    SH: np.ndarray
    LA: np.ndarray

    @property
    def own_part(self) -> np.ndarray:
        """(n, q) with U U' = S^-1 H A^-1 H'S^-1."""
        return np.linalg.solve(self.LA, self.SH.T).T if self.LA.size else self.SH


def best_mean(SY: np.ndarray, SH: np.ndarray, H: np.ndarray) -> Solved:
    """The best beta from S^-1 Y and S^-1 H."""
    if not H.shape[1]:
        return Solved(SY, np.zeros((0, SY.shape[1])), SH, np.zeros((0, 0)))
    A = H.T @ SH
    try:
        LA = np.linalg.cholesky((A + A.T) / 2)
    except np.linalg.LinAlgError:
        raise DataError(
            "mean: its columns depend on each other to working precision; take fewer or scale them"
        ) from None
    beta = np.linalg.solve(LA.T, np.linalg.solve(LA, H.T @ SY))
    return Solved(SY - SH @ beta, beta, SH, LA)


class RegressionLikelihood:
    """Shared by likelihoods of regression: the meaning of theta, the observations and a basis of their mean.

    Parameters
    ----------
    model : Model
        What theta means.
    obs : Observations
    H : ndarray of shape (n, q)
        Basis of the mean at the observed rows.
    n_jobs : int, optional
    """

    def __init__(self, model: Model, obs: Observations, H: np.ndarray, n_jobs: int | None) -> None:
        self.model, self.obs, self.H, self.n_jobs = model, obs, H, n_jobs
        self.jitter = 0.0
        self.evaluations = 0
        self.scale = obs.scale
        self.standard_error = 0.0  # of the last gradient, largest entry

    def subset(self, chosen: np.ndarray) -> ExactLikelihood:
        """The exact likelihood of some of the rows."""
        return ExactLikelihood(self.model, self.obs.take(chosen, self.model.kernel), self.H[chosen], self.n_jobs)


class ExactLikelihood(RegressionLikelihood):
    """log p(y) as a function of theta, for given observations."""

    def __init__(self, model: Model, obs: Observations, H: np.ndarray, n_jobs: int | None) -> None:
        super().__init__(model, obs, H, n_jobs)
        self.threads = n_threads(float(obs.n) ** 3 / 3, n_jobs)

    # ------------------------------------------------------------------------------------------- evaluation

    def matrix(self, model: Model) -> tuple[object, np.ndarray]:
        """(prepared rows, K)."""
        A = model.kernel.prepare(self.obs.rows)
        K = gram_matrix(model.kernel, A, np.dtype(np.float64), self.n_jobs)
        if not np.isfinite(K[-1]).all() or not np.isfinite(np.diagonal(K)).all():
            raise DataError(f"kernel: {model.kernel!r:.80} gives values that are not finite for X; scale X")
        return A, K

    def shift(self, K: np.ndarray, model: Model, jitter: float, *, keep: bool) -> tuple[np.ndarray, np.ndarray]:
        """(K + D + jitter, its diagonal D), in a matrix of its own where K is to be kept."""
        with np.errstate(over="ignore"):  # a row of next to no weight has infinite noise, and no coefficient
            D = (self.obs.variances(model.noise) + jitter) / self.obs.weight
        S = K.copy() if keep else K
        index = np.arange(len(S))
        S[index, index] += D
        return S, D

    def solve(self, found: Factor) -> Solved:
        t = self.obs.Y.shape[1]
        both = found.solve(np.hstack([self.obs.Y, self.H]))
        return best_mean(both[:, :t], both[:, t:], self.H)

    def start(self, theta: np.ndarray) -> None:
        """Find the jitter that `theta` needs; all evaluations use it until the next start."""
        model = self.model.at(theta)
        _, K = self.matrix(model)
        _, self.jitter = smallest_jitter(self._attempts(K, model), self._mean(K, model), len(K), refine=False)

    def _mean(self, K: np.ndarray, model: Model) -> float:
        return float(np.diagonal(K).mean() + self.obs.variances(model.noise).mean())

    def _attempts(self, K: np.ndarray, model: Model) -> Callable[[float], tuple[Factor, Solved]]:
        """jitter -> (factor, solution), where S is positive definite and rounding leaves K a its digits."""
        reach = float(np.finfo(np.float64).eps) * _reach(K)

        def attempt(jitter: float) -> tuple[Factor, Solved]:
            found = factor(self.shift(K, model, jitter, keep=True)[0], self.threads)
            solved = self.solve(found)
            size = np.linalg.norm(self.obs.Y - self.H @ solved.beta, axis=0)
            if (reach * np.linalg.norm(solved.C, axis=0) > _MAX_ROUNDING * size).any():
                raise NotPositiveError("the coefficients are so large that nothing is left of their sum but rounding")
            return found, solved

        return attempt

    def state(self) -> dict[str, float]:
        return {"jitter": self.jitter}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.jitter = float(state["jitter"])

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        """log p(y) and its derivatives by theta; see `with_curvature`."""
        value, slope, _ = self.evaluate(theta, gradient=gradient, curved=False)
        return value, slope

    def with_curvature(self, theta: np.ndarray, curved: bool) -> tuple[float, np.ndarray, np.ndarray | None]:
        """The same, with the average information where it is asked for."""
        return self.evaluate(theta, gradient=True, curved=curved)

    def evaluate(
        self, theta: np.ndarray, *, gradient: bool, curved: bool
    ) -> tuple[float, np.ndarray, np.ndarray | None]:
        """(log p(y), its derivatives, average information).

        Raises
        ------
        NotPositiveError
            Where K + D with the jitter of the start is not positive definite to working precision.
        """
        self.evaluations += 1
        model, obs, H = self.model.at(theta), self.obs, self.H
        A, K = self.matrix(model)
        S, D = self.shift(K, model, self.jitter, keep=gradient)
        found = factor(S, self.threads)
        solved = self.solve(found)
        (n, t), q = obs.Y.shape, H.shape[1]
        # The restricted likelihood: integrating out beta under its flat prior adds log det A.
        log_det = found.log_determinant + 2 * float(np.log(np.diagonal(solved.LA)).sum())
        # The jitter is noise of every row before it is divided by the weight, as the noise itself.
        beside, by_noise = obs.log_constant(model.noise + self.jitter)
        value = -0.5 * float(np.vdot(obs.Y, solved.C)) - t / 2 * (log_det + (n - q) * LOG_2PI) + beside
        if not gradient:
            return value, np.empty(0), None
        inverse = inverted(found, self.threads)
        del found, S
        C, U, kernel = solved.C, solved.own_part, model.kernel
        total = np.zeros(len(kernel.theta) + 1)
        moved = np.zeros((len(kernel.theta) if curved else 0, n, t))  # dK C

        def tile(mine: slice, other: slice, T: np.ndarray) -> tuple[slice, slice, np.ndarray, list[np.ndarray]]:
            # T becomes the sum over targets of a a', less t P = t (S^-1 - U U'), on this tile.
            T *= -t
            T += C[mine] @ C[other].T
            if q:
                T += t * (U[mine] @ U[other].T)
            rows, cols = np.arange(n)[mine], np.arange(n)[other]
            part = kernel.contract_between(A, rows, cols, T, K[mine, other])
            part = np.append(part, np.vdot(T, K[mine, other]))
            moves: list[np.ndarray] = []
            if curved:
                moves.append(kernel.gradients_times(A, rows, cols, C[other], K[mine, other]))
                if mine != other:
                    moves.append(kernel.gradients_times(A, cols, rows, C[mine], K[other, mine]))
            return mine, other, part / 2 if mine == other else part, moves

        def add(done: tuple[slice, slice, np.ndarray, list[np.ndarray]]) -> None:
            nonlocal total
            mine, other, part, moves = done
            total = total + part
            for where, move in zip((mine, other), moves, strict=False):
                moved[:, where] += move

        inverse_tiles(inverse, tile, add, self.threads)
        diagonal = np.einsum("ij,ij->i", C, C) - t * diagonal_of_inverse(inverse)
        diagonal += t * np.einsum("ij,ij->i", U, U)
        # tr((a a' - P) S) = y'a - t (n - q): the deviation measures the rounding of the other entries
        missed = total[-1] + 0.5 * float(diagonal @ D) - 0.5 * (float(np.vdot(obs.Y, C)) - t * (n - q))
        self.standard_error = 2 * abs(missed)
        information = None if not curved else self._information(model, moved, C, U, inverse)
        if self.model.noise_bounds is None:
            return value, total[:-1], information
        own = 0.5 * float((diagonal / obs.weight).sum()) + by_noise
        return value, np.append(total[:-1], own * model.noise), information

    def _information(
        self, model: Model, moved: np.ndarray, C: np.ndarray, U: np.ndarray, inverse: np.ndarray
    ) -> np.ndarray:
        """(dS_i a)'P (dS_j a) / 2, summed over the targets."""
        obs = self.obs
        if self.model.noise_bounds is not None:
            moved = np.concatenate([moved, (model.noise / obs.weight[:, None] * C)[None]])
        k, n, t = moved.shape
        flat = moved.transpose(1, 0, 2).reshape(n, k * t)
        half = lower_product(inverse, flat).reshape(n, k, t)
        inner = np.einsum("nit,njt->ij", half, half, optimize=True)
        if U.shape[1]:
            known = (U.T @ flat).reshape(-1, k, t)
            inner -= np.einsum("nit,njt->ij", known, known)
        if self.model.noise_bounds is not None:
            share = model.noise / obs.variances(model.noise + self.jitter)
            inner[-1, -1] += t * float(((obs.weight - 1) * share**2).sum())
        return np.asarray(inner / 2)

    # ------------------------------------------------------------------------------------------- the end

    def conclude(self, theta: np.ndarray) -> tuple[Solved, Factor, float, float, float]:
        """(solution, factor, jitter, log p, backward error of the solution), with the smallest jitter that works."""
        model, obs = self.model.at(theta), self.obs
        _, K = self.matrix(model)
        (found, solved), jitter = smallest_jitter(self._attempts(K, model), self._mean(K, model), len(K))
        with np.errstate(over="ignore"):
            D = ((obs.variances(model.noise) + jitter) / obs.weight)[:, None]
        target = obs.Y - self.H @ solved.beta
        # A row whose noise overflows has no coefficient, and no equation to fulfil.
        known, D = np.isfinite(D), np.where(np.isfinite(D), D, 0.0)
        residual = np.where(known, target - matrix_product(K, solved.C, self.threads) - D * solved.C, 0.0)
        size = (_reach(K) + float(D.max())) * np.linalg.norm(solved.C, axis=0) + np.linalg.norm(target, axis=0)
        error = np.divide(np.linalg.norm(residual, axis=0), size, out=np.zeros(len(size)), where=size > 0)
        (n, t), q = obs.Y.shape, self.H.shape[1]
        log_det = found.log_determinant + 2 * float(np.log(np.diagonal(solved.LA)).sum())
        value = -0.5 * float(np.vdot(obs.Y, solved.C)) - t / 2 * (log_det + (n - q) * LOG_2PI)
        return solved, found, jitter, value + obs.log_constant(model.noise + jitter)[0], float(error.max())


def _reach(K: np.ndarray) -> float:
    """The largest sum of absolute values of a row, which bounds the norm."""
    return max(float(np.abs(K[s : s + 256]).sum(axis=1).max()) for s in range(0, len(K), 256))
