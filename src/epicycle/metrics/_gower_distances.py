"""Gower's distance of rows of a mixed table: numbers by their difference over the range, categories by equality."""

from __future__ import annotations

import numbers
from typing import Any

import narwhals as nw
import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.data._categories import category_columns
from epicycle.data._frames import frame_columns, is_frame


@in_catalogue("metrics", "E17", certificate="exact")
def gower_distances(X: Any, Y: Any = None, *, categorical: Any = None, weights: Any = None) -> np.ndarray:
    r"""Gower's distances of the rows of a table with numbers, categories and gaps.

    .. math:: d(x, y) = \frac{\sum_j w_j \delta_j(x, y)}{\sum_j w_j}

    over the columns in which both rows have a value, where :math:`\delta_j` is :math:`|x_j - y_j|` over the range of
    column j in X and Y, or 0 and 1 for equal and different categories.

    Parameters
    ----------
    X : data frame or array-like of shape (n_samples, n_features)
        Columns of text, booleans or categories are categories; missing values are left out.
    Y : data frame or array-like of shape (m, n_features), optional
        By default X.
    categorical : list of column names or numbers, optional
        Columns that are categories although they hold numbers.
    weights : array-like of shape (n_features,), optional
        Weights of the columns.

    Returns
    -------
    array of shape (n_samples, m)
        nan where two rows have no column in common.

    Examples
    --------
    >>> import pandas as pd
    >>> from epicycle.metrics import gower_distances
    >>> people = pd.DataFrame({"age": [20, 40, None], "city": ["Paris", "Rome", "Rome"]})
    >>> gower_distances(people).tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    first = _columns(X)
    second = first if Y is None else _columns(Y)
    if len(second) != len(first):
        raise DataError(f"Y: has {len(second)} columns and X has {len(first)}; expected the same")
    factors = np.ones(len(first)) if weights is None else np.asarray(weights, dtype=np.float64)
    if factors.shape != (len(first),) or not np.isfinite(factors).all() or (factors < 0).any():
        raise ParameterError(f"weights: expected a finite number >= 0 for each of {len(first)} columns")
    named = set(category_columns(X, categorical))
    total = np.zeros((len(first[0]), len(second[0])))
    weight = np.zeros_like(total)
    for j, (a, b) in enumerate(zip(first, second, strict=True)):
        apart = _differences(a, b, category=j in named or _is_category(a) or _is_category(b))
        known = ~np.isnan(apart)
        total += np.where(known, factors[j] * apart, 0.0)
        weight += factors[j] * known
    return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)


def _columns(X: Any) -> list[np.ndarray]:
    """The columns of a frame or an array: numbers, booleans, or objects."""
    if is_frame(X):
        frame_columns(X)  # refuses names that are not unique
        frame = nw.from_native(X, eager_only=True)
        columns = [frame.get_column(name) for name in frame.columns]
        return [c.to_numpy() if c.dtype.is_numeric() else np.array(c.to_list(), dtype=object) for c in columns]
    values = np.asarray(X)
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"X: expected a table with rows and columns, got shape {values.shape}")
    return list(values.T)


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)


def _is_category(column: np.ndarray) -> bool:
    if column.dtype.kind in "iuf":
        return False
    known = [v for v in column.tolist() if not _is_missing(v)]
    return not all(isinstance(v, numbers.Real) and not isinstance(v, bool) for v in known)


def _differences(a: np.ndarray, b: np.ndarray, *, category: bool) -> np.ndarray:
    """Differences of the values of a column between 0 and 1, nan where one is missing."""
    if category:
        values = [*a.tolist(), *b.tolist()]
        code = {value: float(i) for i, value in enumerate(dict.fromkeys(v for v in values if not _is_missing(v)))}
        both = np.array([np.nan if _is_missing(v) else code[v] for v in values])
    else:
        both = np.array([np.nan if _is_missing(v) else v for v in [*a.tolist(), *b.tolist()]], dtype=np.float64)
    apart = np.abs(both[: len(a), None] - both[None, len(a) :])
    if category:
        return np.where(np.isnan(apart), np.nan, apart > 0)
    known = both[~np.isnan(both)]
    span = float(np.ptp(known)) if len(known) else 0.0
    return np.asarray(apart / span if span > 0 else apart)  # of a constant column: zero
