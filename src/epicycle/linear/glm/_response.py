"""A family with a link: the loss of a row as a function of its linear predictor eta.

The loss l(eta) of a row is half its unit deviance d(y, mu(eta)). With residual y - mu, variance V(mu), mu' = dmu/deta

    l' = -(y - mu) mu' / V,        E l'' = mu'^2 / V,        l'' = E l'' + (y - mu) (mu'^2 V' / V^2 - mu'' / V).

Where l is convex (log-concave likelihood) every stationary point is a minimum. For the certificate it has to be known
how fast l'' can fall: |l'''| <= M l'' for the losses made of exponentials (generalised self-concordance), or a bound
on l''(eta + delta) / l''(eta) that holds for all |delta| <= rho.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from epicycle.core._exceptions import ParameterError
from epicycle.stats._family import Family, StandardFamily
from epicycle.stats._power_families import Tweedie
from epicycle.stats.families import NegativeBinomial
from epicycle.stats.links import Link, as_link, cloglog_terms, probit_terms

Array = NDArray[np.float64]

#: Families and links that the native kernels know, with the numbers of their losses there (native/core/losses.hpp).
_NATIVE = {
    ("gaussian", "identity"): 0,
    ("poisson", "log"): 4,
    ("gamma", "log"): 5,
    ("tweedie", "log"): 6,
    ("binomial", "logit"): 7,
    ("negative_binomial", "log"): 9,
}


@dataclass(frozen=True)
class Terms:
    """Of every row: half its unit deviance, its first and second derivative in eta, and the expected second one."""

    loss: Array
    r: Array
    h: Array
    e: Array


@dataclass(frozen=True)
class Canonical(Link):
    """eta is the natural parameter of a family."""

    family: Family
    name = "canonical"

    @property
    def domain(self) -> tuple[float, float]:  # type: ignore[override]
        """The natural range."""
        return self.family.natural_range

    def link(self, mu: Array) -> Array:
        return self.family.natural(mu)

    def inverse(self, eta: Array) -> Array:
        return self.family.mean(eta)

    def derivatives(self, eta: Array) -> tuple[Array, Array]:
        step = 1e-4 * np.maximum(np.abs(eta), 1e-3)
        variance = self.family.mean_variance
        return variance(eta), (variance(eta + step) - variance(eta - step)) / (2 * step)


@dataclass(frozen=True)
class Response:
    """A family with a link.

    native : number of the native kernel, or None.
    a, b : its parameters.
    curvature_rate : M with |l'''| <= M l'', or None.
    curvature_floor : (y, eta, rho) -> a lower bound of l''(eta + delta) / l''(eta) over |delta| <= rho, or None.
    convex : whether l is known to be convex for every y.
    """

    family: Family
    link: Link
    native: int | None = None
    a: float = 0.0
    b: float = 0.0
    curvature_rate: float | None = None
    curvature_floor: Callable[[Array, Array, Array], Array] | None = None
    convex: bool = False
    canonical: bool = False
    special: Callable[[Array, Array], tuple[Array, Array, Array]] | None = None

    def mean(self, eta: Array) -> Array:
        """The mean at eta; nan outside the domain of the link."""
        low, high = self.link.domain
        if not (np.isfinite(low) or np.isfinite(high)):
            return self.link.inverse(eta)
        inside = (eta > low) & (eta < high)
        start = 1.0 if not isinstance(self.link, Canonical) else self.family.starting_point()
        return np.where(inside, self.link.inverse(np.where(inside, eta, start)), np.nan)

    def valid(self, mu: Array) -> NDArray[np.bool_]:
        """Whether means are inside the range of the family."""
        low, high = self.family.mean_range if isinstance(self.family, StandardFamily) else (-np.inf, np.inf)
        return np.isfinite(mu) & (mu > low) & (mu < high)

    def terms(self, y: Array, eta: Array) -> Terms:
        """The loss and its derivatives; the loss is inf where eta gives no valid mean."""
        with np.errstate(all="ignore"):
            if self.special is not None:
                loss, r, h = self.special(y, eta)
                d1, _ = self.link.derivatives(eta)
                mu = self.link.inverse(eta)
                e = np.square(d1) / self.family.variance(mu)
                return Terms(loss, r, h, np.where(np.isfinite(e), e, 0.0))
            mu = self.mean(eta)
            good = self.valid(mu)
            safe_eta = eta if good.all() else np.where(good, eta, self._somewhere())
            if not isinstance(self.family, StandardFamily):
                return self._canonical_terms(y, safe_eta, good)
            mu = self.link.inverse(safe_eta)
            d1, d2 = self.link.derivatives(safe_eta)
            V, slope = self.family.variance(mu), self.family.variance_slope(mu)
            left = y - mu
            e = np.square(d1) / V
            h = e if self.canonical else e + left * (np.square(d1 / V) * slope - d2 / V)
            loss = 0.5 * self.family.unit_deviance(y, mu)
            return Terms(np.where(good, loss, np.inf), -left * d1 / V, h, e)

    def _somewhere(self) -> float:
        """An eta with a valid mean."""
        if isinstance(self.link, Canonical):
            return self.family.starting_point()
        return float(self.link.link(np.array(0.5)))

    def _canonical_terms(self, y: Array, theta: Array, good: NDArray[np.bool_]) -> Terms:
        """l = a(theta) - t theta + a*(t); the last term is added by the caller, once for all passes."""
        loss = self.family.log_partition(theta) - y * theta
        h = self.family.mean_variance(theta)
        return Terms(np.where(good & np.isfinite(loss), loss, np.inf), self.family.mean(theta) - y, h, h)

    def constant(self, y: Array) -> Array:
        """The term of y alone that makes the loss of a row half its unit deviance."""
        if self.native == 0:
            return np.zeros(np.shape(y))
        if isinstance(self.family, NegativeBinomial) and self.native is not None:
            return np.asarray(self.family.conjugate(y) - y * np.log(self.family.alpha))
        if self.native is not None or not isinstance(self.family, StandardFamily):
            return self.family.conjugate(y)
        return np.zeros(np.shape(y))


def response_of(family: Family, link: str | Link) -> Response:
    """The family with the link that was asked for ("auto" and "canonical" among the names)."""
    if not isinstance(family, StandardFamily):
        if isinstance(link, str) and link in ("auto", "canonical"):
            return Response(family, Canonical(family), convex=True, canonical=True)
        raise ParameterError(
            f"link={link!r}: the family {family.name!r} is defined by its pieces; expected 'canonical'"
        )
    name = link if isinstance(link, str) else link.name
    if name == "auto":
        name = family.default_link
    elif name == "canonical":
        name = family.canonical_link
        if not name:
            raise ParameterError(f"link='canonical': that of {family!r} has no name; expected 'log', say")
    chosen = as_link(name) if isinstance(link, str) else link
    known = _same_family(family)
    number = _NATIVE.get((known, name))
    a, b = _parameters(family, number)
    rate = {0: 0.0, _NATIVE["tweedie", "log"]: max(a, b)}.get(number, 1.0) if number is not None else None
    floor = _FLOORS.get((known, name))
    return Response(
        family,
        chosen,
        native=number,
        a=a,
        b=b,
        curvature_rate=rate,
        curvature_floor=floor,
        convex=rate is not None or floor is not None,
        canonical=name == family.canonical_link,
        special={("binomial", "probit"): _probit, ("binomial", "cloglog"): _cloglog}.get((known, name)),
    )


def _same_family(family: StandardFamily) -> str:
    """The family's name, by another where it is a special case."""
    if isinstance(family, Tweedie):
        names = {0.0: "gaussian", 1.0: "poisson", 2.0: "gamma", 3.0: "inverse_gaussian"}
        return names.get(family.power, "tweedie" if 1 < family.power < 2 else "tweedie (other)")
    return "gamma" if family.name == "exponential" else family.name


def _parameters(family: StandardFamily, number: int | None) -> tuple[float, float]:
    if isinstance(family, Tweedie) and number == _NATIVE["tweedie", "log"]:
        return family.power - 1, 2 - family.power
    native = number == _NATIVE["negative_binomial", "log"]
    if native and isinstance(family, NegativeBinomial) and family.alpha != "estimate":
        return family.alpha, float(np.log(family.alpha))
    return 0.0, 0.0


# ------------------------------------------------------------------------------------------------ losses of their own


def _mixed(y: Array, yes: tuple[Array, ...], no: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    """y l_1 + (1 - y) l_0, where a factor of zero drops an infinite term."""
    return tuple(  # type: ignore[return-value]
        np.where(y == 0, 0.0, y * one) + np.where(y == 1, 0.0, (1 - y) * zero)
        for one, zero in zip(yes, no, strict=True)
    )


def _entropy(y: Array) -> Array:
    from scipy.special import xlog1py, xlogy

    return np.asarray(xlogy(y, y) + xlog1py(1 - y, -y))


def _probit(y: Array, eta: Array) -> tuple[Array, Array, Array]:
    value, first, second = probit_terms(eta)
    value_0, first_0, second_0 = probit_terms(-eta)
    loss, r, h = _mixed(y, (value, first, second), (value_0, -first_0, second_0))
    return loss + _entropy(y), r, h


def _cloglog(y: Array, eta: Array) -> tuple[Array, Array, Array]:
    m = np.exp(eta)
    loss, r, h = _mixed(y, cloglog_terms(eta), (m, m, m))
    return loss + _entropy(y), r, h


# ------------------------------------------------------------------------------------------------ lower bounds of l''


def _falling(_y: Array, eta: Array, rho: Array, power: float) -> Array:
    """For l'' a sum of constants and multiples of eta^-power, eta > 0: it falls to the right alone."""
    return np.power(eta / (eta + rho), power)


def _probit_floor(y: Array, eta: Array, rho: Array) -> Array:
    # The curvature of -log Phi falls with eta; that of the other class is its mirror image.
    least = y * probit_terms(eta + rho)[2] + (1 - y) * probit_terms(rho - eta)[2]
    now = y * probit_terms(eta)[2] + (1 - y) * probit_terms(-eta)[2]
    return np.where(now > 0, least / np.where(now > 0, now, 1.0), 0.0)


def _cloglog_floor(y: Array, eta: Array, rho: Array) -> Array:
    # The curvature of -log(1 - exp(-e^eta)) rises to one peak and falls: its least is at an end of the interval.
    one = np.minimum(cloglog_terms(eta - rho)[2], cloglog_terms(eta + rho)[2])
    least = y * one + (1 - y) * np.exp(eta - rho)
    now = y * cloglog_terms(eta)[2] + (1 - y) * np.exp(eta)
    return np.where(now > 0, least / np.where(now > 0, now, 1.0), 0.0)


_FLOORS: dict[tuple[str, str], Callable[[Array, Array, Array], Array]] = {
    ("poisson", "identity"): partial(_falling, power=2.0),  # l'' = y / eta^2
    ("poisson", "sqrt"): partial(_falling, power=2.0),  # l'' = 2 + 2 y / eta^2
    ("gamma", "inverse"): partial(_falling, power=2.0),  # l'' = 1 / eta^2
    ("inverse_gaussian", "inverse_squared"): partial(_falling, power=1.5),  # l'' = eta^-1.5 / 4
    ("binomial", "probit"): _probit_floor,
    ("binomial", "cloglog"): _cloglog_floor,
}
