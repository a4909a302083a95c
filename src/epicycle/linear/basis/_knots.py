"""Where the knots of a spline lie: at quantiles, evenly spaced, or where the caller says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, Integer
from epicycle.data import Data
from epicycle.linear.basis._ranges import column_quantiles, column_ranges

__all__ = ["KNOTS", "place_knots"]

#: The domains of the arguments that :func:`place_knots` reads.
KNOTS: Mapping[str, Domain] = {
    "n_knots": Integer(minimum=1),
    "knots": AnyOf(Choice("quantile", "uniform"), ArrayLike()),
}


def place_knots(owner: str, data: Data, knots: Any, n_knots: int, n_jobs: int | None) -> list[np.ndarray]:
    """The knots of every column: ascending, distinct, and inside the range of the data unless they were given."""
    p = data.n_features
    if not isinstance(knots, str):
        return _given(owner, knots, p)
    shares = np.arange(1, n_knots + 1) / (n_knots + 1)
    low, high = column_ranges(data, n_jobs)
    if knots == "uniform":
        placed = [a + (b - a) * shares for a, b in zip(low, high, strict=True)]
    else:
        placed = column_quantiles(data, shares, n_jobs)
    # A knot at either end would bend nothing.
    return [np.unique(k[(k > a) & (k < b)]) for k, a, b in zip(placed, low, high, strict=True)]


def _given(owner: str, knots: Any, p: int) -> list[np.ndarray]:
    expected = f"expected 'quantile', 'uniform', distinct finite numbers, or such an array for each of {p} column(s)"
    nested = not isinstance(knots, np.ndarray) and len(knots) and all(np.ndim(row) == 1 for row in knots)
    if nested and len(knots) != p:
        raise ParameterError(f"{owner}: knots has {len(knots)} arrays; {expected}")
    try:
        rows = [np.asarray(row, dtype=np.float64) for row in (knots if nested else [knots] * p)]
    except (TypeError, ValueError):
        raise ParameterError(f"{owner}: knots={knots!r:.80}; {expected}") from None
    if any(row.ndim != 1 or not np.isfinite(row).all() or len(np.unique(row)) != len(row) for row in rows):
        raise ParameterError(f"{owner}: knots={knots!r:.80}; {expected}")
    return [np.sort(row) for row in rows]
