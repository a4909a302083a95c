"""Distributions of exogenous variables: draws, densities, and all values where there are few."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from epicycle.core._checks import distribution
from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.data._target import as_numbers

Array = np.ndarray


class Noise(ABC):
    """Distribution of an exogenous variable."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """Independent draws."""

    def log_density(self, values: Array) -> Array:
        """Logarithm of the density, where it is known."""
        raise ParameterError(
            "exogenous: evidence about some variables only needs the density of the noise; expected a distribution of "
            "scipy.stats or a mapping from values to probabilities in place of a function"
        )

    @property
    def support(self) -> tuple[Array, Array] | None:
        """All values with their probabilities, where there are finitely many."""
        return None


class Frozen(Noise):
    """A distribution of scipy.stats with its parameters."""

    def __init__(self, law: Any) -> None:
        self.law = law

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(self.law.rvs(size=n, random_state=rng))

    def log_density(self, values: Array) -> Array:
        known = hasattr(self.law.dist, "logpdf")
        return np.asarray(self.law.logpdf(values) if known else self.law.logpmf(values))


class Drawn(Noise):
    """A function of a generator and a number of draws."""

    def __init__(self, draw: Callable[[np.random.Generator, int], Array]) -> None:
        self.draw = draw

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        values = np.asarray(self.draw(rng, n))
        if values.shape != (n,):
            raise ParameterError(f"exogenous: a function of (rng, n) returned shape {values.shape}; expected ({n},)")
        return values


class Finite(Noise):
    """Values with probabilities."""

    def __init__(self, table: Mapping[Any, float]) -> None:
        self.values = np.array(list(table))
        self.p = distribution("exogenous", list(table.values()))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(rng.choice(self.values, size=n, p=self.p))

    def log_density(self, values: Array) -> Array:
        match = np.asarray(values)[..., None] == self.values
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((match * self.p).sum(axis=-1)))

    @property
    def support(self) -> tuple[Array, Array] | None:
        return self.values, self.p


class Empirical(Noise):
    """Values that were seen, each equally likely; densities by a Gaussian kernel."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(self.values[rng.integers(len(self.values), size=n)])

    @cached_property
    def _kernel(self) -> Any:
        from scipy.stats import gaussian_kde

        spread = float(np.std(self.values))
        if not spread > 0:
            raise ParameterError("exogenous: the residuals of an equation are all equal; their density is not known")
        return gaussian_kde(self.values)

    def log_density(self, values: Array) -> Array:
        # The same value for all particles is looked up once.
        found, place = np.unique(as_numbers(values, "evidence"), return_inverse=True)
        return np.asarray(self._kernel.logpdf(found)[place.ravel()])


class Uniform(Noise):
    """Between zero and one; quantiles of a category."""

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        return rng.random(n)

    def log_density(self, values: Array) -> Array:
        return np.where((values >= 0) & (values <= 1), 0.0, -np.inf)


def as_noise(name: str, given: Any) -> Noise:
    """The distribution of an exogenous variable as users may give it."""
    if isinstance(given, Noise):
        return given
    if isinstance(given, Mapping):
        return Finite(given)
    if hasattr(given, "rvs") and hasattr(given, "dist"):
        return Frozen(given)
    if callable(given):
        return Drawn(given)
    raise ParameterTypeError(
        f"exogenous[{name!r}]={given!r:.80}; expected a distribution of scipy.stats such as norm(0, 1), a mapping from "
        "values to probabilities, or a function of a Generator and a number of draws"
    )
