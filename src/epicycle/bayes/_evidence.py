"""The evidence of a linear model with normal noise and normal coefficients.

y ~ N(Xw, 1/a) and w_j ~ N(0, 1/l_j), with gamma distributions of shape and rate (a_1, a_2) and (l_1, l_2) over a and
every l. Given a and l the posterior of w is normal with covariance S = (diag(l) + a X'X)^-1 and mean m = a S X'y, and

    L = sum_j (l_1 log l_j - l_2 l_j) + a_1 log a - a_2 a
        + 1/2 (sum_j log l_j + n log a - a |y - Xm|^2 - sum_j l_j m_j^2 - log det S^-1 - n log 2 pi)

is maximised over a and l. With g_j = 1 - l_j S_jj its derivatives in the logarithms are  l_1 - l_2 l_j + (g_j - l_j
m_j^2) / 2  and  a_1 - a_2 a + (n - sum g - a |y - Xm|^2) / 2. MacKay's step solves these with g held fixed; it is fast
and may lower L, in which case the step of EM is taken, which never does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.bayes._rows import CompactRows
from epicycle.core._certificate import Certificate
from epicycle.core._monitor import Monitor
from epicycle.core._solution import Solution

LOG_2PI = float(np.log(2 * np.pi))
_NEAR = 0.1  # Newton decrement, in nats, below which Newton's step is tried first
_ROUNDING = 1e-12  # of the evidence, relative


@dataclass(frozen=True)
class Hyperpriors:
    """Shapes and rates of the gamma distributions of the noise's and the coefficients' precision."""

    alpha_1: float
    alpha_2: float
    lambda_1: float
    lambda_2: float

    def log_density(self, alpha: float, lambdas: np.ndarray) -> float:
        of_lambda = np.sum(self.lambda_1 * np.log(lambdas) - self.lambda_2 * lambdas)
        return float(of_lambda + self.alpha_1 * np.log(alpha) - self.alpha_2 * alpha)


def not_below(value: float, than: float) -> bool:
    """Whether an evidence did not fall, but for rounding."""
    return bool(value >= than - _ROUNDING * (1.0 + abs(than)))


# ------------------------------------------------------------------------------------------- one precision for all


@dataclass(frozen=True)
class RidgeState:
    """The evidence at one (alpha, lambda), with what its derivatives need."""

    alpha: float
    lambda_: float
    z: np.ndarray  # the posterior mean along the axes
    sse: float
    effective: float  # sum of g
    evidence: float
    gradient: np.ndarray  # in (log alpha, log lambda)
    hessian: np.ndarray

    @property
    def decrement(self) -> float:
        """Distance of the evidence below its maximum, to second order; infinite where it is not concave."""
        step = self.newton_step
        found = np.nan if step is None else float(self.gradient @ step) / 2
        return found if np.isfinite(found) else float("inf")

    @property
    def newton_step(self) -> np.ndarray | None:
        if not np.isfinite(self.hessian).all() or not np.isfinite(self.gradient).all():
            return None
        try:
            L = np.linalg.cholesky(-self.hessian)
        except np.linalg.LinAlgError:
            return None
        return np.asarray(scipy.linalg.cho_solve((L, True), self.gradient))


class RidgeEvidence:
    """L as a function of two precisions; along the principal axes of X it costs O(p)."""

    def __init__(self, rows: CompactRows, priors: Hyperpriors) -> None:
        self.priors, self.n, self.p = priors, rows.weight, rows.R.shape[1]
        U, self.singular, self.axes = np.linalg.svd(rows.R)  # R has no more rows than columns: U is square
        self.u, self.rest = U.T @ rows.q, rows.rest

    def at(self, alpha: float, lambda_: float) -> RidgeState:
        d, u, h = self.singular**2, self.u, self.priors
        r = lambda_ / alpha
        left = 1.0 / (d + r)
        z = self.singular * u * left
        sse = self.rest + float(np.sum((u * r * left) ** 2))
        g = d * left
        size = float(z @ z)
        logs = float(np.sum(np.log(lambda_ + alpha * d))) + (self.p - len(d)) * np.log(lambda_)
        fit = self.p * np.log(lambda_) + self.n * np.log(alpha) - alpha * sse - lambda_ * size - logs - self.n * LOG_2PI
        # one precision has one hyperprior
        evidence = h.log_density(alpha, np.array([lambda_])) + 0.5 * float(fit)
        effective = float(g.sum())
        of_alpha = h.alpha_1 - h.alpha_2 * alpha + 0.5 * (self.n - effective - alpha * sse)
        of_lambda = h.lambda_1 - h.lambda_2 * lambda_ + 0.5 * (effective - lambda_ * size)
        G = float(np.sum(g * (1 - g)))
        B = 2 * lambda_ * float(np.sum(z**2 * r * left))
        H_aa = -h.alpha_2 * alpha + 0.5 * (-G - alpha * sse + B)
        H_ll = -h.lambda_2 * lambda_ + 0.5 * (-G - lambda_ * size + B)
        hessian = np.array([[H_aa, 0.5 * (G - B)], [0.5 * (G - B), H_ll]])
        return RidgeState(alpha, lambda_, z, sse, effective, evidence, np.array([of_alpha, of_lambda]), hessian)

    def steps(self, s: RidgeState) -> list[tuple[float, float]]:
        """Candidates for the next point, the best guess first; the last never lowers the evidence."""
        h, size = self.priors, float(s.z @ s.z)
        out = []
        newton = s.newton_step
        if newton is not None and s.decrement < _NEAR:
            out.append((s.alpha * float(np.exp(newton[0])), s.lambda_ * float(np.exp(newton[1]))))
        with np.errstate(divide="ignore", over="ignore"):
            mackay = (
                np.divide(self.n - s.effective + 2 * h.alpha_1, s.sse + 2 * h.alpha_2),
                np.divide(s.effective + 2 * h.lambda_1, size + 2 * h.lambda_2),
            )
            trace = (self.p - s.effective) / s.lambda_
            em = (
                np.divide(self.n + 2 * h.alpha_1, s.sse + s.effective / s.alpha + 2 * h.alpha_2),
                np.divide(self.p + 2 * h.lambda_1, size + trace + 2 * h.lambda_2),
            )
        return [*out, (float(mackay[0]), float(mackay[1])), (float(em[0]), float(em[1]))]

    def _next(self, state: RidgeState) -> RidgeState | None:
        for step in self.steps(state):
            if all(0 < v < np.inf for v in step):
                new = self.at(*step)
                if not_below(new.evidence, state.evidence):
                    return new
        return None

    def maximise(
        self, alpha: float, lambda_: float, *, tol: float, max_iter: int, monitor: Monitor
    ) -> tuple[RidgeState, list[float], Solution]:
        """(the last state, the evidence before each step and at the end, what is known of the search)."""
        state = self.at(alpha, lambda_)
        trace, reason, iteration = [state.evidence], "max_iter", 0
        for iteration in range(1, max_iter + 1):
            found = self._next(state)
            state = state if found is None else found
            trace.append(state.evidence)
            x = np.array([state.alpha, state.lambda_])
            stop = monitor(iteration, x, objective=-state.evidence, log_evidence=state.evidence)
            if state.decrement <= tol or found is None or stop:
                reason = "converged" if state.decrement <= tol else "stalled" if found is None else "stopped"
                break
        meaning = "the log evidence is within this of a local maximum, to second order"
        certificate = Certificate("newton decrement", state.decrement, tol, meaning)
        x = np.array([state.alpha, state.lambda_])
        return state, trace, Solution(x, -state.evidence, monitor.history(), certificate, iteration, reason)

    def coefficients(self, state: RidgeState) -> tuple[np.ndarray, np.ndarray]:
        """(posterior mean, posterior covariance) of the coefficients."""
        V = self.axes
        precision = np.full(self.p, state.lambda_)
        precision[: len(self.singular)] += state.alpha * self.singular**2
        return V[: len(self.singular)].T @ state.z, V.T @ (V / precision[:, None])
