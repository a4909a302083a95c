"""Columns of numbers that are not whole, cut into bins that serve as categories."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from epicycle.data._frames import is_frame

#: Upper ends of the bins of a column, by its number; the last is the largest value that was seen.
Bins = dict[int, np.ndarray]


def learn_bins(X: Any, weight: Any, n_bins: int) -> Bins:
    """Bins of equal weight for the columns of X that hold numbers with fractions.

    An end is the least value up to which a share k / n_bins of the weight lies, so that rows that are repeated and
    rows that are weighted have the same bins.
    """
    bins: Bins = {}
    for j, values in _float_columns(X):
        counts = _counts(weight, len(values))
        used = np.isfinite(values) & (counts > 0)
        if np.isinf(values).any() or not (values[used] != np.round(values[used])).any():
            continue
        order = np.argsort(values[used], kind="stable")
        ordered, upto = values[used][order], np.cumsum(counts[used][order] / counts.max())
        # How many of the shares each row has reached, in memory of the size of the rows for any number of bins; one
        # that the sum reaches but for rounding is reached.
        reached = np.floor(upto / upto[-1] * n_bins / (1 - 1e-12))
        bins[j] = np.unique(ordered[np.diff(reached, prepend=0.0) > 0])
    return bins


def cut(X: Any, bins: Bins) -> Any:
    """X with the numbers of binned columns replaced by the upper end of their bin."""
    if not bins or not (is_frame(X) or isinstance(X, np.ndarray)):
        return X
    if isinstance(X, np.ndarray):
        out = X.copy()
        if X.ndim == 2 and X.shape[1] > max(bins) and X.dtype.kind == "f":
            for j, ends in bins.items():
                out[:, j] = _ends_of(X[:, j], ends)
        return out
    frame = nw.from_native(X, eager_only=True)
    names = frame.columns
    changed = []
    for j, ends in bins.items():
        if j < len(names) and frame.schema[names[j]].is_numeric():
            values = frame[names[j]].to_numpy().astype(np.float64)
            changed.append(nw.new_series(names[j], _ends_of(values, ends), nw.Float64, backend=frame.implementation))
    return frame.with_columns(*changed).to_native() if changed else X


def _ends_of(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    place = np.minimum(np.searchsorted(ends, values), len(ends) - 1)
    return np.where(np.isnan(values), values, ends[place])


def _float_columns(X: Any) -> list[tuple[int, np.ndarray]]:
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        floats = [(j, name) for j, name in enumerate(frame.columns) if frame.schema[name].is_float()]
        return [(j, frame[name].to_numpy().astype(np.float64)) for j, name in floats]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        return [(j, X[:, j].astype(np.float64)) for j in range(X.shape[1])]
    return []


def _counts(weight: Any, n: int) -> np.ndarray:
    """Weights of rows, or ones where they are not given or will be refused."""
    try:
        given = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        return np.ones(n)
    fits = given.shape == (n,) and np.isfinite(given).all() and (given >= 0).all() and given.any()
    return given if fits else np.ones(n)
