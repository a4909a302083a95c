"""Losses of one row as functions of its linear predictor z and its target y: l(z, y).

Every loss gives its value, its derivative and its curvature in z, and its Fenchel conjugate

    l*(a, y) = sup_z  a z - l(z, y),

so that l(z, y) + l*(a, y) >= a z, with equality exactly when a is a derivative of l at z. All of it is vectorised over
rows, in float64, and exact to rounding for any finite z: nothing overflows, and small losses and gradients keep their
digits.

    losses of the residual r = z - y     rho(r), so that l*(a, y) = a y + rho*(a)
    losses of the margin m = y z         rho(m) with y coded -1 or 1, so that l*(a, y) = rho*(y a)
    likelihoods                          logistic, softmax, and Poisson, gamma, Tweedie with z the log of the mean

These objects serve certificates, bounds and teaching. Loops over rows run in the native twin of a loss, whose number is
``loss.native``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlog1py, xlogy

from epicycle.core._exceptions import ParameterError

Array = NDArray[np.float64]


class Loss(ABC):
    """A convex loss l(z, y), one value for each row."""

    #: The largest curvature that occurs for any z and y (in every direction, where z has several components); inf where
    #: the loss has a kink or no such bound.
    smoothness: float = np.inf
    #: Whether |l'''| <= l'' everywhere, so that Newton steps and decrements have bounds (Bach 2010).
    self_concordant: bool = False
    #: Whether z is the logarithm of the mean of y.
    log_link: bool = False
    #: Number of this loss in the native kernels (native/core/losses.hpp), where one of them knows it.
    native: ClassVar[int | None] = None

    @abstractmethod
    def value(self, z: Array, y: Array) -> Array:
        """l(z, y) for each row."""

    @abstractmethod
    def gradient(self, z: Array, y: Array) -> Array:
        """dl/dz for each row, with the shape of z; at a kink one of the subgradients."""

    @abstractmethod
    def curvature(self, z: Array, y: Array) -> Array:
        """d2l/dz2 for each row, 0 at a kink; a K x K matrix per row where z has K components."""

    @abstractmethod
    def conjugate(self, a: Array, y: Array) -> Array:
        """l*(a, y) for each row; inf outside its domain."""


# ----------------------------------------------------------------------------------------------- losses of the residual


class OneNumberLoss(Loss):
    """A loss of one number: of the residual z - y, or of the margin y z."""

    @abstractmethod
    def rho(self, r: Array) -> Array:
        """The loss of a number."""

    @abstractmethod
    def slope(self, r: Array) -> Array:
        """rho'(r); of a margin, at a kink the steeper of the two."""

    def bend(self, r: Array) -> Array:
        """rho''(r); zero for a loss of straight lines."""
        return np.zeros(np.shape(r))

    @abstractmethod
    def rho_conjugate(self, a: Array) -> Array:
        """sup_r  a r - rho(r); of a margin  sup_r  -a r - rho(r), which is finite for some a >= 0 alone."""


class ResidualLoss(OneNumberLoss):
    """rho(z - y) for a number y."""

    def value(self, z: Array, y: Array) -> Array:
        return self.rho(_real(z) - y)

    def gradient(self, z: Array, y: Array) -> Array:
        return self.slope(_real(z) - y)

    def curvature(self, z: Array, y: Array) -> Array:
        return self.bend(_real(z) - y)

    def conjugate(self, a: Array, y: Array) -> Array:
        a = _real(a)
        return self.rho_conjugate(a) + a * y


@dataclass(frozen=True)
class Squared(ResidualLoss):
    """l(z, y) = (z - y)^2 / 2 for a number y."""

    smoothness = 1.0
    native = 0

    def rho(self, r: Array) -> Array:
        return 0.5 * np.square(r)

    def slope(self, r: Array) -> Array:
        return r

    def bend(self, r: Array) -> Array:
        return np.ones(np.shape(r))

    def rho_conjugate(self, a: Array) -> Array:
        return 0.5 * a * a


@dataclass(frozen=True)
class Absolute(ResidualLoss):
    """l(z, y) = |z - y|: least absolute deviations, minimised by a median."""

    native = 1

    def rho(self, r: Array) -> Array:
        return np.abs(r)

    def slope(self, r: Array) -> Array:
        return np.sign(r)

    def rho_conjugate(self, a: Array) -> Array:
        return _within(np.abs(a) <= 1.0, np.zeros(np.shape(a)))


@dataclass(frozen=True)
class Huber(ResidualLoss):
    """r^2 / 2 for a residual |r| <= delta, and delta (|r| - delta / 2) beyond it."""

    delta: float = 1.0
    smoothness = 1.0
    native = 2

    def rho(self, r: Array) -> Array:
        size = np.abs(r)
        near = np.minimum(size, self.delta)  # only the square of what is small is taken
        return np.where(size <= self.delta, 0.5 * near * near, self.delta * (size - 0.5 * self.delta))

    def slope(self, r: Array) -> Array:
        return np.clip(r, -self.delta, self.delta)

    def bend(self, r: Array) -> Array:
        return np.where(np.abs(r) <= self.delta, 1.0, 0.0)

    def rho_conjugate(self, a: Array) -> Array:
        return _within(np.abs(a) <= self.delta, 0.5 * a * a)


@dataclass(frozen=True)
class Quantile(ResidualLoss):
    """The pinball loss, tau (y - z) where z <= y and (1 - tau) (z - y) above: minimised by the quantile tau of y."""

    tau: float = 0.5
    native = 3

    def rho(self, r: Array) -> Array:
        return np.maximum(-self.tau * r, (1.0 - self.tau) * r)

    def slope(self, r: Array) -> Array:
        return np.where(r > 0, 1.0 - self.tau, np.where(r < 0, -self.tau, 0.0))

    def rho_conjugate(self, a: Array) -> Array:
        return _within((a >= -self.tau) & (a <= 1.0 - self.tau), np.zeros(np.shape(a)))


@dataclass(frozen=True)
class EpsilonInsensitive(ResidualLoss):
    """max(|z - y| - epsilon, 0): the loss of support vector regression."""

    epsilon: float = 0.1
    native = 14

    def rho(self, r: Array) -> Array:
        return np.maximum(np.abs(r) - self.epsilon, 0.0)

    def slope(self, r: Array) -> Array:
        return np.sign(r) * (np.abs(r) > self.epsilon)

    def rho_conjugate(self, a: Array) -> Array:
        return _within(np.abs(a) <= 1.0, self.epsilon * np.abs(a))


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(ResidualLoss):
    """max(|z - y| - epsilon, 0)^2."""

    epsilon: float = 0.1
    smoothness = 2.0
    native = 15

    def rho(self, r: Array) -> Array:
        return np.square(np.maximum(np.abs(r) - self.epsilon, 0.0))

    def slope(self, r: Array) -> Array:
        return 2.0 * np.sign(r) * np.maximum(np.abs(r) - self.epsilon, 0.0)

    def bend(self, r: Array) -> Array:
        return np.where(np.abs(r) > self.epsilon, 2.0, 0.0)

    def rho_conjugate(self, a: Array) -> Array:
        return self.epsilon * np.abs(a) + 0.25 * a * a


# ------------------------------------------------------------------------------------------------- losses of the margin


class MarginLoss(OneNumberLoss):
    """rho(y z) for y coded -1 or 1, with rho falling."""

    def value(self, z: Array, y: Array) -> Array:
        return self.rho(_real(z) * y)

    def gradient(self, z: Array, y: Array) -> Array:
        return y * self.slope(_real(z) * y)

    def curvature(self, z: Array, y: Array) -> Array:
        return self.bend(_real(z) * y)

    def conjugate(self, a: Array, y: Array) -> Array:
        return self.rho_conjugate(-y * _real(a))


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(1 - y z, 0): the loss of support vector machines."""

    native = 10
    #: The margin that is asked for.
    margin: ClassVar[float] = 1.0

    def rho(self, r: Array) -> Array:
        return np.maximum(self.margin - r, 0.0)

    def slope(self, r: Array) -> Array:
        return np.where(r <= self.margin, -1.0, 0.0)

    def rho_conjugate(self, a: Array) -> Array:
        return _within((a >= 0) & (a <= 1), -self.margin * a)


@dataclass(frozen=True)
class Perceptron(Hinge):
    """max(-y z, 0): the hinge without a margin."""

    native = 11
    margin: ClassVar[float] = 0.0


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """max(1 - y z, 0)^2."""

    smoothness = 2.0
    native = 13

    def rho(self, r: Array) -> Array:
        return np.square(np.maximum(1.0 - r, 0.0))

    def slope(self, r: Array) -> Array:
        return -2.0 * np.maximum(1.0 - r, 0.0)

    def bend(self, r: Array) -> Array:
        return np.where(r < 1, 2.0, 0.0)

    def rho_conjugate(self, a: Array) -> Array:
        return _within(a >= 0, 0.25 * a * a - a)


@dataclass(frozen=True)
class ModifiedHuber(MarginLoss):
    """max(1 - y z, 0)^2 down to the margin -1, and its tangent -4 y z below it."""

    smoothness = 2.0
    native = 12

    def rho(self, r: Array) -> Array:
        return np.where(r >= -1, np.square(np.maximum(1.0 - r, 0.0)), -4.0 * r)

    def slope(self, r: Array) -> Array:
        return np.clip(-2.0 * (1.0 - r), -4.0, 0.0)

    def bend(self, r: Array) -> Array:
        return np.where((r >= -1) & (r < 1), 2.0, 0.0)

    def rho_conjugate(self, a: Array) -> Array:
        return _within((a >= 0) & (a <= 4), 0.25 * a * a - a)


# ---------------------------------------------------------------------------------------------------------- likelihoods


@dataclass(frozen=True)
class Logistic(Loss):
    """l(z, y) = log(1 + e^z) - y z for y coded 0 or 1 (or a probability in between): P(y = 1) = 1 / (1 + e^-z)."""

    smoothness = 0.25
    self_concordant = True
    native = 7

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
        return _within(inside, entropy)


@dataclass(frozen=True)
class Multinomial(Loss):
    """l(z, y) = log sum_k e^{z_k} - z_y for z with K columns and y coded 0, ..., K - 1: the softmax regression loss."""

    smoothness = 0.5
    self_concordant = True
    native = 8

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
        return _within(inside, xlogy(t, t).sum(axis=-1))


@dataclass(frozen=True)
class Poisson(Loss):
    """l(z, y) = e^z - y z for counts y >= 0 with mean e^z."""

    self_concordant, log_link = True, True
    native = 4

    def value(self, z: Array, y: Array) -> Array:
        z = _real(z)
        return np.exp(z) - y * z

    def gradient(self, z: Array, y: Array) -> Array:
        return np.exp(_real(z)) - y

    def curvature(self, z: Array, y: Array) -> Array:
        return np.broadcast_to(np.exp(_real(z)), np.broadcast_shapes(np.shape(z), np.shape(y)))

    def conjugate(self, a: Array, y: Array) -> Array:
        t = _real(a) + y  # the mean at which the supremum is attained
        inside = t >= 0
        t = np.where(inside, t, 1.0)
        return _within(inside, xlogy(t, t) - t)


@dataclass(frozen=True)
class Gamma(Loss):
    """l(z, y) = z + y e^-z for y > 0 with mean e^z and a constant coefficient of variation."""

    self_concordant, log_link = True, True
    native = 5

    def value(self, z: Array, y: Array) -> Array:
        z = _real(z)
        return z + y * np.exp(-z)

    def gradient(self, z: Array, y: Array) -> Array:
        return 1.0 - y * np.exp(-_real(z))

    def curvature(self, z: Array, y: Array) -> Array:
        return y * np.exp(-_real(z))

    def conjugate(self, a: Array, y: Array) -> Array:
        # At the supremum y e^-z = 1 - a =: u, so that l* = -u z - u with z = log(y / u).
        u = 1.0 - _real(a)
        inside = u >= 0
        u = np.where(inside, u, 1.0)
        return _within(inside, xlogy(u, u / y) - u)


@dataclass(frozen=True)
class Tweedie(Loss):
    """l(z, y) = e^{(2-p)z} / (2-p) - y e^{(1-p)z} / (1-p) for y >= 0 with mean e^z and variance mean^p, 1 < p < 2."""

    power: float = 1.5
    self_concordant, log_link = True, True
    native = 6

    def value(self, z: Array, y: Array) -> Array:
        z, p = _real(z), self.power
        return np.exp((2 - p) * z) / (2 - p) - y * np.exp((1 - p) * z) / (1 - p)

    def gradient(self, z: Array, y: Array) -> Array:
        z, p = _real(z), self.power
        return np.exp((2 - p) * z) - y * np.exp((1 - p) * z)

    def curvature(self, z: Array, y: Array) -> Array:
        z, p = _real(z), self.power
        return (2 - p) * np.exp((2 - p) * z) + (p - 1) * y * np.exp((1 - p) * z)

    def conjugate(self, a: Array, y: Array) -> Array:
        # l' rises from -inf (from 0 where y = 0) to inf, and l'(z) = a has no solution in closed form: bisection in z.
        # |z| <= 700 / (2 - p) keeps the exponentials finite, and 80 halvings reach the last digit.
        a, y = np.broadcast_arrays(_real(a), _real(y))
        high = np.full(a.shape, 700.0 / max(2 - self.power, self.power - 1))
        low = -high
        for _ in range(80):
            middle = 0.5 * (low + high)
            above = self.gradient(middle, y) > a
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        z = 0.5 * (low + high)
        at_zero = (y == 0) & (a <= 0)  # without a count the supremum is at z = -inf, and 0 for a = 0
        return _within(~at_zero | (a == 0), np.where(at_zero, 0.0, a * z - self.value(z, y)))


# ------------------------------------------------------------------------------------------------------------- by name

#: Losses by the names that estimators give them.
LOSSES: Mapping[str, type[Loss]] = MappingProxyType(
    {
        "squared_error": Squared,
        "absolute_error": Absolute,
        "huber": Huber,
        "quantile": Quantile,
        "epsilon_insensitive": EpsilonInsensitive,
        "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
        "hinge": Hinge,
        "perceptron": Perceptron,
        "squared_hinge": SquaredHinge,
        "modified_huber": ModifiedHuber,
        "log_loss": Logistic,
        "multinomial": Multinomial,
        "poisson": Poisson,
        "gamma": Gamma,
        "tweedie": Tweedie,
    }
)


def loss_by_name(name: str, parameter: float | None = None) -> Loss:
    """The loss of a name; `parameter` is its delta, tau, epsilon or power, and ignored by losses without one."""
    if name not in LOSSES:
        raise ParameterError(f"loss={name!r}; expected one of {', '.join(map(repr, LOSSES))}")
    kind = LOSSES[name]
    return kind(parameter) if parameter is not None and fields(kind) else kind()  # type: ignore[arg-type, call-arg]


def _real(a: ArrayLike) -> Array:
    return np.asarray(a, dtype=np.float64)


def _within(inside: NDArray[np.bool_], value: Array) -> Array:
    """A conjugate: its value inside its domain, inf outside."""
    return np.where(inside, value, np.inf)


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
