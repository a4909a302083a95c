"""Losses of one row as functions of its linear predictor z and its target y: l(z, y).

Every loss gives its value, its derivative and its curvature in z, and its Fenchel conjugate

    l*(a, y) = sup_z  a z - l(z, y),

so that l(z, y) + l*(a, y) >= a z, with equality exactly when a is a derivative of l at z. All of it is vectorised over
rows, in float64, and exact to rounding for any finite z: nothing overflows, and small losses and gradients keep their
digits.

    losses of the residual r = z - y     rho(r), so that l*(a, y) = a y + rho*(a)
    losses of the margin m = y z         rho(m) with y coded -1 or 1, so that l*(a, y) = rho*(y a)
    likelihoods                          in :mod:`epicycle.optim._likelihoods`

These objects serve certificates, bounds and teaching. Loops over rows run in the native twin of a loss, whose number is
``loss.native``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.optim._likelihoods import Gamma, Logistic, Multinomial, Poisson, Tweedie
from epicycle.optim._loss import Array, Loss, real, within

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
        return self.rho(real(z) - y)

    def gradient(self, z: Array, y: Array) -> Array:
        return self.slope(real(z) - y)

    def curvature(self, z: Array, y: Array) -> Array:
        return self.bend(real(z) - y)

    def conjugate(self, a: Array, y: Array) -> Array:
        a = real(a)
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
        return within(np.abs(a) <= 1.0, np.zeros(np.shape(a)))


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
        return within(np.abs(a) <= self.delta, 0.5 * a * a)


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
        return within((a >= -self.tau) & (a <= 1.0 - self.tau), np.zeros(np.shape(a)))


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
        return within(np.abs(a) <= 1.0, self.epsilon * np.abs(a))


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
        return self.rho(real(z) * y)

    def gradient(self, z: Array, y: Array) -> Array:
        return y * self.slope(real(z) * y)

    def curvature(self, z: Array, y: Array) -> Array:
        return self.bend(real(z) * y)

    def conjugate(self, a: Array, y: Array) -> Array:
        return self.rho_conjugate(-y * real(a))


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
        return within((a >= 0) & (a <= 1), -self.margin * a)


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
        return within(a >= 0, 0.25 * a * a - a)


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
        return within((a >= 0) & (a <= 4), 0.25 * a * a - a)


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
