r"""Kernels of densities that depend on the distance alone:  k(r),  r = d / h,  with k(0) = 1.

The density of one point is k(d / h) / (h^p Z) with ``Z = S_p integral_0^inf k(r) r^(p-1) dr`` and S_p the surface of
the unit ball in p dimensions, 2 pi^(p/2) / Gamma(p/2).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

#: As native code numbers them.
KERNELS = ("gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine")
_MAX_TRIALS = 10_000  # of the cosine's rejection, of which four in five or more are taken


def log_normaliser(kernel: str, p: int, h: float) -> float:
    """log(h^p Z): of the integral of the kernel over Euclidean space."""
    if kernel == "gaussian":
        return p * (math.log(2 * math.pi) / 2 + math.log(h))
    log_surface = math.log(2.0) + p / 2 * math.log(math.pi) - float(gammaln(p / 2))
    integral = {
        "tophat": -math.log(p),
        "epanechnikov": math.log(2.0) - math.log(p) - math.log(p + 2),
        "exponential": float(gammaln(p)),
        "linear": -math.log(p) - math.log(p + 1),
    }
    radial = integral[kernel] if kernel in integral else _log_cosine_integral(p)
    return log_surface + radial + p * math.log(h)


def _log_cosine_integral(p: int) -> float:
    """log of the integral of cos(pi r / 2) r^(p-1) over [0, 1], by the series of the cosine."""
    terms = [
        (-1) ** k * math.exp(2 * k * math.log(math.pi / 2) - math.lgamma(2 * k + 1)) / (p + 2 * k) for k in range(16)
    ]
    return math.log(math.fsum(terms))


def values(kernel: str, r: np.ndarray) -> np.ndarray:
    """log k(r), minus infinity where the kernel does not reach."""
    if kernel == "gaussian":
        return np.asarray(-0.5 * np.minimum(r, 1e150) ** 2)
    if kernel == "exponential":
        return np.asarray(-r)
    inside = np.where(r < 1, r, 1.0)
    shape = {
        "tophat": np.ones_like(inside),
        "epanechnikov": 1 - inside**2,
        "linear": 1 - inside,
        "cosine": np.cos(math.pi / 2 * inside),
    }[kernel]
    with np.errstate(divide="ignore"):
        return np.where(r < 1, np.log(shape), -np.inf)


def draw_radii(kernel: str, n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Distances r of n points drawn from the kernel in p dimensions."""
    if kernel == "tophat":
        return np.asarray(rng.random(n) ** (1 / p))
    if kernel == "epanechnikov":
        return np.asarray(np.sqrt(rng.beta(p / 2, 2.0, n)))
    if kernel == "exponential":
        return np.asarray(rng.gamma(p, size=n))
    if kernel == "linear":
        return np.asarray(rng.beta(p, 2.0, n))
    # cos(pi r / 2) <= (pi / 2) (1 - r): proposals of the linear kernel.
    found, trials = np.empty(0), 0
    while len(found) < n and trials < _MAX_TRIALS:
        r, trials = rng.beta(p, 2.0, n), trials + 1
        keep = rng.random(n) * (math.pi / 2) * (1 - r) < np.cos(math.pi / 2 * r)
        found = np.concatenate([found, r[keep]])
    return found[:n]
