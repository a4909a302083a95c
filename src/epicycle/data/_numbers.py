"""What counts as a number: never a string that looks like one, never an integer that float64 would round."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError

__all__ = ["exact_in_float64", "numbers_of_objects", "refuse_non_numbers"]

_EXACT = 2**53  # up to here every integer is a float64


def exact_in_float64(values: np.ndarray, name: str) -> None:
    """Raise DataError if an integer in `values` is not a float64."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return
    low, high = int(values.min()), int(values.max())
    if low < -_EXACT or high > _EXACT:
        raise DataError(
            f"{name}: holds integers up to {max(high, -low)}, beyond 2**53, which float64 cannot tell apart; "
            "is it an identifier? Drop, scale or encode it"
        )


def refuse_non_numbers(values: np.ndarray, name: str) -> None:
    """Raise for arrays whose type cannot mean numbers."""
    kind = values.dtype.kind
    if kind == "c":
        raise DataTypeError(f"Complex data not supported: {name} is {values.dtype}")
    if kind in "USVTMm":
        what = {"M": "dates", "m": "time differences", "V": "records"}.get(kind, "strings")
        raise DataTypeError(f"{name}: holds {what} ({values.dtype}); expected numbers (dtype='numeric')")


def numbers_of_objects(values: np.ndarray, name: str) -> np.ndarray:
    """An array of Python objects as float64, if all of them are real numbers; None and NA become NaN."""
    out = np.empty(values.shape, np.float64)
    flat = out.reshape(-1)
    for i, v in enumerate(values.reshape(-1).tolist()):
        flat[i] = _number(v, name)
    return out


def _number(v: Any, name: str) -> float:
    if isinstance(v, float):
        return v
    if v is None or type(v).__name__ in ("NAType", "NaTType"):
        return float("nan")
    if isinstance(v, complex | np.complexfloating):
        raise DataTypeError(f"Complex data not supported: {name} holds {v!r}")
    if isinstance(v, str | bytes):
        raise DataTypeError(f"{name}: could not convert string to float: {v!r}; expected numbers")
    if isinstance(v, numbers.Integral) and abs(int(v)) > _EXACT:
        raise DataError(f"{name}: holds the integer {v}, beyond 2**53, which float64 cannot represent exactly")
    if isinstance(v, list | tuple | np.ndarray):
        raise DataError(f"{name}: is ragged (setting an array element with a sequence): rows differ in length")
    try:
        return float(v)
    except (TypeError, ValueError, OverflowError):
        raise DataTypeError(
            f"{name}: holds {type(v).__name__} objects; the argument must be a string-free table of numbers, "
            "that is, float() argument must be a string or a real number"
        ) from None
