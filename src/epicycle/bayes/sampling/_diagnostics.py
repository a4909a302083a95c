"""Diagnostics of Markov chains:  R-hat = sqrt((B/W + n - 1) / n),  ESS = mn / tau,  MCSE = sd / sqrt(ESS).

Chains are cut in half and their draws replaced by normal scores of their ranks, so that both numbers exist for any
distribution. tau = 1 + 2 sum_t rho_t adds autocorrelations in pairs as long as these are positive and falling, which
they are for every reversible chain (Geyer).

Vehtari, Gelman, Simpson, Carpenter and Bürkner, Rank-normalization, folding, and localization: an improved R-hat for
assessing convergence of MCMC, *Bayesian Analysis* 16 (2021).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import betaincinv, ndtri
from scipy.stats import rankdata

from epicycle.core._checks import open_unit
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core._parameters import Choice, check_parameter

Array = np.ndarray
#: Probabilities of a normal variable at one standard deviation below and above its mean.
_ONE_SD = (0.1586553, 0.8413447)


def r_hat(draws: Any) -> Array | float:
    """Potential scale reduction of split, rank-normalised chains: 1 where they cannot be told apart.

    The larger of two numbers: that of the draws compares locations, that of their distances from the median scales.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws, ...)
        One quantity, or an array of them behind the first two axes.

    Returns
    -------
    float or ndarray
        One number for each quantity; nan with fewer than four draws or where draws are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import bayes
    >>> x = np.random.default_rng(0).normal(size=(4, 500))
    >>> round(bayes.r_hat(x), 2), bool(bayes.r_hat(x + np.arange(4)[:, None]) > 1.5)
    (1.0, True)
    """
    return _each(draws, _r_hat)


def effective_sample_size(draws: Any, kind: str = "bulk", *, probability: float = 0.5) -> Array | float:
    """Number of independent draws that estimate as well as these.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws, ...)
        One quantity, or an array of them behind the first two axes.
    kind : {"bulk", "tail", "mean", "sd", "quantile"}, default="bulk"
        For estimates of the centre (by ranks), of the 5% and 95% quantiles (the smaller), of the mean, of the
        standard deviation, or of the quantile of `probability`.
    probability : float, default=0.5
        For ``kind="quantile"``.

    Returns
    -------
    float or ndarray
        One number for each quantity.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import bayes
    >>> rng, x = np.random.default_rng(0), np.zeros((4, 2000))
    >>> for t in range(1, 2000):  # tau = (1 + 0.9) / (1 - 0.9) = 19
    ...     x[:, t] = 0.9 * x[:, t - 1] + rng.normal(size=4)
    >>> bool(abs(bayes.effective_sample_size(x) - 8000 / 19) < 150)
    True
    """
    check_parameter("effective_sample_size", "kind", kind, Choice(*_ESS, "quantile"))
    if kind == "quantile":
        at = open_unit("probability", probability)
        return _each(draws, lambda x: _ess_quantile(x, at))
    return _each(draws, _ESS[kind])


def mcse(draws: Any, kind: str = "mean", *, probability: float = 0.5) -> Array | float:
    """Monte Carlo standard error of an estimate from the draws.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws, ...)
        One quantity, or an array of them behind the first two axes.
    kind : {"mean", "sd", "quantile"}, default="mean"
        The estimate: mean, standard deviation, or the quantile of `probability`.
    probability : float, default=0.5
        For ``kind="quantile"``.

    Returns
    -------
    float or ndarray
        One number for each quantity.
    """
    check_parameter("mcse", "kind", kind, Choice("mean", "sd", "quantile"))
    if kind == "quantile":
        at = open_unit("probability", probability)
        return _each(draws, lambda x: _mcse_quantile(x, at))
    return _each(draws, _mcse_mean if kind == "mean" else _mcse_sd)


def bfmi(energy: Any) -> Array:
    """Bayesian fraction of missing information of each chain; below 0.3 momenta explore the energies too slowly.

    Parameters
    ----------
    energy : array-like of shape (n_chains, n_draws)
        The Hamiltonian at every draw.

    Returns
    -------
    ndarray of shape (n_chains,)
    """
    e = _chains(energy)
    if e.ndim != 2:
        raise DataError(f"energy: shape {e.shape}; expected (n_chains, n_draws)")
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.mean(np.diff(e, axis=1) ** 2, axis=1) / np.var(e, axis=1, ddof=1))


# ------------------------------------------------------------------------------------------------- one quantity


def _chains(draws: Any) -> Array:
    try:
        x = np.asarray(draws, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataTypeError(f"draws: expected an array of numbers, got {type(draws).__name__}") from None
    if x.ndim < 2 or x.shape[0] == 0:
        raise DataError(f"draws: shape {x.shape}; expected (n_chains, n_draws, ...)")
    return x


def _each(draws: Any, statistic: Callable[[Array], float]) -> Array | float:
    """The statistic of every quantity behind the first two axes."""
    x = _chains(draws)
    flat = x.reshape(*x.shape[:2], -1)
    defined = x.shape[1] >= 4
    values = [statistic(q) if defined and np.isfinite(q).all() else np.nan for q in np.moveaxis(flat, -1, 0)]
    return float(values[0]) if x.ndim == 2 else np.array(values, dtype=np.float64).reshape(x.shape[2:])


def _split(x: Array) -> Array:
    """Both halves of every chain as chains of their own; the middle draw of an odd number belongs to neither."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _normal_scores(x: Array) -> Array:
    """Blom's: the normal quantile of (rank - 3/8) / (n + 1/4)."""
    flat = x.ravel()
    order = np.argsort(flat)
    ordered = flat[order]
    if (ordered[1:] == ordered[:-1]).any():
        ranks = rankdata(x, method="average").reshape(x.shape)
        return np.asarray(ndtri((ranks - 0.375) / (x.size + 0.25)))
    scores = np.empty(x.size)
    scores[order] = _scores_without_ties(x.size)
    return scores.reshape(x.shape)


@lru_cache(maxsize=8)
def _scores_without_ties(n: int) -> Array:
    return np.asarray(ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25)))


def _scale_reduction(x: Array) -> float:
    n = x.shape[1]
    within = float(np.mean(np.var(x, axis=1, ddof=1)))
    between = n * float(np.var(np.mean(x, axis=1), ddof=1))
    return float(np.sqrt((between / within + n - 1) / n)) if within > 0 else np.nan


def _r_hat(x: Array) -> float:
    halves = _split(x)
    return _r_hat_of(halves, _normal_scores(halves))


def _r_hat_of(halves: Array, scores: Array) -> float:
    if np.ptp(halves) == 0:
        return np.nan  # a constant: nothing says that the chains moved
    folded = np.abs(halves - np.median(halves))
    return float(np.fmax(_scale_reduction(scores), _scale_reduction(_normal_scores(folded))))


def diagnose(draws: Array) -> tuple[Array, Array, Array]:
    """R-hat, bulk and tail effective sample sizes of every quantity; the first two share their ranks."""
    flat = draws.reshape(*draws.shape[:2], -1)
    rows = np.full((3, flat.shape[-1]), np.nan)
    for k, x in enumerate(np.ascontiguousarray(np.moveaxis(flat, -1, 0))):
        if x.shape[1] >= 4 and np.isfinite(x).all():
            halves = _split(x)
            scores = _normal_scores(halves)
            rows[:, k] = _r_hat_of(halves, scores), _ess(scores), _ess_tail(x)
    r_hats, bulk, tail = rows.reshape(3, *draws.shape[2:])
    return r_hats, bulk, tail


def autocovariance(x: Array) -> Array:
    """Autocovariances at every lag along the last axis, divided by the number of draws."""
    n = x.shape[-1]
    centred = x - x.mean(axis=-1, keepdims=True)
    size = next_fast_len(2 * n, real=True)
    spectrum = rfft(centred, size)
    return np.asarray(irfft(spectrum.real**2 + spectrum.imag**2, size)[..., :n] / n)


def _ess(x: Array) -> float:
    """Effective sample size of chains, as they are; a constant counts in full."""
    m, n = x.shape
    if np.ptp(x) < np.finfo(np.float64).resolution:
        return float(x.size)
    covariance = autocovariance(x).mean(axis=0)
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (float(np.var(x.mean(axis=1), ddof=1)) if m > 1 else 0.0)
    rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    tau = max(_integrated_time(rho), 1 / np.log10(x.size))  # antithetic chains are not believed beyond all measure
    return float(x.size / tau)


def _integrated_time(rho: Array) -> float:
    """-1 + 2 sum rho by Geyer's initial monotone sequence of pairs rho_2k + rho_2k+1."""
    n, kept = len(rho), np.zeros(len(rho))
    kept[:2] = rho[:2]
    t, even, odd = 1, 1.0, rho[1]
    while t < n - 3 and even + odd > 0:
        even, odd = rho[t + 1], rho[t + 2]
        if even + odd >= 0:
            kept[t + 1 : t + 3] = even, odd
        t += 2
    last = t - 2
    if even > 0:  # half of the pair that broke off: it lowers the variance of the estimate
        kept[last + 1] = even
    for k in range(1, last - 1, 2):
        before = kept[k - 1] + kept[k]
        if kept[k + 1] + kept[k + 2] > before:
            kept[k + 1 : k + 3] = before / 2
    return float(-1 + 2 * kept[: last + 1].sum() + kept[last + 1 : last + 2].sum())


def _ess_bulk(x: Array) -> float:
    return _ess(_normal_scores(_split(x)))


def _ess_mean(x: Array) -> float:
    return _ess(_split(x))


def _ess_sd(x: Array) -> float:
    return _ess_mean((x - x.mean()) ** 2)


def _quantile(x: Array, probability: float) -> float:
    """Linear between order statistics.

    Where the quantile is a draw, rounding decides whether this draw counts as below it: the order of operations is
    that of ArviZ, so that both count the same.
    """
    ordered = np.sort(x, axis=None)
    at = x.size * probability + (1 - probability)
    k = int(np.floor(min(max(at, 1), x.size - 1)))
    share = min(max(at - k, 0.0), 1.0)
    return float((1 - share) * ordered[k - 1] + share * ordered[k])


def _ess_quantile(x: Array, probability: float) -> float:
    return _ess_mean((x <= _quantile(x, probability)).astype(np.float64))


def _ess_tail(x: Array) -> float:
    return min(_ess_quantile(x, 0.05), _ess_quantile(x, 0.95))


_ESS: dict[str, Callable[[Array], float]] = {
    "bulk": _ess_bulk,
    "tail": _ess_tail,
    "mean": _ess_mean,
    "sd": _ess_sd,
}


def _mcse_mean(x: Array) -> float:
    return float(np.std(x, ddof=1) / np.sqrt(_ess_mean(x)))


def _mcse_sd(x: Array) -> float:
    """By the delta method from the variance of the squares: no normality is assumed."""
    squares = (x - x.mean()) ** 2
    variance = float(squares.mean())
    if variance == 0:
        return 0.0
    of_variance = (float(np.mean(squares**2)) - variance**2) / _ess_mean(squares)
    return float(np.sqrt(of_variance / variance / 4))


def _mcse_quantile(x: Array, probability: float) -> float:
    """Half the distance of the order statistics that a binomial of ESS draws puts one deviation apart."""
    ess = _ess_quantile(x, probability)
    low, high = betaincinv(ess * probability + 1, ess * (1 - probability) + 1, _ONE_SD) * x.size - 1
    ordered = np.sort(x, axis=None)
    below, above = int(np.floor(max(low, 0))), int(np.ceil(min(high, x.size - 1)))
    return float((ordered[above] - ordered[below]) / 2)
