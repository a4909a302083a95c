"""Checks of numbers: real, exact in float64, finite.

A string that looks like a number is none, and an integer that float64 would round is refused. Finiteness is checked in
every X before any work, so the check costs no more than reading X once.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from epicycle._native.core import all_finite as _finite
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core._threads import helper_pool, n_threads

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


def numbers_of_objects(values: np.ndarray, name: str, advice: str = "") -> np.ndarray:
    """An array of Python objects as float64, if all of them are real numbers; None and NA become NaN.

    `advice` ends the message about strings.
    """
    out = np.empty(values.shape, np.float64)
    flat = out.reshape(-1)
    for i, v in enumerate(values.reshape(-1).tolist()):
        flat[i] = _number(v, name, advice)
    return out


def _number(v: Any, name: str, advice: str) -> float:
    if isinstance(v, float):  # first: nearly all of them
        return v
    if v is None or type(v).__name__ in ("NAType", "NaTType"):
        return float("nan")
    if isinstance(v, complex | np.complexfloating):
        raise DataTypeError(f"Complex data not supported: {name} holds {v!r}")
    if isinstance(v, str | bytes):
        raise DataTypeError(f"{name}: could not convert string to float: {v!r}; expected numbers{advice}")
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


_CHUNK = 1 << 21  # elements, 16 MiB of float64: what a thread checks before it looks at the next piece


def all_finite(x: np.ndarray) -> bool:
    """Whether no element of x (one- or two-dimensional, floating) is NaN or infinite."""
    if x.size == 0:
        return True
    if x.ndim == 1:
        x = x[None, :] if x.size <= _CHUNK else x[:, None]
    if x.size <= _CHUNK:
        return _finite(x)
    # Cut along the axis in which memory advances slowest, so that each piece is read in one sweep.
    rows = x if abs(x.strides[0]) >= abs(x.strides[1]) else x.T
    step = max(1, _CHUNK * rows.shape[0] // x.size)
    pieces = [rows[i : i + step] for i in range(0, rows.shape[0], step)]
    threads = n_threads(x.size)
    if threads == 1:
        return all(_finite(piece) for piece in pieces)
    shares = [pieces[i::threads] for i in range(threads)]
    helpers = [helper_pool().submit(_all_of, share) for share in shares[1:]]
    finite = _all_of(shares[0])
    for helper, share in zip(helpers, shares[1:], strict=True):
        # A helper that has not started by now (the pool may be busy) is done here instead.
        finite &= _all_of(share) if helper.cancel() else helper.result()
    return finite


def _all_of(pieces: list[np.ndarray]) -> bool:
    return all(_finite(piece) for piece in pieces)


def require_finite(
    x: np.ndarray,
    name: str,
    *,
    columns: tuple[str, ...] | None = None,
    estimator_name: str = "estimator",
    first_row: int = 0,
    unit: str = "row",
) -> None:
    """Raise DataError if an element of x is NaN or infinite, with the first such place."""
    if all_finite(x):
        return
    # Only now, on the way to an error, is a mask of the size of x made.
    bad = ~np.isfinite(x)
    row = int(bad.reshape(len(x), -1).any(axis=1).argmax())
    at = f"{unit} {first_row + row}"
    value = x[row]
    if x.ndim == 2:
        column = int(bad[row].argmax())
        label = repr(columns[column]) if columns else str(column)
        at, value = f"{at}, column {label}", x[row, column]
    nan = np.isnan(value)
    what = "NaN" if nan else f"infinity or a value too large for dtype('{x.dtype}')"
    advice = f"\n{estimator_name} neither fills in nor drops missing values: do so first (SimpleImputer, say)."
    raise DataError(f"Input {name} contains {what} (first at {at}).{advice if nan else ''}")
