"""Emissions of a state: densities of rows, expected statistics, maximum likelihood; here counts and categories.

A missing entry, NaN, is integrated out. Entries of a row are independent given the state here, so that it simply adds
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import whole_counts

Parameters = Mapping[str, np.ndarray]


class Emission(ABC):
    """The distributions of a row in each of K states."""

    #: Names of the parameters; attributes of a fit have them with an underscore.
    names: tuple[str, ...]

    def __init__(self, n_states: int) -> None:
        self.n_states = n_states

    @abstractmethod
    def check(self, X: np.ndarray) -> None:
        """Refuse rows that no state can emit."""

    @abstractmethod
    def shapes(self, p: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the parameters for rows of p columns."""

    @abstractmethod
    def start(self, X: np.ndarray, label: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """First parameters; `label` is a rough state of every row."""

    @abstractmethod
    def log_density(self, X: np.ndarray, parameters: Parameters, out: np.ndarray) -> Any:
        """Write log p(x | state) into `out` of shape (n, K); returns what `statistics` of these rows needs besides."""

    @abstractmethod
    def statistics(self, X: np.ndarray, posterior: np.ndarray, kept: Any, parameters: Parameters) -> tuple[Any, ...]:
        """Expected statistics, which add up over rows; `posterior` holds weights too."""

    @abstractmethod
    def m_step(self, statistics: tuple[Any, ...], parameters: Parameters) -> dict[str, np.ndarray]:
        """The most likely parameters; a state without rows keeps its own."""

    @abstractmethod
    def draw(self, parameters: Parameters, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A row for every state."""

    @abstractmethod
    def n_parameters(self, p: int) -> int:
        """Number of free parameters."""

    def log_prior(self, parameters: Parameters) -> float:
        return 0.0

    def feasible(self, parameters: Parameters) -> bool:
        """Whether extrapolated parameters are parameters."""
        return all((value >= 0).all() for value in parameters.values())

    def checked_start(self, given: Mapping[str, Any], X: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters that the user gave, as arrays of the right shapes."""
        shapes = self.shapes(X.shape[1])
        unknown = sorted(set(given) - set(shapes))
        if unknown:
            raise ParameterError(f"emission_init: {unknown[0]!r} is no parameter of it; expected {', '.join(shapes)}")
        out = {}
        for name, value in given.items():
            array = np.array(value, dtype=np.float64)
            if array.shape != shapes[name] or not np.isfinite(array).all():
                raise ParameterError(
                    f"emission_init: {name} has shape {array.shape}; expected finite numbers of shape {shapes[name]}"
                )
            out[name] = array
        self.check_domain(out)
        return out

    def check_domain(self, given: Parameters) -> None:
        """Refuse given parameters that are none."""
        for name, value in given.items():
            if (value < 0).any():
                raise ParameterError(f"emission_init: {name} has negative entries; expected none")


def share(counts: np.ndarray, prior: float, old: np.ndarray) -> np.ndarray:
    """Probabilities, along the last axis, that maximise sum (counts + prior - 1) log p; zeros of `old` stay zeros."""
    wanted = np.where(old > 0, counts + (prior - 1), 0.0)
    total = wanted.sum(axis=-1, keepdims=True)
    return np.where(total > 0, wanted / np.where(total > 0, total, 1.0), old)


def log_dirichlet(p: np.ndarray, prior: float) -> float:
    """log of the Dirichlet density up to a constant, over entries that are not zero by construction."""
    return 0.0 if prior == 1 else float((prior - 1) * np.log(p[p > 0]).sum())


class Poisson(Emission):
    """Counts: x_j ~ Poisson(lambda_kj), columns independent given the state."""

    names = ("lambdas",)

    def check(self, X: np.ndarray) -> None:
        seen = X[~np.isnan(X)]
        if (seen < 0).any() or (seen != np.floor(seen)).any():
            raise DataError("X: emission='poisson' is for counts; expected integers >= 0, or NaN where one is missing")

    def shapes(self, p: int) -> dict[str, tuple[int, ...]]:
        return {"lambdas": (self.n_states, p)}

    def start(self, X: np.ndarray, label: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        there = ~np.isnan(X)
        filled = np.where(there, X, 0.0)
        overall = filled.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        # Half a count of the overall mean: no rate is zero, where the likelihood would never let it grow.
        rates = [
            (filled[label == k].sum(axis=0) + 0.5 * overall) / (there[label == k].sum(axis=0) + 0.5)
            for k in range(self.n_states)
        ]
        return {"lambdas": np.maximum(np.array(rates), 1e-8)}

    def log_density(self, X: np.ndarray, parameters: Parameters, out: np.ndarray) -> Any:
        rate = parameters["lambdas"]
        there = ~np.isnan(X)
        filled = np.where(there, X, 0.0)
        constant = gammaln(filled + 1).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            if (rate > 0).all():
                out[:] = filled @ np.log(rate).T
            else:
                out[:] = np.stack([xlogy(filled, r).sum(axis=1) for r in rate], axis=1)
        out -= there @ rate.T + constant[:, None]

    def statistics(self, X: np.ndarray, posterior: np.ndarray, kept: Any, parameters: Parameters) -> tuple[Any, ...]:
        there = ~np.isnan(X)
        return posterior.T @ np.where(there, X, 0.0), posterior.T @ there

    def m_step(self, statistics: tuple[Any, ...], parameters: Parameters) -> dict[str, np.ndarray]:
        total, weight = statistics
        return {"lambdas": np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), parameters["lambdas"])}

    def draw(self, parameters: Parameters, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(rng.poisson(whole_counts(parameters["lambdas"])[states]), dtype=np.float64)

    def n_parameters(self, p: int) -> int:
        return self.n_states * p


class Categorical(Emission):
    """Categories 0, 1, ...: columns independent given the state, their probabilities side by side in one table."""

    names = ("emissionprob",)

    def __init__(self, n_states: int, n_categories: np.ndarray, prior: float) -> None:
        super().__init__(n_states)
        self.n_categories, self.prior = n_categories, prior
        self.first = np.concatenate([[0], np.cumsum(n_categories)])

    @classmethod
    def of(cls, n_states: int, X: np.ndarray, n_categories: Any, prior: float) -> Categorical:
        """With as many categories in each column as X shows, or as given."""
        seen = X[~np.isnan(X)]
        if (seen < 0).any() or (seen != np.floor(seen)).any():
            raise DataError(
                "X: emission='categorical' is for codes of categories; expected integers 0, 1, ..., or NaN for one "
                "that is missing"
            )
        least = np.array([1 + int(np.max(column[~np.isnan(column)], initial=0)) for column in X.T])
        if n_categories is None:
            return cls(n_states, least, prior)
        counts = np.broadcast_to(np.asarray(n_categories), least.shape)
        if counts.dtype.kind not in "iu" or (counts < least).any():
            raise ParameterError(
                f"n_categories: {n_categories}; expected integers, at least {least.tolist()} as X shows"
            )
        return cls(n_states, counts.astype(np.int64), prior)

    def check(self, X: np.ndarray) -> None:
        for j, (column, count) in enumerate(zip(X.T, self.n_categories, strict=True)):
            seen = column[~np.isnan(column)]
            if ((seen < 0) | (seen >= count) | (seen != np.floor(seen))).any():
                raise DataError(f"X: column {j} has other categories than 0 to {count - 1}, which the model knows")

    def shapes(self, p: int) -> dict[str, tuple[int, ...]]:
        return {"emissionprob": (self.n_states, int(self.first[-1]))}

    def check_domain(self, given: Parameters) -> None:
        super().check_domain(given)
        if "emissionprob" in given:
            sums = np.add.reduceat(given["emissionprob"], self.first[:-1], axis=1)
            if not np.allclose(sums, 1.0, atol=1e-6):
                raise ParameterError("emission_init: emissionprob; expected rows with sum 1 for every column of X")

    def start(self, X: np.ndarray, label: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        parts = []
        for column, count in zip(X.T, self.n_categories, strict=True):
            seen = column[~np.isnan(column)].astype(np.int64)
            overall = np.bincount(seen, minlength=count) + 1.0
            parts.append((overall / overall.sum() + rng.dirichlet(np.ones(count), size=self.n_states)) / 2)
        return {"emissionprob": np.concatenate(parts, axis=1)}

    def log_density(self, X: np.ndarray, parameters: Parameters, out: np.ndarray) -> Any:
        with np.errstate(divide="ignore"):
            log_p = np.log(parameters["emissionprob"]).T
        out[:] = 0.0
        for j, column in enumerate(X.T):
            there = ~np.isnan(column)
            at = self.first[j] + np.where(there, column, 0.0).astype(np.int64)
            out += np.where(there[:, None], log_p[at], 0.0)

    def statistics(self, X: np.ndarray, posterior: np.ndarray, kept: Any, parameters: Parameters) -> tuple[Any, ...]:
        counts = np.zeros((self.n_states, int(self.first[-1])))
        for j, column in enumerate(X.T):
            rows = np.flatnonzero(~np.isnan(column))
            code = column[rows].astype(np.int64)
            for k in range(self.n_states):
                part = np.bincount(code, weights=posterior[rows, k], minlength=self.n_categories[j])
                counts[k, self.first[j] : self.first[j + 1]] = part
        return (counts,)

    def m_step(self, statistics: tuple[Any, ...], parameters: Parameters) -> dict[str, np.ndarray]:
        (counts,) = statistics
        old, cuts = parameters["emissionprob"], self.first[1:-1]
        parts = zip(np.split(counts, cuts, axis=1), np.split(old, cuts, axis=1), strict=True)
        return {"emissionprob": np.concatenate([share(c, self.prior, p) for c, p in parts], axis=1)}

    def log_prior(self, parameters: Parameters) -> float:
        return log_dirichlet(parameters["emissionprob"], self.prior)

    def draw(self, parameters: Parameters, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        columns = []
        for part in np.split(parameters["emissionprob"], self.first[1:-1], axis=1):
            cumulative = np.cumsum(part, axis=1)
            cumulative /= cumulative[:, -1:]
            columns.append((rng.random(len(states))[:, None] >= cumulative[states]).sum(axis=1))
        return np.stack(columns, axis=1).astype(np.float64)

    def n_parameters(self, p: int) -> int:
        return self.n_states * int((self.n_categories - 1).sum())
