"""Checks of numbers that users give, and of optional packages; each error names what came and what was expected."""

from __future__ import annotations

import numbers
from importlib import import_module
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, MissingDependencyError, ParameterError, ParameterTypeError


def number(name: str, value: Any, *, low: float = -np.inf, high: float = np.inf) -> float:
    """A finite number between two bounds."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool | np.bool_):
        raise ParameterTypeError(f"{name}={value!r}; expected a number")
    x = float(value)
    if not (np.isfinite(x) and low <= x <= high):
        raise ParameterError(f"{name}={value!r}; expected a finite number in [{low:g}, {high:g}]")
    return x


def open_unit(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    if not 0 < number(name, value) < 1:
        raise ParameterError(f"{name}={value!r}; expected a number strictly between 0 and 1")
    return float(value)


def count(name: str, value: Any, *, low: int = 0) -> int:
    """An integer of at least `low`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool | np.bool_):
        raise ParameterTypeError(f"{name}={value!r}; expected an integer")
    if value < low:
        raise ParameterError(f"{name}={value!r}; expected an integer of at least {low}")
    return int(value)


def items(name: str, values: Any) -> list[Any]:
    """The items of a sequence or another iterable; text is none."""
    if isinstance(values, str | bytes):
        raise ParameterTypeError(f"{name}={values!r:.80}; expected a sequence, got text")
    try:
        return list(values)
    except TypeError:
        raise ParameterTypeError(f"{name}={values!r:.80}; expected a sequence, got {type(values).__name__}") from None


def as_floats(values: Any, otherwise: Exception) -> np.ndarray:
    """An argument as an array of float64; `otherwise` is raised where it holds anything but numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise otherwise from None


def distribution(name: str, values: Any) -> np.ndarray:
    """Probabilities that add up to one; rounding up to 1e-6 is made good."""
    p = np.asarray(values, dtype=np.float64)
    if p.size == 0 or not np.isfinite(p).all() or (p < 0).any():
        raise DataError(f"{name}: expected probabilities, none negative, got {values!r:.80}")
    if abs(p.sum() - 1) > 1e-6:
        raise DataError(f"{name}: probabilities add up to {p.sum():g}; expected 1")
    return np.asarray(p / p.sum())


def optional_import(name: str, purpose: str) -> Any:
    """The module `name`, or an error that says what it is needed for and how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
            raise
        package = name.split(".")[0]
        raise MissingDependencyError(f"{purpose} needs {package}: pip install {package}") from None


def require_columns(X: Any, count: int, what: str) -> Any:
    """X, refused unless it is a matrix with a column for each `what`."""
    if X.ndim != 2 or X.shape[1] != count:
        raise DataError(f"X: shape {X.shape}; expected (n_samples, {count}), a column for each {what}")
    return X
