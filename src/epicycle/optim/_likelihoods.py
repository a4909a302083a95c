"""Losses that are negative log-likelihoods: logistic, softmax; Poisson, gamma, Tweedie with z the log of the mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, xlog1py, xlogy

from epicycle.optim._loss import Array, Loss, real, within


@dataclass(frozen=True)
class Logistic(Loss):
    """l(z, y) = log(1 + e^z) - y z for y coded 0 or 1 (or a probability in between): P(y = 1) = 1 / (1 + e^-z)."""

    smoothness = 0.25
    self_concordant = True
    native = 7

    def value(self, z: Array, y: Array) -> Array:
        # max(z, 0) - y z is exact for the codes, so what remains of a well-classified row is not rounded away.
        z = real(z)
        return (np.maximum(z, 0.0) - y * z) + np.log1p(np.exp(-np.abs(z)))

    def gradient(self, z: Array, y: Array) -> Array:
        # sigma(z) - y = (1 - y) - sigma(-z): on each side take the form whose sigma is small.
        z = real(z)
        small = real(expit(-np.abs(z)))
        return np.where(z >= 0, (1.0 - y) - small, small - y)

    def curvature(self, z: Array, y: Array) -> Array:
        z = real(z)
        return np.broadcast_to(expit(z) * expit(-z), np.broadcast_shapes(z.shape, np.shape(y)))

    def conjugate(self, a: Array, y: Array) -> Array:
        # Negative entropy of t = a + y, with s = 1 - t formed without cancellation for y = 1.
        a = real(a)
        t, s = a + y, (1.0 - y) - a
        inside = (t >= 0) & (s >= 0)
        t, s = np.where(inside, t, 0.5), np.where(inside, s, 0.5)
        entropy = np.where(t < s, xlogy(t, t) + xlog1py(s, -t), xlog1py(t, -s) + xlogy(s, s))
        return within(inside, entropy)


@dataclass(frozen=True)
class Multinomial(Loss):
    """l(z, y) = log sum_k e^{z_k} - z_y for z with K columns and y coded 0, ..., K - 1: the softmax regression loss."""

    smoothness = 0.5
    self_concordant = True
    native = 8

    def value(self, z: Array, y: Array) -> Array:
        z = real(z)
        top = z.max(axis=-1)
        _, rest = _softmax_parts(z)
        return real((top - _pick(z, y)) + np.log1p(rest))

    def gradient(self, z: Array, y: Array) -> Array:
        z = real(z)
        e, rest = _softmax_parts(z)
        p = e / (1.0 + rest)[..., None]
        others = p.copy()
        _put(others, y, 0.0)
        _put(p, y, -others.sum(axis=-1))  # p_y - 1, without the cancellation
        return p

    def curvature(self, z: Array, y: Array) -> Array:
        z = real(z)
        e, rest = _softmax_parts(z)
        p = e / (1.0 + rest)[..., None]
        H = -p[..., :, None] * p[..., None, :]
        k = np.arange(z.shape[-1])
        diagonal = p * (1.0 - p)
        # For the largest p_k, 1 - p_k is the sum of the others: exact also where p_k rounds to 1.
        top = z.argmax(axis=-1)
        _put(diagonal, top, _pick(p, top) * rest / (1.0 + rest))
        H[..., k, k] = diagonal
        return H

    def conjugate(self, a: Array, y: Array) -> Array:
        # t = a + e_y has to be a probability vector, up to the rounding of K sums.
        t = real(a).copy()
        _put(t, y, _pick(t, y) + 1.0)
        slack = 8 * t.shape[-1] * np.finfo(np.float64).eps
        inside = (t >= -slack).all(axis=-1) & (np.abs(t.sum(axis=-1) - 1.0) <= slack)
        t = np.maximum(t, 0.0)
        return within(inside, xlogy(t, t).sum(axis=-1))


@dataclass(frozen=True)
class Poisson(Loss):
    """l(z, y) = e^z - y z for counts y >= 0 with mean e^z."""

    self_concordant, log_link = True, True
    native = 4

    def value(self, z: Array, y: Array) -> Array:
        z = real(z)
        return np.exp(z) - y * z

    def gradient(self, z: Array, y: Array) -> Array:
        return np.exp(real(z)) - y

    def curvature(self, z: Array, y: Array) -> Array:
        return np.broadcast_to(np.exp(real(z)), np.broadcast_shapes(np.shape(z), np.shape(y)))

    def conjugate(self, a: Array, y: Array) -> Array:
        t = real(a) + y  # the mean at which the supremum is attained
        inside = t >= 0
        t = np.where(inside, t, 1.0)
        return within(inside, xlogy(t, t) - t)


@dataclass(frozen=True)
class Gamma(Loss):
    """l(z, y) = z + y e^-z for y > 0 with mean e^z and a constant coefficient of variation."""

    self_concordant, log_link = True, True
    native = 5

    def value(self, z: Array, y: Array) -> Array:
        z = real(z)
        return z + y * np.exp(-z)

    def gradient(self, z: Array, y: Array) -> Array:
        return 1.0 - y * np.exp(-real(z))

    def curvature(self, z: Array, y: Array) -> Array:
        return y * np.exp(-real(z))

    def conjugate(self, a: Array, y: Array) -> Array:
        # At the supremum y e^-z = 1 - a =: u, so that l* = -u z - u with z = log(y / u).
        u = 1.0 - real(a)
        inside = u >= 0
        u = np.where(inside, u, 1.0)
        return within(inside, xlogy(u, u / y) - u)


@dataclass(frozen=True)
class Tweedie(Loss):
    """l(z, y) = e^{(2-p)z} / (2-p) - y e^{(1-p)z} / (1-p) for y >= 0 with mean e^z and variance mean^p, 1 < p < 2."""

    power: float = 1.5
    self_concordant, log_link = True, True
    native = 6

    def value(self, z: Array, y: Array) -> Array:
        z, p = real(z), self.power
        return np.exp((2 - p) * z) / (2 - p) - y * np.exp((1 - p) * z) / (1 - p)

    def gradient(self, z: Array, y: Array) -> Array:
        z, p = real(z), self.power
        return np.exp((2 - p) * z) - y * np.exp((1 - p) * z)

    def curvature(self, z: Array, y: Array) -> Array:
        z, p = real(z), self.power
        return (2 - p) * np.exp((2 - p) * z) + (p - 1) * y * np.exp((1 - p) * z)

    def conjugate(self, a: Array, y: Array) -> Array:
        # l' rises from -inf (from 0 where y = 0) to inf, and l'(z) = a has no solution in closed form: bisection in z.
        # |z| <= 700 / (2 - p) keeps the exponentials finite, and 80 halvings reach the last digit.
        a, y = np.broadcast_arrays(real(a), real(y))
        high = np.full(a.shape, 700.0 / max(2 - self.power, self.power - 1))
        low = -high
        for _ in range(80):
            middle = 0.5 * (low + high)
            above = self.gradient(middle, y) > a
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        z = 0.5 * (low + high)
        at_zero = (y == 0) & (a <= 0)  # without a count the supremum is at z = -inf, and 0 for a = 0
        return within(~at_zero | (a == 0), np.where(at_zero, 0.0, a * z - self.value(z, y)))


def _softmax_parts(z: Array) -> tuple[Array, Array]:
    """e^{z_k - z_top}, and their sum without the top one."""
    top = z.argmax(axis=-1)
    e = np.exp(z - _pick(z, top)[..., None])
    others = e.copy()
    _put(others, top, 0.0)
    return e, others.sum(axis=-1)


def _pick(z: Array, k: ArrayLike) -> Array:
    return np.take_along_axis(z, np.asarray(k, dtype=np.intp)[..., None], axis=-1)[..., 0]


def _put(z: Array, k: ArrayLike, value: Array | float) -> None:
    np.put_along_axis(z, np.asarray(k, dtype=np.intp)[..., None], np.asarray(value)[..., None], axis=-1)
