"""Hyper-parameters of kernels: positive numbers, searched for on the scale of their logarithms within bounds."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from epicycle.core._exceptions import ParameterError, ParameterTypeError

__all__ = ["Bounds", "Hyperparameter", "checked_bounds", "positive_numbers"]

#: For every name (low, high), or None for a value that stays as it is.
Bounds: TypeAlias = "tuple[tuple[str, tuple[float, float] | None], ...]"

WIDE = (1e-5, 1e5)


@dataclass(frozen=True)
class Hyperparameter:
    """One hyper-parameter of a kernel.

    Parameters
    ----------
    name : str
        Its name; in a composed kernel with the way to it, such as ``"left.length_scale"``.
    value : tuple of float
        Its value or values, larger than zero.
    bounds : tuple of float, or None
        The interval of a search; None where the value is fixed.
    """

    name: str
    value: tuple[float, ...]
    bounds: tuple[float, float] | None

    @property
    def size(self) -> int:
        """How many entries of `theta` it takes."""
        return 0 if self.bounds is None else len(self.value)


def checked_bounds(owner: str, given: Any, names: tuple[str, ...], widest: Mapping[str, tuple[float, float]]) -> Bounds:
    """The `bounds` argument of a kernel as sorted pairs: a mapping, "fixed" for all, or None for the widest."""
    if isinstance(given, tuple):  # from another kernel, checked before
        given = {name: "fixed" if pair is None else pair for name, pair in given}
    if given is None:
        given = {}
    if given == "fixed":
        given = dict.fromkeys(names, "fixed")
    if not isinstance(given, Mapping):
        raise ParameterTypeError(
            f"{owner}: bounds={given!r:.80}; expected a mapping of names to (low, high) or 'fixed', 'fixed', or None"
        )
    if unknown := [name for name in given if name not in names]:
        raise ParameterError(f"{owner}: bounds names {unknown[0]!r}; expected names among {list(names)}")
    checked: dict[str, tuple[float, float] | None] = {}
    for name, pair in given.items():
        if isinstance(pair, str) and pair == "fixed":
            checked[name] = None
            continue
        low, high = widest.get(name, (0.0, math.inf))
        if (
            not isinstance(pair, tuple | list)
            or len(pair) != 2
            or not all(isinstance(v, numbers.Real) and 0 < float(v) < math.inf for v in pair)
            or not pair[0] <= pair[1]
            or pair[0] < low
            or pair[1] > high
        ):
            raise ParameterError(
                f"{owner}: bounds[{name!r}]={pair!r:.60}; expected two finite numbers 0 < low <= high"
                f"{'' if math.isinf(high) else f' <= {high:g}'}, or 'fixed'"
            )
        checked[name] = (float(pair[0]), float(pair[1]))
    return tuple(sorted(checked.items()))


def positive_numbers(owner: str, name: str, value: Any) -> float | tuple[float, ...]:
    """A number > 0, or a tuple of such numbers (from any sequence), for length scales."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        numbers_given = [float(value)]
    else:
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        if isinstance(value, str | bytes | bool | np.bool_) or array.ndim != 1 or array.size == 0:
            raise ParameterTypeError(
                f"{owner}: {name}={value!r:.80}; expected a number > 0, or one for each column"
            ) from None
        numbers_given = array.tolist()
    if not all(math.isfinite(v) and v > 0 for v in numbers_given):
        raise ParameterError(f"{owner}: {name}={value!r:.80}; expected finite numbers > 0")
    return numbers_given[0] if isinstance(value, numbers.Real) else tuple(numbers_given)
