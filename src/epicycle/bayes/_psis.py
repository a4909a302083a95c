r"""Pareto smoothed importance sampling (Vehtari, Simpson, Gelman, Yao and Gabry, JMLR 25, 2024).

The M = min(S / 5, 3 sqrt(S / r_eff)) largest of S importance ratios are replaced by quantiles of a generalized Pareto
distribution fitted to them. Its shape k tells whether the ratios have a mean and a variance: below 1/2 both exist,
below 0.7 estimates are reliable for the usual numbers of draws, from 1 on there is not even a mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from epicycle.core._checks import number
from epicycle.core._exceptions import DataError
from epicycle.core.estimator._catalogue import in_catalogue

Array = np.ndarray

#: A fit to fewer ratios than this says nothing about the tail.
_FEWEST = 5
#: Strength of the prior of the shape, in observations of k = 1/2, and of the grid of Zhang and Stephens (2009).
_PRIOR_K, _PRIOR_B = 10, 3
#: Points of the grid that count for less than this are left out.
_NEGLIGIBLE = 10 * np.finfo(float).eps


class PSISResult(NamedTuple):
    """Smoothed weights and the shape of their tail.

    log_weights : logarithms of weights that add up to 1
    k_hat : shape of the tail; infinite where there were too few ratios to tell
    """

    log_weights: Array
    k_hat: float


@in_catalogue("bayes", "B6", certificate="k-hat")
def psis(log_ratios: Any, *, r_eff: float = 1.0) -> PSISResult:
    """Pareto smoothing of importance ratios, and the k-hat that says how far they can be trusted.

    Parameters
    ----------
    log_ratios : array-like of shape (n,)
        log p(x_i) - log q(x_i) of draws x_i from q; constants do not matter.
    r_eff : float, default=1.0
        Effective share of the draws, below 1 for those of a Markov chain.

    Examples
    --------
    The approximation is too narrow: a standard deviation of 0.6 for a normal target of 1, ratios without a variance.

    >>> import numpy as np
    >>> from epicycle.bayes import psis
    >>> x = 0.6 * np.random.default_rng(0).normal(size=4000)
    >>> print(f"{psis(-(x**2) / 2 + (x / 0.6) ** 2 / 2).k_hat:.2f}")
    0.60
    """
    x = np.array(log_ratios, dtype=np.float64)
    if x.ndim != 1 or not len(x):
        raise DataError(f"log_ratios: shape {x.shape}; expected (n,)")
    if np.isnan(x).any() or (x == np.inf).any() or x.max() == -np.inf:
        raise DataError("log_ratios: holds NaN or infinity, or only -infinity")
    share = number("r_eff", r_eff, low=np.finfo(float).tiny)
    n = len(x)
    x -= x.max()
    order = np.argsort(x)
    tail_size = int(np.ceil(min(n / 5, 3 * np.sqrt(n / share))))
    cut = max(x[order[max(n - tail_size - 1, 0)]], np.log(np.finfo(float).tiny))
    tail = order[x[order] > cut]  # ascending
    k_hat = np.inf
    if len(tail) >= _FEWEST:
        k_hat, sigma = pareto_fit(np.exp(x[tail]) - np.exp(cut))
        if np.isfinite(k_hat):
            p = np.arange(0.5, len(tail)) / len(tail)
            x[tail] = np.minimum(np.log(_pareto_quantile(p, k_hat, sigma) + np.exp(cut)), 0.0)
    return PSISResult(x - logsumexp(x), float(k_hat))


def pareto_fit(x: Array) -> tuple[float, float]:
    """(shape k, scale sigma) of the generalized Pareto distribution, of ascending positive numbers.

    The profile likelihood of b = -k / sigma is averaged over a grid of values of b (Zhang and Stephens, Technometrics
    51, 2009); the shape is then drawn towards 1/2 as by ten observations.
    """
    n = len(x)
    m = 30 + int(np.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    b = 1 / x[-1] + (1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (_PRIOR_B * quartile)
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        profile = n * (np.log(-b / k) - k - 1)
        weight = 1 / np.exp(profile - profile[:, None]).sum(axis=1)
    kept = weight >= _NEGLIGIBLE
    b, weight = b[kept], weight[kept] / weight[kept].sum()
    best = float(b @ weight)
    shape = float(np.log1p(-best * x).mean())
    return (n * shape + _PRIOR_K * 0.5) / (n + _PRIOR_K), -shape / best


def _pareto_quantile(p: Array, k: float, sigma: float) -> Array:
    """Quantiles of the generalized Pareto distribution that starts at 0."""
    if abs(k) < np.finfo(float).eps:
        return np.asarray(-sigma * np.log1p(-p))
    return np.asarray(sigma * np.expm1(-k * np.log1p(-p)) / k)
