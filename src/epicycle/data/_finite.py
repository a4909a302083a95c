"""Are all numbers finite? Asked of every X before any work, so it has to cost no more than reading X once."""

from __future__ import annotations

import numpy as np

from epicycle._native.core import all_finite as _finite
from epicycle.core._exceptions import DataError
from epicycle.core._threads import helper_pool, n_threads

__all__ = ["all_finite", "require_finite"]

_CHUNK = 1 << 21  # elements


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
