"""Mechanisms: how a variable gets its value from its parents and its noise, and what a value says about the noise."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epicycle.causal.structural._noise import Noise, Uniform
from epicycle.core._exceptions import ParameterError, ParameterTypeError

Array = np.ndarray
Values = Mapping[str, Array]


class Mechanism(ABC):
    """An equation. `inputs` are the variables that it reads; `own` is noise that no other equation reads."""

    inputs: tuple[str, ...] = ()
    own: Noise | None = None
    #: Whether a value and the inputs determine the noise.
    invertible = False

    @abstractmethod
    def value(self, known: Values, noise: Array | None, n: int) -> Array:
        """Values of n units."""

    def abduct(
        self, value: Any, known: Values, n: int, rng: np.random.Generator, *, weigh: bool
    ) -> tuple[Array, Array] | None:
        """Noise with which the equation gives `value`, and its log-density; None where only trial helps."""
        return None


class Function(Mechanism):
    """A function whose arguments are named after variables."""

    def __init__(self, function: Callable[..., Any], inputs: tuple[str, ...]) -> None:
        self.function, self.inputs = function, inputs

    def value(self, known: Values, noise: Array | None, n: int) -> Array:
        return as_column(self.function(*(known[v] for v in self.inputs)), n, self.function)


class Constant(Mechanism):
    """A value that was set."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def value(self, known: Values, noise: Array | None, n: int) -> Array:
        return as_column(self.given, n, "do")


class Stochastic(Mechanism):
    """A value that is drawn from a distribution whatever the parents are."""

    invertible = True

    def __init__(self, law: Noise) -> None:
        self.own = self.law = law

    def value(self, known: Values, noise: Array | None, n: int) -> Array:
        return np.asarray(noise)

    def abduct(
        self, value: Any, known: Values, n: int, rng: np.random.Generator, *, weigh: bool
    ) -> tuple[Array, Array] | None:
        noise = np.broadcast_to(np.asarray(value), (n,))
        return noise, self.law.log_density(noise) if weigh else np.zeros(n)


class Modified(Mechanism):
    """The value that would have come, changed by a function of it and of other variables."""

    def __init__(self, before: Mechanism, function: Callable[..., Any], itself: str, inputs: tuple[str, ...]) -> None:
        self.before, self.function, self.itself, self.arguments = before, function, itself, inputs
        self.inputs = tuple(dict.fromkeys((*before.inputs, *(v for v in inputs if v != itself))))
        self.own = before.own

    def value(self, known: Values, noise: Array | None, n: int) -> Array:
        natural = {**known, self.itself: self.before.value(known, noise, n)}
        return as_column(self.function(*(natural[v] for v in self.arguments)), n, self.function)


class Classification(Mechanism):
    """The category at a uniform quantile of the probabilities of a fitted classifier."""

    def __init__(self, model: Any, encode: Callable[[Values], Array], inputs: tuple[str, ...]) -> None:
        self.model, self.encode, self.inputs, self.own = model, encode, inputs, Uniform()

    def _edges(self, known: Values) -> Array:
        edges = np.cumsum(self.model.predict_proba(self.encode(known)), axis=1)
        edges[:, -1] = 1.0
        return np.asarray(edges)

    def value(self, known: Values, noise: Array | None, n: int) -> Array:
        return np.asarray(self.model.classes_[(np.asarray(noise)[:, None] > self._edges(known)).sum(axis=1)])

    def abduct(
        self, value: Any, known: Values, n: int, rng: np.random.Generator, *, weigh: bool
    ) -> tuple[Array, Array] | None:
        edges = np.column_stack([np.zeros(n), self._edges(known)])
        match = np.asarray(value).reshape(-1, 1) == self.model.classes_[None, :]
        if not match.any(axis=1).all():
            raise ParameterError(f"evidence: {value!r:.80} is none of the categories {self.model.classes_.tolist()}")
        k = np.broadcast_to(match.argmax(axis=1), (n,))
        low, high = edges[np.arange(n), k], edges[np.arange(n), k + 1]
        with np.errstate(divide="ignore"):
            return low + (high - low) * rng.random(n), np.log(high - low)


def arguments_of(function: Any, name: str) -> tuple[str, ...]:
    """Names of the arguments of a function."""
    if not callable(function):
        raise ParameterTypeError(f"{name}={function!r:.80}; expected a function")
    found = inspect.signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        raise ParameterTypeError(f"{name}: expected arguments with the names of variables, not *args or **kwargs")
    return tuple(p.name for p in found)


def named_values(name: str, given: Any) -> dict[str, Any]:
    """Values that are given for each of some variables."""
    if not isinstance(given, Mapping):
        raise ParameterTypeError(f"{name}={given!r:.80}; expected a dict from variables to values")
    return dict(given)


def single_value(name: str, value: Any) -> Any:
    """A value that a variable is set to: a finite number or a category."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty(2)
    if array.ndim or array.dtype.kind in "cO" or (array.dtype.kind == "f" and not np.isfinite(array)):
        raise ParameterError(f"{name}={value!r:.80}; expected a finite number or a category")
    return value


def as_column(values: Any, n: int, source: Any) -> Array:
    column = np.asarray(values)
    if column.ndim == 0:
        return np.broadcast_to(column, (n,)).copy()
    if column.shape != (n,):
        raise ParameterError(f"{source!r:.80} returned shape {column.shape} for {n} units; expected ({n},)")
    return column
