"""Maximising the evidence with a precision for each coefficient, over the columns that are still active.

The letters are those of :mod:`epicycle.bayes._evidence`. A column whose precision reaches the threshold is left out for
good: its coefficient is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.bayes._evidence import LOG_2PI, Hyperpriors, not_below
from epicycle.bayes._rows import CompactRows
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._monitor import Monitor
from epicycle.core._solution import Solution

_NEAR = 0.1  # largest derivative below which Newton's step is tried first
_LONGEST = 2.0  # step of Newton's method, in logarithms


def _lower_root(H: np.ndarray) -> np.ndarray:
    """L with H = L L'; eigenvalues that rounding made negative are raised to its size."""
    if not np.isfinite(H).all():
        raise np.linalg.LinAlgError("products of columns and precisions overflow")
    try:
        return np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(H)
        least = len(H) * np.finfo(np.float64).eps * values[-1]
        return np.asarray(scipy.linalg.qr((vectors * np.sqrt(np.maximum(values, least))).T, mode="r")[0]).T


@dataclass(frozen=True)
class RelevanceState:
    """The posterior of the active columns at one setting of the precisions."""

    active: np.ndarray  # of columns, in order
    lambdas: np.ndarray  # of the active ones
    alpha: float
    mean: np.ndarray
    variance: np.ndarray  # the diagonal of the posterior covariance
    sse: float
    evidence: float

    @property
    def determined(self) -> np.ndarray:
        """g_j = 1 - l_j S_jj: how far the data determine a coefficient."""
        return np.asarray(np.clip(1.0 - self.lambdas * self.variance, 0.0, 1.0))


class RelevanceEvidence:
    """L as a function of the precisions of noise and coefficients."""

    def __init__(self, rows: CompactRows, priors: Hyperpriors, threshold: float) -> None:
        self.rows, self.priors, self.threshold, self.n = rows, priors, threshold, rows.weight
        self.gram = rows.R.T @ rows.R
        self.product = rows.R.T @ rows.q

    def at(self, active: np.ndarray, lambdas: np.ndarray, alpha: float) -> RelevanceState:
        rows = self.rows
        R = rows.R[:, active]
        few = len(R) < len(active)
        mean, variance, log_det = (self._by_rows if few else self._by_columns)(active, lambdas, alpha)
        residual = rows.q - R @ mean
        sse = rows.rest + float(residual @ residual)
        evidence = self.priors.log_density(alpha, lambdas) + 0.5 * float(
            np.sum(np.log(lambdas))
            + self.n * np.log(alpha)
            - alpha * sse
            - lambdas @ mean**2
            - log_det
            - self.n * LOG_2PI
        )
        return RelevanceState(active, lambdas, alpha, mean, variance, sse, evidence)

    def _by_columns(
        self, active: np.ndarray, lambdas: np.ndarray, alpha: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        S = self.covariance(active, lambdas, alpha)
        mean = alpha * (S[0] @ self.product[active])
        return mean, np.diagonal(S[0]).copy(), S[1]

    def covariance(self, active: np.ndarray, lambdas: np.ndarray, alpha: float) -> tuple[np.ndarray, float]:
        """(S, log det of its inverse) of the active columns."""
        if not len(active):
            return np.zeros((0, 0)), 0.0
        H = alpha * self.gram[np.ix_(active, active)]
        H.flat[:: len(H) + 1] += lambdas
        scale = 1.0 / np.sqrt(np.diagonal(H))
        L = _lower_root(H * np.outer(scale, scale))
        inverse = scipy.linalg.lapack.dpotri(L, lower=1)[0]
        S = np.tril(inverse) + np.tril(inverse, -1).T
        log_det = 2 * float(np.sum(np.log(np.abs(np.diagonal(L)))) - np.sum(np.log(scale)))
        return S * np.outer(scale, scale), log_det

    def _by_rows(self, active: np.ndarray, lambdas: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray, float]:
        """The same through (I/a + R diag(1/l) R')^-1, which is smaller where rows are fewer than columns."""
        R = self.rows.R[:, active] / lambdas
        K = R @ self.rows.R[:, active].T
        K.flat[:: len(K) + 1] += 1.0 / alpha
        L = _lower_root(K)
        half = scipy.linalg.solve_triangular(L, R, lower=True)
        mean = half.T @ scipy.linalg.solve_triangular(L, self.rows.q, lower=True)
        log_det = float(np.sum(np.log(lambdas)) + len(K) * np.log(alpha) + 2 * np.sum(np.log(np.abs(np.diagonal(L)))))
        return mean, 1.0 / lambdas - np.sum(half**2, axis=0), log_det

    def gradient(self, s: RelevanceState) -> np.ndarray:
        """The derivatives of the evidence in the logarithms of the precisions, that of the noise last."""
        h, g = self.priors, s.determined
        of_lambda = h.lambda_1 - h.lambda_2 * s.lambdas + 0.5 * (g - s.lambdas * s.mean**2)
        of_alpha = h.alpha_1 - h.alpha_2 * s.alpha + 0.5 * (self.n - g.sum() - s.alpha * s.sse)
        return np.append(of_lambda, of_alpha)

    def hessian(self, s: RelevanceState) -> np.ndarray:
        """The second derivatives: S changes by -S_jk^2 with l_k, m by -S_jk m_k, and a X'X is S^-1 - diag(l)."""
        h, m, lam, p = self.priors, s.mean, s.lambdas, len(s.mean)
        S = self.covariance(s.active, lam, s.alpha)[0]
        pull = lam * m
        H = np.empty((p + 1, p + 1))
        H[:p, :p] = np.outer(lam, lam) * (0.5 * S**2 + np.outer(m, m) * S)
        H.flat[: p * (p + 1) : p + 2] += -h.lambda_2 * lam - 0.5 * lam * (np.diagonal(S) + m**2)
        explained = np.diagonal(S) - np.einsum("ij,j,ij->i", S, lam, S)
        drawn = S @ pull
        H[:p, p] = H[p, :p] = 0.5 * lam * explained - pull * drawn
        H[p, p] = -h.alpha_2 * s.alpha - 0.5 * (lam @ explained + s.alpha * s.sse) + pull @ drawn
        return H

    def _newton(self, s: RelevanceState, gradient: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Precisions after Newton's step, where the evidence is concave; far away the step is cut."""
        try:
            H = self.hessian(s)
            if not np.isfinite(H).all():
                return None
            step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(-H), gradient)
        except np.linalg.LinAlgError:
            return None
        step = np.clip(step, -_LONGEST, _LONGEST)
        return s.lambdas * np.exp(step[:-1]), s.alpha * float(np.exp(step[-1]))

    def _next(self, s: RelevanceState) -> RelevanceState | None:
        """The state after MacKay's step, with columns left out if that does not lower the evidence, or after EM's."""
        h, g = self.priors, s.determined
        with np.errstate(divide="ignore", over="ignore"):
            lambdas = (g + 2 * h.lambda_1) / (s.mean**2 + 2 * h.lambda_2)
            alpha = float(np.divide(self.n - g.sum() + 2 * h.alpha_1, s.sse + 2 * h.alpha_2))
            em = (1 + 2 * h.lambda_1) / (s.mean**2 + s.variance + 2 * h.lambda_2)
            em_alpha = float(np.divide(self.n + 2 * h.alpha_1, s.sse + g.sum() / s.alpha + 2 * h.alpha_2))
        keep = lambdas < self.threshold
        everything = np.ones_like(keep)
        attempts = [(lambdas, alpha, keep), (lambdas, alpha, everything), (em, em_alpha, everything)]
        gradient = self.gradient(s)
        if np.abs(gradient).max() < _NEAR and (newton := self._newton(s, gradient)) is not None:
            attempts.insert(0, (*newton, newton[0] < self.threshold))
        for values, noise, kept in attempts:
            if not (0 < noise < np.inf and np.all((values[kept] > 0) & (values[kept] < np.inf))):
                continue
            try:
                found = self.at(s.active[kept], values[kept], noise)
            except np.linalg.LinAlgError:
                continue
            if not_below(found.evidence, s.evidence):
                return found
        return None

    def maximise(
        self, alpha: float, *, tol: float, max_iter: int, monitor: Monitor
    ) -> tuple[RelevanceState, list[float], Solution]:
        """(the last state, the evidence after every step, what is known of the search)."""
        size = np.sqrt(np.diagonal(self.gram))
        active = np.flatnonzero(size > 0)  # a constant column tells nothing
        try:
            state = self.at(active, np.ones(len(active)), alpha)
        except np.linalg.LinAlgError as error:
            raise DataError(f"X, y: {error}; scale them down") from None
        trace, reason, iteration = [], "max_iter", 0
        for iteration in range(1, max_iter + 1):
            found = self._next(state)
            state = state if found is None else found
            trace.append(state.evidence)
            slope = float(np.abs(self.gradient(state)).max())
            stop = monitor(
                iteration,
                np.append(state.lambdas, state.alpha),
                objective=-state.evidence,
                log_evidence=state.evidence,
                active=float(len(state.active)),
            )
            if slope <= tol or found is None or stop:
                reason = "converged" if slope <= tol else "stalled" if found is None else "stopped"
                break
        meaning = "derivative of the log evidence in the logarithm of any precision, largest"
        certificate = Certificate("gradient norm", float(np.abs(self.gradient(state)).max()), tol, meaning)
        x = np.append(state.lambdas, state.alpha)
        return state, trace, Solution(x, -state.evidence, monitor.history(), certificate, iteration, reason)

    def finished(self, s: RelevanceState) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients of all columns, covariance of the active ones)."""
        coef = np.zeros(self.rows.R.shape[1])
        coef[s.active] = s.mean
        try:
            return coef, self.covariance(s.active, s.lambdas, s.alpha)[0]
        except np.linalg.LinAlgError as error:
            raise DataError(f"X, y: {error}; scale them down") from None
