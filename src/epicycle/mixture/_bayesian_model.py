r"""Variational Bayes for normal components with normal-Wishart priors (Attias 2000; Bishop 2006, 10.2).

q(pi) is a Dirichlet distribution or independent sticks, q(m_k, L_k) = N(m_k; (beta_k L_k)^-1) Wishart(L_k; W_k, nu_k).
E: shares r_ik proportional to exp rho_ik, rho_ik = E log pi_k + E log N(x_i; m_k, L_k^-1). M: the parameters of q from
the sums of the E-step. With the best shares the evidence lower bound is

    sum_i v_i log sum_k exp rho_ik - KL(q(pi) || p(pi)) - sum_k KL(q(m_k, L_k) || p(m_k, L_k)),

which no step lowers. reg_covar stands for noise of that variance in every entry: it is in both steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln, digamma, gammaln

from epicycle.em._latent_model import ROUNDING
from epicycle.mixture import _covariances as cov
from epicycle.mixture._normal_model import LOG_2PI, NormalModel, Normals

Parameters = Mapping[str, np.ndarray]


@dataclass
class Prior:
    """Parameters of p(pi) and p(m_k, L_k); `covariance` in the shape of one component."""

    process: bool
    concentration: float
    mean_precision: float
    mean: np.ndarray
    degrees: float
    covariance: np.ndarray


class BayesianModel(NormalModel):
    """Parameters are those of q: `first` and `second` of the weights, `precision`, `degrees`, `means`, `covariances`.

    covariances = W^-1 / nu, the inverses of the expected precisions.
    """

    def __init__(self, k: int, p: int, kind: str, reg_covar: float, names: Sequence[str], prior: Prior) -> None:
        super().__init__(k, p, kind, reg_covar, names)
        self.prior = prior

    # ------------------------------------------------------------------------------------------- weights

    def log_weights(self, parameters: Parameters) -> np.ndarray:
        """E log pi_k."""
        a, b = parameters["first"], parameters["second"]
        if not self.prior.process:
            return np.asarray(digamma(a) - digamma(a.sum()))
        both = digamma(a + b)
        rest = digamma(b) - both
        return np.asarray(digamma(a) - both + np.concatenate([[0.0], np.cumsum(rest)[:-1]]))

    def weights(self, parameters: Parameters) -> np.ndarray:
        """E pi_k, with the last stick broken no further."""
        a, b = parameters["first"], parameters["second"]
        if not self.prior.process:
            return np.asarray(a / a.sum())
        left = b / (a + b)
        found = a / (a + b) * np.concatenate([[1.0], np.cumprod(left)[:-1]])
        return np.asarray(found / found.sum())

    def _weights_divergence(self, parameters: Parameters) -> float:
        a, b, alpha = parameters["first"], parameters["second"], self.prior.concentration
        if self.prior.process:  # of Beta(a, b) from Beta(1, alpha), stick by stick
            both = digamma(a + b)
            terms = betaln(1.0, alpha) - betaln(a, b) + (a - 1) * digamma(a) + (b - alpha) * digamma(b)
            return float((terms - (a - 1 + b - alpha) * both).sum())
        total = a.sum()
        constant = gammaln(total) - gammaln(a).sum() - gammaln(self.k * alpha) + self.k * gammaln(alpha)
        return float(constant + ((a - alpha) * (digamma(a) - digamma(total))).sum())

    # ------------------------------------------------------------------------------------------- components

    def _log_precision(self, parameters: Parameters, W: np.ndarray) -> np.ndarray:
        """E log |L_k|."""
        nu = parameters["degrees"]
        psi = digamma(0.5 * (nu[:, None] - np.arange(self.p))).sum(axis=1)
        half = np.broadcast_to(cov.log_determinants(W), self.k)
        return np.asarray(self.p * np.log(2.0) + psi - self.p * np.log(nu) + 2 * half)

    def _traces(self, W: np.ndarray, C: Any) -> np.ndarray:
        """tr(P_k C) with the expected precisions P_k = W'W, for a matrix, variances or one variance C."""
        if W.ndim == 2:
            return np.asarray((W**2 * C).sum(axis=1))
        matrix = C if np.ndim(C) == 2 else np.diag(np.broadcast_to(C, self.p))
        return np.asarray(np.broadcast_to(np.einsum("aij,aij->a", W @ matrix, W), self.k))

    def prepared(self, parameters: Parameters) -> Normals:
        W = self.known_factors(parameters)
        noise = self.p / parameters["precision"] + self.reg_covar * self._traces(W, 1.0)
        expected = self._log_precision(parameters, W) - self.p * LOG_2PI - noise
        constants = self.log_weights(parameters) + 0.5 * expected
        return Normals(constants, np.ascontiguousarray(parameters["means"]), W, None)

    def log_prior(self, parameters: Parameters) -> float:
        """Minus the divergences of q from the prior; without the constant of a prior that is singular."""
        prior, p = self.prior, self.p
        C, nu, beta = parameters["covariances"], parameters["degrees"], parameters["precision"]
        W = self.factors(C)
        log_precision = self._log_precision(parameters, W)
        log_w = 2 * np.broadcast_to(cov.log_determinants(W), self.k) - p * np.log(nu)  # log |W_k|
        away = parameters["means"] - prior.mean
        moved = (W * away) if W.ndim == 2 else np.einsum("aij,aj->ai", np.broadcast_to(W, (self.k, p, p)), away)
        ratio = prior.mean_precision / beta
        of_means = 0.5 * (p * (ratio - np.log(ratio) - 1) + prior.mean_precision * (moved**2).sum(axis=1))
        of_precisions = (
            _log_wishart(nu, log_w, p)
            + 0.5 * (nu - prior.degrees) * log_precision
            - 0.5 * nu * p
            + 0.5 * self._traces(W, prior.covariance)
            - self._prior_constant()
        )
        return -float((of_means + of_precisions).sum()) - self._weights_divergence(parameters)

    def _prior_constant(self) -> float:
        C = self.prior.covariance
        if self.kind in ("full", "tied"):
            sign, value = np.linalg.slogdet(C)
            log_det = float(value) if sign > 0 else -np.inf
        else:
            with np.errstate(divide="ignore"):
                log_det = float(np.log(C).sum() * (self.p if self.kind == "spherical" else 1))
        if not np.isfinite(log_det):
            return 0.0
        return float(_log_wishart(np.array([self.prior.degrees]), np.array([-log_det]), self.p)[0])

    def rounding(self, parameters: Parameters) -> float:
        # The divergences are differences of large numbers: logarithms of determinants times degrees of freedom.
        size = float(np.abs(parameters["degrees"]).sum() * self.p)
        return super().rounding(parameters) + ROUNDING * size / (1 + size)

    # ------------------------------------------------------------------------------------------- M

    def m_step(self, statistics: tuple[Any, ...], parameters: Parameters) -> dict[str, np.ndarray]:
        counts, sums, scatter = statistics
        shift = sums / np.where(counts > 0, counts, 1.0)[:, None]
        S = cov.estimated(scatter, counts, shift, self.kind)
        return self.posterior(counts, parameters["means"] + shift, S)

    def from_shares(self, X: Any, r: np.ndarray) -> dict[str, np.ndarray]:
        return self.posterior(*self.moments_of(X, r))

    def posterior(self, counts: np.ndarray, means: np.ndarray, S: np.ndarray) -> dict[str, np.ndarray]:
        """q from total shares, means of the rows and covariances about them."""
        prior, k = self.prior, self.k
        if prior.process:
            behind = np.concatenate([np.cumsum(counts[::-1])[::-1][1:], [0.0]])
            first, second = 1.0 + counts, prior.concentration + behind
        else:
            first, second = prior.concentration + counts, np.zeros(k)
        beta = prior.mean_precision + counts
        away = means - prior.mean
        pulled = counts * prior.mean_precision / beta
        nu = prior.degrees + (np.full(k, counts.sum() / k) if self.kind == "tied" else counts)
        noisy = cov.regularized(S, self.reg_covar, self.kind)
        if self.kind == "full":
            total = counts[:, None, None] * noisy + pulled[:, None, None] * away[:, :, None] * away[:, None, :]
            C = (prior.covariance + total) / nu[:, None, None]
        elif self.kind == "tied":
            C = (prior.covariance + (counts.sum() * noisy + (away.T * pulled) @ away) / k) / nu[0]
        elif self.kind == "diag":
            C = (prior.covariance + counts[:, None] * noisy + pulled[:, None] * away**2) / nu[:, None]
        else:
            C = (prior.covariance + counts * noisy + pulled * (away**2).mean(axis=1)) / nu
        centres = (prior.mean_precision * prior.mean + counts[:, None] * means) / beta[:, None]
        return {
            "first": first,
            "second": second,
            "precision": beta,
            "degrees": nu,
            "means": centres,
            "covariances": np.asarray(C),
        }

    def feasible(self, parameters: Parameters) -> bool:
        positive = [parameters[name] for name in ("first", "precision")]
        if self.prior.process:
            positive.append(parameters["second"])
        if self.kind in ("diag", "spherical"):
            positive.append(parameters["covariances"])
        enough = parameters["degrees"] > self.p - 1
        return bool(enough.all() and all((values > 0).all() for values in positive))


def _log_wishart(nu: np.ndarray, log_w: np.ndarray, p: int) -> np.ndarray:
    """Logarithm of the constant of Wishart distributions with log |W| and nu degrees of freedom."""
    gammas = gammaln(0.5 * (nu[:, None] - np.arange(p))).sum(axis=1)
    return np.asarray(-0.5 * nu * (log_w + p * np.log(2.0)) - 0.25 * p * (p - 1) * np.log(np.pi) - gammas)
