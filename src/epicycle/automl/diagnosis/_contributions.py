"""Contributions of the columns to one prediction: Shapley values, by sampled orders.

The columns of a reference row are replaced by those of the row in question, one after the other in a random order; the
contribution of a column is the mean change of the prediction when it is its turn (Strumbelj and Kononenko 2014). They
add up to the difference between the prediction of the row and the mean prediction of the reference rows. Each order is
used forwards and backwards, which takes most of the noise out of what two columns do together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from epicycle.core._random import stream
from epicycle.stats._intervals import standard_error


@dataclass(frozen=True)
class Contributions:
    """Contributions of the columns to a prediction.

    Attributes
    ----------
    names : list of str
    values, errors : ndarray
        Contributions, and their standard errors.
    start : float
        The mean prediction of the reference rows; `start` and the values add up to `end`.
    end : float
        The prediction of the row.
    """

    names: list[str]
    values: np.ndarray
    errors: np.ndarray
    start: float
    end: float


def contributions(
    predict: Callable[[pa.Table], np.ndarray], row: pa.Table, reference: pa.Table, *, pairs: int = 16, seed: int = 0
) -> Contributions:
    """Contributions of the columns of one row, against the rows of a reference table.

    Parameters
    ----------
    predict : callable
        A number for each row of a table.
    row : pyarrow.Table
        One row.
    reference : pyarrow.Table
        Rows with the same columns; each pair of orders draws one.
    pairs : int, default=16
        Orders, each forwards and backwards: ``2 pairs (columns + 1)`` rows are predicted at once.
    seed : int, default=0

    Returns
    -------
    Contributions
    """
    names, p = list(row.column_names), row.num_columns
    rng = stream(seed, "contributions")
    first = [rng.permutation(p) for _ in range(pairs)]
    orders = np.array([order for one in first for order in (one, one[::-1])])
    chosen = np.repeat(rng.integers(0, reference.num_rows, pairs), 2)
    # Row k of an order has its first k columns from the row in question.
    place = np.empty_like(orders)
    np.put_along_axis(place, orders, np.arange(p)[None, :], axis=1)
    mixed = {}
    for j, name in enumerate(names):
        taken = np.arange(p + 1)[None, :] > place[:, j][:, None]
        both = pa.chunked_array([*row[name].chunks, *reference[name].cast(row[name].type).chunks])
        mixed[name] = both.take(pa.array(np.where(taken, 0, 1 + chosen[:, None]).ravel()))
    found = np.asarray(predict(pa.table(mixed)), dtype=np.float64).reshape(len(orders), p + 1)
    steps = np.empty((len(orders), p))
    np.put_along_axis(steps, orders, np.diff(found, axis=1), axis=1)
    # The two orders of a pair are not independent: their mean is one observation.
    of_pair = steps.reshape(pairs, 2, p).mean(axis=1)
    errors = np.array([float(standard_error(column)) for column in of_pair.T]) if pairs > 1 else np.full(p, np.nan)
    return Contributions(names, of_pair.mean(axis=0), errors, float(found[:, 0].mean()), float(found[0, -1]))
