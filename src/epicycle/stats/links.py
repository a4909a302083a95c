"""Links eta = g(mu) between the mean of a response and the linear predictor.

A link gives g, its inverse, the first two derivatives of the inverse in eta, and the interval of eta on which the
inverse is defined. All of it is vectorised and in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr, logit, ndtr, ndtri

from epicycle.core._exceptions import ParameterError

__all__ = [
    "LINKS",
    "CLogLog",
    "Identity",
    "Inverse",
    "InverseSquared",
    "Link",
    "Log",
    "Logit",
    "Power",
    "Probit",
    "Sqrt",
    "as_link",
]

Array = NDArray[np.float64]
ROOT_2PI = float(np.sqrt(2 * np.pi))


class Link(ABC):
    """A monotone function g of the mean."""

    #: The open interval of eta that the inverse takes.
    domain: tuple[float, float] = (-np.inf, np.inf)

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the link in text."""

    @abstractmethod
    def link(self, mu: Array) -> Array:
        """g(mu)."""

    @abstractmethod
    def inverse(self, eta: Array) -> Array:
        """The mean at eta."""

    @abstractmethod
    def derivatives(self, eta: Array) -> tuple[Array, Array]:
        """First and second derivative of the inverse at eta."""

    def __epi_state__(self) -> dict[str, object]:
        return dict(vars(self))

    def __epi_restore__(self, state: dict[str, object]) -> None:
        type(self).__init__(self, **state)


@dataclass(frozen=True)
class Identity(Link):
    """eta = mu."""

    name = "identity"

    def link(self, mu: Array) -> Array:
        return np.asarray(mu, dtype=np.float64)

    def inverse(self, eta: Array) -> Array:
        return np.asarray(eta, dtype=np.float64)

    def derivatives(self, eta: Array) -> tuple[Array, Array]:
        return np.ones(np.shape(eta)), np.zeros(np.shape(eta))


@dataclass(frozen=True)
class Log(Link):
    """eta = log(mu)."""

    name = "log"

    def link(self, mu: Array) -> Array:
        return np.log(mu)

    def inverse(self, eta: Array) -> Array:
        return np.exp(eta)

    def derivatives(self, eta: Array) -> tuple[Array, Array]:
        mu = np.exp(eta)
        return mu, mu


@dataclass(frozen=True)
class Logit(Link):
    """eta = log(mu / (1 - mu))."""

    name = "logit"

    def link(self, mu: Array) -> Array:
        return np.asarray(logit(mu))

    def inverse(self, eta: Array) -> Array:
        return np.asarray(expit(eta))

    def derivatives(self, eta: Array) -> tuple[Array, Array]:
        p, q = expit(eta), expit(-np.asarray(eta))
        return p * q, p * q * (q - p)


@dataclass(frozen=True)
class Probit(Link):
    """eta = Phi^-1(mu), with the distribution function Phi of the normal."""

    name = "probit"

    def link(self, mu: Array) -> Array:
        return np.asarray(ndtri(mu))

    def inverse(self, eta: Array) -> Array:
        return np.asarray(ndtr(eta))

    def derivatives(self, eta: Array) -> tuple[Array, Array]:
        density = np.exp(-0.5 * np.square(eta)) / ROOT_2PI
        return density, -eta * density


@dataclass(frozen=True)
class CLogLog(Link):
    """eta = log(-log(1 - mu))."""

    name = "cloglog"

    def link(self, mu: Array) -> Array:
        return np.log(-np.log1p(-np.asarray(mu)))

    def inverse(self, eta: Array) -> Array:
        return -np.expm1(-np.exp(eta))

    def derivatives(self, eta: Array) -> tuple[Array, Array]:
        m = np.exp(np.minimum(eta, 700.0))
        first = m * np.exp(-m)
        return first, first * (1 - m)


@dataclass(frozen=True)
class Power(Link):
    """eta = mu^power for a positive mean; power 0 is :class:`Log`, 1 :class:`Identity`.

    Parameters
    ----------
    power : float
    """

    power: float = 1.0
    domain = (0.0, np.inf)

    def __post_init__(self) -> None:
        if not np.isfinite(self.power) or self.power == 0:
            raise ParameterError(
                f"Power: power={self.power!r}; expected a finite number other than 0 (Log is its limit)"
            )

    @property
    def name(self) -> str:
        """Name of the link in text."""
        return f"power({self.power:g})"

    def link(self, mu: Array) -> Array:
        return np.power(mu, self.power)

    def inverse(self, eta: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.power(eta, 1 / self.power)

    def derivatives(self, eta: Array) -> tuple[Array, Array]:
        q = 1 / self.power
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return q * np.power(eta, q - 1), q * (q - 1) * np.power(eta, q - 2)


@dataclass(frozen=True)
class Inverse(Power):
    """eta = 1 / mu."""

    power: float = -1.0
    name = "inverse"


@dataclass(frozen=True)
class InverseSquared(Power):
    """eta = 1 / mu^2."""

    power: float = -2.0
    name = "inverse_squared"


@dataclass(frozen=True)
class Sqrt(Power):
    """eta = sqrt(mu)."""

    power: float = 0.5
    name = "sqrt"


LINKS: dict[str, type[Link]] = {
    "identity": Identity,
    "log": Log,
    "logit": Logit,
    "probit": Probit,
    "cloglog": CLogLog,
    "inverse": Inverse,
    "inverse_squared": InverseSquared,
    "sqrt": Sqrt,
}


def as_link(link: str | Link) -> Link:
    """A link from its name."""
    return LINKS[link]() if isinstance(link, str) else link


def probit_terms(eta: Array) -> tuple[Array, Array, Array]:
    """-log Phi(eta), its first and its second derivative: exact in both tails.

    With the hazard l = phi / Phi at eta they are -log Phi, -l, and l (l + eta).
    """
    log_p = log_ndtr(eta)
    hazard = np.exp(-0.5 * np.square(eta) - np.log(ROOT_2PI) - log_p)
    # Far to the left l + eta = 1/|eta| - 2/|eta|^3 + ... cancels; there l (l + eta) = 1 - 1/eta^2 + 6/eta^4 - 50/eta^6.
    far = eta < -100.0
    safe = np.where(far, eta, -100.0)
    series = 1 - safe**-2.0 + 6 * safe**-4.0 - 50 * safe**-6.0
    return -log_p, -hazard, np.where(far, series, hazard * (hazard + eta))


def cloglog_terms(eta: Array) -> tuple[Array, Array, Array]:
    """-log(1 - e^-m) with m = e^eta, its first and its second derivative in eta."""
    m = np.exp(np.minimum(eta, 700.0))
    small, gone = m < 0.03, m >= 700.0
    safe = np.where(small | gone, 1.0, m)
    decay = np.exp(-safe)
    left = -np.expm1(-safe)
    value = np.where(small, m / 2 - m**2 / 24 + m**4 / 2880 - eta, -np.log1p(-decay))
    first = np.where(small, m / 2 - m**2 / 12 + m**4 / 720 - 1, -safe * decay / left)
    # d/deta of -m / (e^m - 1); the closed form cancels for small m, the series of m / (e^m - 1) does not.
    series = m / 2 - m**2 / 6 + m**4 / 180 - m**6 / 5040
    second = np.where(small, series, safe * decay * (safe - 1 + decay) / np.square(left))
    return np.where(gone, 0.0, value), np.where(gone, 0.0, first), np.where(gone, 0.0, second)
