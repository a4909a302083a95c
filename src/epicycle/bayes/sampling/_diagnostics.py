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

from epicycle.core._checks import open_unit
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core._parameters import Choice, check_parameter
from epicycle.core.estimator._catalogue import in_catalogue

Array = np.ndarray
_DOCS = {
    "draws": "draws : array-like of shape (n_chains, n_draws, ...)\n"
    "    One quantity, or an array of them behind the first two axes.",
    "probability": 'probability : float, default={default}\n    For ``kind="quantile"``.',
}
#: Probabilities of a normal variable at one standard deviation below and above its mean.
_ONE_SD = (0.1586553, 0.8413447)
#: Numbers that are diagnosed at a time, about half a megabyte.
_CHUNK = 64_000


@in_catalogue("bayes", "B6", certificate="none (a diagnosis)", docs=_DOCS)
def r_hat(draws: Any) -> Array | float:
    """Potential scale reduction of split, rank-normalised chains: 1 where they cannot be told apart.

    The larger of two numbers: that of the draws compares locations, that of their distances from the median scales.

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


@in_catalogue("bayes", "B6", certificate="none (a diagnosis)", docs=_DOCS)
def effective_sample_size(draws: Any, kind: str = "bulk", *, probability: float = 0.5) -> Array | float:
    """Number of independent draws that estimate as well as these.

    Parameters
    ----------
    kind : {"bulk", "tail", "mean", "sd", "quantile"}, default="bulk"
        For estimates of the centre (by ranks), of the 5% and 95% quantiles (the smaller), of the mean, of the
        standard deviation, or of the quantile of `probability`.

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
        return _each(draws, lambda x: _ess_quantiles(x, at)[0])
    return _each(draws, _ESS[kind])


@in_catalogue("bayes", "B6", certificate="none (a diagnosis)", docs=_DOCS)
def mcse(draws: Any, kind: str = "mean", *, probability: float = 0.5) -> Array | float:
    """Monte Carlo standard error of an estimate from the draws.

    Parameters
    ----------
    kind : {"mean", "sd", "quantile"}, default="mean"
        The estimate: mean, standard deviation, or the quantile of `probability`.

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


@in_catalogue("bayes", "B6", certificate="none (a diagnosis)")
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


# ------------------------------------------------------------------------------------------------- many at once

# Below, x has the shape (quantities, n_chains, n_draws), and every statistic one number for each quantity.


def _chains(draws: Any) -> Array:
    try:
        x = np.asarray(draws, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataTypeError(f"draws: expected an array of numbers, got {type(draws).__name__}") from None
    if x.ndim < 2 or x.shape[0] == 0:
        raise DataError(f"draws: shape {x.shape}; expected (n_chains, n_draws, ...)")
    return x


def _each(draws: Any, statistic: Callable[[Array], Array]) -> Array | float:
    """The statistic of every quantity behind the first two axes."""
    x = _chains(draws)
    (values,) = _in_chunks(x, lambda part: (statistic(part),), 1)
    return float(values) if x.ndim == 2 else values


def diagnose(draws: Array) -> tuple[Array, ...]:
    """R-hat, bulk and tail effective sample sizes of every quantity; the first two share their ranks."""

    def statistics(x: Array) -> tuple[Array, ...]:
        halves = _split(x)
        scores = _normal_scores(halves)
        return _r_hat_of(halves, scores), _ess(scores), _ess_tail(x)

    return _in_chunks(draws, statistics, 3)


def _in_chunks(draws: Array, statistics: Callable[[Array], tuple[Array, ...]], n_results: int) -> tuple[Array, ...]:
    """Statistics of so many quantities at a time as stay in the cache; nan where draws are too few or not finite."""
    flat = np.moveaxis(draws.reshape(*draws.shape[:2], -1), -1, 0)
    found = np.full((n_results, len(flat)), np.nan)
    size = max(1, _CHUNK // max(1, draws.shape[0] * draws.shape[1]))
    for start in range(0, len(flat) if draws.shape[1] >= 4 else 0, size):
        x = np.ascontiguousarray(flat[start : start + size])
        usable = np.flatnonzero(np.isfinite(x).all(axis=(1, 2)))
        if len(usable):
            with np.errstate(invalid="ignore", divide="ignore"):
                found[:, start + usable] = statistics(x[usable])
    return tuple(row.reshape(draws.shape[2:]) for row in found)


def _split(x: Array) -> Array:
    """Both halves of every chain as chains of their own; the middle draw of an odd number belongs to neither."""
    half = x.shape[-1] // 2
    return np.concatenate([x[..., :half], x[..., -half:]], axis=-2)


def _normal_scores(x: Array) -> Array:
    """Blom's: the normal quantile of (rank - 3/8) / (n + 1/4); equal draws share the mean of their ranks."""
    rows = x.reshape(len(x), -1)
    n = rows.shape[1]
    order = np.argsort(rows, axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    new = ordered[:, 1:] != ordered[:, :-1]
    table = _scores_at_half_ranks(n)
    in_order = np.tile(table[::2], (len(rows), 1))
    for k in np.flatnonzero(~new.all(axis=1)):
        first = np.flatnonzero(np.concatenate([[True], new[k]]))
        counts = np.diff(np.append(first, n))
        in_order[k] = np.repeat(table[2 * first + counts - 1], counts)
    scores = np.empty(rows.shape)
    np.put_along_axis(scores, order, in_order, axis=1)
    return scores.reshape(x.shape)


@lru_cache(maxsize=8)
def _scores_at_half_ranks(n: int) -> Array:
    """Scores of the ranks 1, 1.5, 2, ..., n."""
    return np.asarray(ndtri((np.arange(2, 2 * n + 1) / 2 - 0.375) / (n + 0.25)))


def _scale_reduction(x: Array) -> Array:
    n = x.shape[-1]
    within = np.mean(np.var(x, axis=-1, ddof=1), axis=-1)
    between = n * np.var(np.mean(x, axis=-1), axis=-1, ddof=1)
    return np.asarray(np.sqrt((between / within + n - 1) / n))


def _r_hat(x: Array) -> Array:
    halves = _split(x)
    return _r_hat_of(halves, _normal_scores(halves))


def _r_hat_of(halves: Array, scores: Array) -> Array:
    folded = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
    larger = np.fmax(_scale_reduction(scores), _scale_reduction(_normal_scores(folded)))
    # Of a constant nothing says that the chains moved.
    return np.where(np.ptp(halves, axis=(1, 2)) > 0, larger, np.nan)


def _power(x: Array) -> tuple[Array, int]:
    """Power spectra along the last axis, padded so that nothing wraps around."""
    size = next_fast_len(2 * x.shape[-1], real=True)
    spectrum = rfft(x - x.mean(axis=-1, keepdims=True), size)
    return spectrum.real**2 + spectrum.imag**2, size


def autocovariance(x: Array) -> Array:
    """Autocovariances at every lag along the last axis, divided by the number of draws."""
    power, size = _power(x)
    n = x.shape[-1]
    return np.asarray(irfft(power, size)[..., :n] / n)


def _ess(x: Array) -> Array:
    """Effective sample size of chains, as they are; a constant counts in full."""
    m, n = x.shape[-2:]
    power, size = _power(x)
    covariance = irfft(power.mean(axis=-2), size)[..., :n] / n  # the mean over chains, of the spectra: cheaper
    within = covariance[:, 0] * n / (n - 1)
    total = covariance[:, 0] + (np.var(x.mean(axis=-1), axis=-1, ddof=1) if m > 1 else 0.0)
    rho = 1 - (within[:, None] - covariance) / total[:, None]
    rho[:, 0] = 1.0
    shortest = 1 / np.log10(m * n)  # antithetic chains are not believed beyond all measure
    ess = [m * n / max(_integrated_time(row), shortest) for row in rho]
    return np.where(np.ptp(x, axis=(1, 2)) < np.finfo(np.float64).resolution, m * n, ess)


def _integrated_time(rho: Array) -> float:
    """-1 + 2 sum rho by Geyer's initial monotone sequence of pairs rho_2k + rho_2k+1."""
    n, kept = len(rho), [1.0, float(rho[1])]
    t, even, odd = 1, 1.0, kept[1]
    while t < n - 3 and even + odd > 0:
        even, odd = float(rho[t + 1]), float(rho[t + 2])
        if even + odd >= 0:
            kept += [even, odd]
        t += 2
    last = t - 2  # the last of the pairs that are summed; one that broke off is not among them
    kept += [0.0, 0.0, 0.0]
    if even > 0:  # half of the pair that broke off: it lowers the variance of the estimate
        kept[last + 1] = even
    for k in range(1, last - 1, 2):
        before = kept[k - 1] + kept[k]
        if kept[k + 1] + kept[k + 2] > before:
            kept[k + 1] = kept[k + 2] = before / 2
    return -1 + 2 * sum(kept[: last + 1]) + sum(kept[last + 1 : last + 2])


def _ess_bulk(x: Array) -> Array:
    return _ess(_normal_scores(_split(x)))


def _ess_mean(x: Array) -> Array:
    return _ess(_split(x))


def _squares(x: Array) -> Array:
    return np.asarray((x - x.mean(axis=(1, 2), keepdims=True)) ** 2)


def _ess_sd(x: Array) -> Array:
    return _ess_mean(_squares(x))


def _quantile(ordered: Array, probability: float) -> Array:
    """Linear between order statistics, for each row.

    Where the quantile is a draw, rounding decides whether this draw counts as below it: the order of operations is
    that of ArviZ, so that both count the same.
    """
    n = ordered.shape[1]
    at = n * probability + (1 - probability)
    k = int(np.floor(min(max(at, 1), n - 1)))
    share = min(max(at - k, 0.0), 1.0)
    return np.asarray((1 - share) * ordered[:, k - 1] + share * ordered[:, k])


def _ess_quantiles(x: Array, *probabilities: float) -> list[Array]:
    ordered = np.sort(x.reshape(len(x), -1), axis=1)
    return [_ess_mean((x <= _quantile(ordered, p)[:, None, None]).astype(np.float64)) for p in probabilities]


def _ess_tail(x: Array) -> Array:
    return np.asarray(np.minimum(*_ess_quantiles(x, 0.05, 0.95)))


_ESS: dict[str, Callable[[Array], Array]] = {
    "bulk": _ess_bulk,
    "tail": _ess_tail,
    "mean": _ess_mean,
    "sd": _ess_sd,
}


def _mcse_mean(x: Array) -> Array:
    return np.asarray(np.std(x, axis=(1, 2), ddof=1) / np.sqrt(_ess_mean(x)))


def _mcse_sd(x: Array) -> Array:
    """By the delta method from the variance of the squares: no normality is assumed."""
    squares = _squares(x)
    variance = squares.mean(axis=(1, 2))
    of_variance = (np.mean(squares**2, axis=(1, 2)) - variance**2) / _ess_mean(squares)
    return np.where(variance > 0, np.sqrt(of_variance / variance / 4), 0.0)


def _mcse_quantile(x: Array, probability: float) -> Array:
    """Half the distance of the order statistics that a binomial of ESS draws puts one deviation apart."""
    (ess,) = _ess_quantiles(x, probability)
    n = x[0].size
    low, high = (betaincinv(ess * probability + 1, ess * (1 - probability) + 1, p) * n - 1 for p in _ONE_SD)
    ordered = np.sort(x.reshape(len(x), -1), axis=1)
    below, above = np.floor(np.maximum(low, 0)).astype(int), np.ceil(np.minimum(high, n - 1)).astype(int)
    rows = np.arange(len(x))
    return np.asarray((ordered[rows, above] - ordered[rows, below]) / 2)
