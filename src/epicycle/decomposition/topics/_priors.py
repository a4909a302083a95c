"""Priors that are learnt: the maximum of the bound, or of the probability of counts, in alpha and eta.

For E log theta, alpha maximises  F(alpha) = n (log Gamma(sum alpha) - sum log Gamma(alpha_k)) + sum_k alpha_k t_k,
t = sum_d E log theta_d, which is concave: Newton's method with a Hessian that is diagonal plus a constant (Minka,
2000). Counts have the fixed point of the same paper,

    alpha_k <- alpha_k sum_d [digamma(n_dk + alpha_k) - digamma(alpha_k)]
                       / sum_d [digamma(n_d + sum alpha) - digamma(sum alpha)],

which never lowers their probability.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, polygamma, psi

LEAST, MOST = 1e-6, 1e6  # of a parameter
_STEPS, _HALVINGS = 30, 40


def value(alpha: np.ndarray, n: float, logs: np.ndarray, repeats: float = 1.0) -> float:
    """F of the module; every entry of alpha stands for `repeats` equal ones."""
    total = repeats * alpha.sum()
    return float(n * (gammaln(total) - repeats * gammaln(alpha).sum()) + alpha @ logs)


def newton(alpha: np.ndarray, n: float, logs: np.ndarray, repeats: float = 1.0) -> np.ndarray:
    """The maximum of F from alpha on, within the limits; F is never lowered."""
    alpha = alpha.copy()
    if n <= 0 or repeats * len(alpha) == 1:  # of one topic all documents have the share 1, and F is constant
        return alpha
    now = value(alpha, n, logs, repeats)
    for _ in range(_STEPS):
        total = repeats * alpha.sum()
        gradient = n * repeats * (psi(total) - psi(alpha)) + logs
        diagonal = -n * repeats * polygamma(1, alpha)
        constant = n * repeats**2 * float(polygamma(1, total))
        shift = np.sum(gradient / diagonal) / (1.0 / constant + np.sum(1.0 / diagonal))
        step = -(gradient - shift) / diagonal
        size = 1.0
        for _ in range(_HALVINGS):
            new = np.clip(alpha + size * step, np.maximum(alpha / 10, LEAST), np.minimum(alpha * 10, MOST))
            found = value(new, n, logs, repeats)
            if found >= now:
                break
            size /= 2
        else:
            return alpha
        moved = float(np.max(np.abs(new / alpha - 1)))
        alpha, now = new, found
        if moved < 1e-6:
            break
    return alpha


def fixed_point(alpha: np.ndarray, counts: list[np.ndarray], totals: np.ndarray, steps: int = 5) -> np.ndarray:
    """alpha after some steps; `counts[k][m]` documents have m words of topic k, `totals[m]` have m words."""
    for _ in range(steps):
        total = float(alpha.sum())
        below = float(totals @ (psi(np.arange(len(totals)) + total) - psi(total)))
        if not below > 0:
            return alpha
        above = [float(c @ (psi(np.arange(len(c)) + a) - psi(a))) for a, c in zip(alpha, counts, strict=True)]
        alpha = np.clip(alpha * np.array(above) / below, LEAST, MOST)
    return alpha


def symmetric_fixed_point(eta: float, counts: np.ndarray, p: int, topic_totals: np.ndarray, steps: int = 5) -> float:
    """eta for all p words alike; `counts` says how many pairs of a word and a topic have 0, 1, ... tokens."""
    values = np.flatnonzero(counts)
    for _ in range(steps):
        above = float(counts[values] @ (psi(values + eta) - psi(eta)))
        below = p * float(np.sum(psi(topic_totals + p * eta) - psi(p * eta)))
        if not (above > 0 and below > 0):
            return eta
        eta = float(np.clip(eta * above / below, LEAST, MOST))
    return eta
