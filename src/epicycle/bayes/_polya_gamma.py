r"""Draws of the Polya-gamma distribution PG(1, c), which makes logistic likelihoods conditionally normal.

PG(1, c) is J / 4 with J of the density sum_n (-1)^n a_n(x) cosh(z) exp(-z^2 x / 2), z = |c| / 2. Two series for a_n,
left and right of t, are so good that the first term is nearly the density: a proposal from it (an inverse Gaussian on
the left, an exponential on the right) is accepted or rejected as soon as the alternating partial sums decide (Polson,
Scott and Windle, JASA 108, 2013). The draws are exact.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

Array = np.ndarray

#: Where the two series meet.
_T = 0.64


def polya_gamma(c: Array, rng: np.random.Generator) -> Array:
    """Independent draws of PG(1, c_i)."""
    z = np.abs(np.asarray(c, dtype=np.float64)) / 2
    out = np.empty(len(z))
    right = _right_share(z)
    waiting = np.arange(len(z))
    while len(waiting):
        x = _proposal(z[waiting], right[waiting], rng)
        accepted = _accepted(x, rng)
        out[waiting[accepted]] = x[accepted] / 4
        waiting = waiting[~accepted]
    return out


def _rate(z: Array) -> Array:
    return np.asarray(np.pi**2 / 8 + z**2 / 2)


def _right_share(z: Array) -> Array:
    """The share of the proposal's mass right of t."""
    K, root = _rate(z), np.sqrt(1 / _T)
    base = np.log(K) + K * _T
    left = np.exp(base - z + log_ndtr(root * (_T * z - 1))) + np.exp(base + z + log_ndtr(-root * (_T * z + 1)))
    return np.asarray(1 / (1 + 4 / np.pi * left))


def _proposal(z: Array, right: Array, rng: np.random.Generator) -> Array:
    x = _T + rng.standard_exponential(len(z)) / _rate(z)
    left = np.flatnonzero(rng.random(len(z)) >= right)
    x[left] = _truncated_inverse_gaussian(z[left], rng)
    return np.asarray(x)


def _truncated_inverse_gaussian(z: Array, rng: np.random.Generator) -> Array:
    """Of mean 1 / z and shape 1, below t."""
    out = np.empty(len(z))
    waiting = np.arange(len(z))
    while len(waiting):
        w = z[waiting]
        x, kept = np.empty(len(w)), np.zeros(len(w), dtype=bool)
        far = w < 1 / _T  # the mean is right of t: propose from the tail of a chi-square distribution
        e = rng.standard_exponential((2, len(w)))
        inside = far & (e[0] ** 2 <= 2 * e[1] / _T)
        x[inside] = _T / (1 + _T * e[0, inside]) ** 2
        kept[inside] = rng.random(int(inside.sum())) <= np.exp(-(w[inside] ** 2) * x[inside] / 2)
        near = ~far
        x[near] = _inverse_gaussian(1 / w[near], rng)
        kept[near] = x[near] < _T
        out[waiting[kept]] = x[kept]
        waiting = waiting[~kept]
    return out


def _inverse_gaussian(mean: Array, rng: np.random.Generator) -> Array:
    return rng.wald(mean, 1.0)


def _accepted(x: Array, rng: np.random.Generator) -> Array:
    """Whether the alternating series, whose partial sums enclose the density, is above a uniform height."""
    total = _term(0, x)
    height = rng.random(len(x)) * total
    accepted, waiting = np.zeros(len(x), dtype=bool), np.arange(len(x))
    n = 0
    while len(waiting):
        n += 1
        total[waiting] += (-1) ** n * _term(n, x[waiting])
        below = height[waiting] <= total[waiting]
        if n % 2:  # a lower bound: what lies below it is accepted
            accepted[waiting[below]] = True
            waiting = waiting[~below]
        else:  # an upper bound: what lies above it is rejected
            waiting = waiting[below]
    return accepted


def _term(n: int, x: Array) -> Array:
    half = n + 0.5
    left = (2 / (np.pi * x)) ** 1.5 * np.exp(-2 * half**2 / x)
    return np.asarray(np.pi * half * np.where(x <= _T, left, np.exp(-(half**2) * np.pi**2 * x / 2)))
