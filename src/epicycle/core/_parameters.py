"""Domains of constructor arguments, checked at the top of `fit`.

A class lists its own arguments with their domains; those of :data:`SHARED_PARAMETERS` (`n_jobs`, `tol`, ...) are added
to every estimator that has an argument of this name and does not list it::

    _parameters = {"alpha": Real(0), "solver": Choice("auto", "newton")}

Constructors store their arguments; :func:`check_parameters` compares them with the domains and raises an error that
names the class, the argument, its value and what was expected.
"""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import ParameterError, ParameterTypeError


class Domain(ABC):
    """A set of values that an argument may take."""

    @abstractmethod
    def has_type(self, value: object) -> bool:
        """Whether the value is of the right type, whatever its size."""

    def accepts(self, value: object) -> bool:
        """Whether the value lies in the domain."""
        return self.has_type(value)

    @abstractmethod
    def describe(self) -> str:
        """The domain in words, as in "expected ..."."""

    def hint(self, value: object) -> str:
        """A guess at what was meant; empty when there is no good one."""
        return ""


class _Number(Domain):
    """An interval of numbers.

    Parameters
    ----------
    minimum, maximum : float, optional
        The ends of the interval; None leaves it open.
    inclusive : bool or tuple of two bools, default=True
        Whether the ends, or each of them, belong to the interval.
    allow_inf : bool, default=False
        Whether an infinite value is accepted.
    """

    _noun: str

    def __init__(
        self,
        minimum: float | None = None,
        maximum: float | None = None,
        *,
        inclusive: bool | tuple[bool, bool] = True,
        allow_inf: bool = False,
    ) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.inclusive = (inclusive, inclusive) if isinstance(inclusive, bool) else inclusive
        self.allow_inf = allow_inf

    def accepts(self, value: object) -> bool:
        if not self.has_type(value):
            return False
        number: Any = value
        # nan compares false with every bound
        if number != number or (abs(number) == math.inf and not self.allow_inf):
            return False
        above = self.minimum is None or number > self.minimum or (self.inclusive[0] and number == self.minimum)
        below = self.maximum is None or number < self.maximum or (self.inclusive[1] and number == self.maximum)
        return bool(above and below)

    def describe(self) -> str:
        bounds = []
        if self.minimum is not None:
            bounds.append(f"{'>=' if self.inclusive[0] else '>'} {self.minimum:g}")
        if self.maximum is not None:
            bounds.append(f"{'<=' if self.inclusive[1] else '<'} {self.maximum:g}")
        words = f"{self._noun} {' and '.join(bounds)}" if bounds else self._noun
        return f"{words} (infinity allowed)" if self.allow_inf else words


class Real(_Number):
    """A real number, NumPy scalars among them; neither a bool nor nan."""

    _noun = "a real number"

    def has_type(self, value: object) -> bool:
        return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


class Integer(_Number):
    """An integer, NumPy's among them; not a bool, not a float such as 3.0."""

    _noun = "an integer"

    def has_type(self, value: object) -> bool:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


class Described(Domain):
    """The values that pass a test, in words."""

    def __init__(self, words: str, test: typing.Callable[[Any], bool]) -> None:
        self.words, self.test = words, test

    def has_type(self, value: object) -> bool:
        return self.test(value)

    def describe(self) -> str:
        return self.words


class Boolean(Described):
    """True or False, also NumPy's."""

    def __init__(self) -> None:
        super().__init__("True or False", lambda value: isinstance(value, bool | np.bool_))


class Choice(Domain):
    """One of a few names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def has_type(self, value: object) -> bool:
        return isinstance(value, str)

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and value in self.names

    def describe(self) -> str:
        quoted = [repr(name) for name in self.names]
        return quoted[0] if len(quoted) == 1 else f"one of {', '.join(quoted[:-1])} or {quoted[-1]}"

    def hint(self, value: object) -> str:
        if not isinstance(value, str):
            return ""
        # Users know names in other spellings ("L-BFGS"): case is no reason not to recognise them.
        by_lower_case = {name.lower(): name for name in self.names}
        close = difflib.get_close_matches(value.lower(), by_lower_case, n=1)
        return f"did you mean {by_lower_case[close[0]]!r}?" if close else ""


class ArrayLike(Domain):
    """An array, a sequence or a frame of numbers; what it holds is checked by the method that uses it."""

    def has_type(self, value: object) -> bool:
        # A string is a sequence too, and NumPy would make an array of its characters.
        if isinstance(value, str | bytes | Mapping):
            return False
        return isinstance(value, list | tuple | np.ndarray) or sp.issparse(value) or hasattr(value, "__array__")

    def describe(self) -> str:
        return "an array"


class Callable(Described):
    """A function, or anything else that can be called."""

    def __init__(self) -> None:
        super().__init__("a callable", callable)


class InstanceOf(Described):
    """An instance of a class."""

    def __init__(self, *classes: type) -> None:
        words = "an instance of " + " or ".join(c.__name__ for c in classes)
        super().__init__(words, lambda value: isinstance(value, classes))


class AnyOf(Domain):
    """The union of several domains."""

    def __init__(self, *domains: Domain) -> None:
        self.domains = domains

    def has_type(self, value: object) -> bool:
        return any(domain.has_type(value) for domain in self.domains)

    def accepts(self, value: object) -> bool:
        return any(domain.accepts(value) for domain in self.domains)

    def describe(self) -> str:
        return " or ".join(domain.describe() for domain in self.domains)

    def hint(self, value: object) -> str:
        return next((hint for domain in self.domains if (hint := domain.hint(value))), "")


#: None alone.
_NOTHING = Described("None", lambda value: value is None)


class NoneOr(AnyOf):
    """None, or a value of the given domain."""

    def __init__(self, domain: Domain) -> None:
        super().__init__(_NOTHING, domain)


class RandomState(AnyOf):
    """Seeds of a random stream: None, a non-negative integer, a NumPy Generator or a RandomState."""

    def __init__(self) -> None:
        super().__init__(_NOTHING, Integer(0), InstanceOf(np.random.Generator, np.random.RandomState))

    def describe(self) -> str:
        return "None, an integer >= 0, a numpy.random.Generator or a numpy.random.RandomState"


#: Domains of the arguments that many estimators and functions have, by name.
SHARED_PARAMETERS: dict[str, Domain] = {
    "fit_intercept": Boolean(),
    "max_iter": Integer(minimum=1),
    "n_clusters": Integer(minimum=1),
    "n_init": Integer(minimum=1),
    "n_jobs": NoneOr(AnyOf(Integer(minimum=1), Integer(maximum=-1))),  # 0 threads have no meaning
    "random_state": RandomState(),
    "tol": Real(minimum=0, inclusive=False),  # 0 cannot be reached in floating point
    "verbose": AnyOf(Boolean(), Integer(minimum=0)),
    "warm_start": Boolean(),
}


def with_shared_parameters(cls: type, domains: Mapping[str, Domain]) -> dict[str, Domain]:
    """The domains of a class, and those of :data:`SHARED_PARAMETERS` for constructor arguments it does not list."""
    arguments = inspect.signature(cls).parameters
    if not arguments:  # an abstract base; its subclasses complete their own tables
        return dict(domains)
    shared = {name: domain for name, domain in SHARED_PARAMETERS.items() if name in arguments}
    # A table taken over from a parent may hold shared arguments that this class does not have.
    own = {name: domain for name, domain in domains.items() if name in arguments or name not in SHARED_PARAMETERS}
    return {**shared, **own}


def check_parameter(owner: str, name: str, value: object, domain: Domain) -> None:
    """Raise if one argument of `owner` lies outside its domain.

    Raises
    ------
    ParameterTypeError
        The value has the wrong type.
    ParameterError
        The type is right, the value is not.
    """
    if domain.accepts(value):
        return
    hint = domain.hint(value)
    message = f"{owner}: {name}={_shown(value)}; expected {domain.describe()}{'; ' + hint if hint else '.'}"
    raise (ParameterError if domain.has_type(value) else ParameterTypeError)(message)


def check_parameters(estimator: Any, domains: Mapping[str, Domain]) -> None:
    """Check every constructor argument of an estimator against its domain; nested estimators check their own."""
    owner = type(estimator).__name__
    for name, domain in domains.items():
        check_parameter(owner, name, getattr(estimator, name), domain)


def _shown(value: object, limit: int = 80) -> str:
    """The value as the user wrote it, cut to one line; NumPy scalars without their type."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
