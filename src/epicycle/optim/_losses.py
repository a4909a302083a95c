"""Losses of one row as functions of its linear predictor z and its target y: l(z, y).

Every loss gives its value, its derivative and its curvature in z, and its Fenchel conjugate

    l*(a, y) = sup_z  a z - l(z, y),

so that l(z, y) + l*(a, y) >= a z, with equality exactly when a = l'(z, y). All of it is vectorised over rows, in
float64, and exact to rounding for any finite z: nothing overflows, and small losses and gradients keep their digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlog1py, xlogy

__all__ = ["Logistic", "Loss", "Multinomial", "Squared"]

Array = NDArray[np.float64]


class Loss(ABC):
    """A convex loss l(z, y), one value for each row."""

    #: The largest curvature that occurs for any z and y (in every direction, where z has several components).
    smoothness: float

    @abstractmethod
    def value(self, z: Array, y: Array) -> Array:
        """l(z, y) for each row."""

    @abstractmethod
    def gradient(self, z: Array, y: Array) -> Array:
        """dl/dz for each row, with the shape of z."""

    @abstractmethod
    def curvature(self, z: Array, y: Array) -> Array:
        """d2l/dz2 for each row; a K x K matrix per row where z has K components."""

    @abstractmethod
    def conjugate(self, a: Array, y: Array) -> Array:
        """l*(a, y) for each row; inf outside its domain."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Squared(Loss):
    """l(z, y) = (z - y)^2 / 2 for a number y."""

    smoothness = 1.0

    def value(self, z: Array, y: Array) -> Array:
        return 0.5 * np.square(_real(z) - y)

    def gradient(self, z: Array, y: Array) -> Array:
        return _real(z) - y

    def curvature(self, z: Array, y: Array) -> Array:
        return np.ones(np.broadcast_shapes(np.shape(z), np.shape(y)))

    def conjugate(self, a: Array, y: Array) -> Array:
        a = _real(a)
        return 0.5 * a * a + a * y


class Logistic(Loss):
    """l(z, y) = log(1 + e^z) - y z for y coded 0 or 1 (or a probability in between): P(y = 1) = 1 / (1 + e^-z)."""

    smoothness = 0.25

    def value(self, z: Array, y: Array) -> Array:
        # max(z, 0) - y z is exact for the codes, so what remains of a well-classified row is not rounded away.
        z = _real(z)
        return (np.maximum(z, 0.0) - y * z) + np.log1p(np.exp(-np.abs(z)))

    def gradient(self, z: Array, y: Array) -> Array:
        # sigma(z) - y = (1 - y) - sigma(-z): on each side take the form whose sigma is small.
        z = _real(z)
        small = _real(expit(-np.abs(z)))
        return np.where(z >= 0, (1.0 - y) - small, small - y)

    def curvature(self, z: Array, y: Array) -> Array:
        z = _real(z)
        return np.broadcast_to(expit(z) * expit(-z), np.broadcast_shapes(z.shape, np.shape(y)))

    def conjugate(self, a: Array, y: Array) -> Array:
        # Negative entropy of t = a + y, with s = 1 - t formed without cancellation for y = 1.
        a = _real(a)
        t, s = a + y, (1.0 - y) - a
        inside = (t >= 0) & (s >= 0)
        t, s = np.where(inside, t, 0.5), np.where(inside, s, 0.5)
        entropy = np.where(t < s, xlogy(t, t) + xlog1py(s, -t), xlog1py(t, -s) + xlogy(s, s))
        return np.where(inside, entropy, np.inf)


class Multinomial(Loss):
    """l(z, y) = log sum_k e^{z_k} - z_y for z with K columns and y coded 0, ..., K - 1: the softmax regression loss."""

    smoothness = 0.5

    def value(self, z: Array, y: Array) -> Array:
        z = _real(z)
        top = z.max(axis=-1)
        _, rest = _softmax_parts(z)
        return _real((top - _pick(z, y)) + np.log1p(rest))

    def gradient(self, z: Array, y: Array) -> Array:
        z = _real(z)
        e, rest = _softmax_parts(z)
        p = e / (1.0 + rest)[..., None]
        others = p.copy()
        _put(others, y, 0.0)
        _put(p, y, -others.sum(axis=-1))  # p_y - 1, without the cancellation
        return p

    def curvature(self, z: Array, y: Array) -> Array:
        z = _real(z)
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
        t = _real(a).copy()
        _put(t, y, _pick(t, y) + 1.0)
        slack = 8 * t.shape[-1] * np.finfo(np.float64).eps
        inside = (t >= -slack).all(axis=-1) & (np.abs(t.sum(axis=-1) - 1.0) <= slack)
        t = np.maximum(t, 0.0)
        return np.where(inside, xlogy(t, t).sum(axis=-1), np.inf)


def _real(a: Array) -> Array:
    return np.asarray(a, dtype=np.float64)


def _softmax_parts(z: Array) -> tuple[Array, Array]:
    """e^{z_k - z_top}, and their sum without the top one."""
    top = z.argmax(axis=-1)
    e = np.exp(z - _pick(z, top)[..., None])
    others = e.copy()
    _put(others, top, 0.0)
    return e, others.sum(axis=-1)


def _pick(z: Array, k: Array) -> Array:
    return np.take_along_axis(z, np.asarray(k, dtype=np.intp)[..., None], axis=-1)[..., 0]


def _put(z: Array, k: Array, value: Array | float) -> None:
    np.put_along_axis(z, np.asarray(k, dtype=np.intp)[..., None], np.asarray(value)[..., None], axis=-1)
