"""Sizes of the samples of bagging, and the order of the rows that they are drawn in."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import ParameterError
from epicycle.tree.forest._sampling import row_keys


def n_drawn(asked: float | None, n: int, weight: np.ndarray | None, *, bootstrap: bool) -> int | None:
    """Rows of a sample; None for as many as there are, repetitions by weights among them."""
    if asked is None:
        return None if bootstrap or weight is None else int(np.count_nonzero(weight))
    if isinstance(asked, numbers.Integral):
        size = int(asked)
    else:
        total, what = (
            (n, "the number of samples") if weight is None else (weight.sum(), "the total sum of sample weights")
        )
        size = max(int(asked * total), 1)
        if size < max(10, n ** (1 / 3)):  # too few to learn from: the weights are likely no counts
            warnings.warn(
                f"Using the fractional value max_samples={asked} when {what} is {total} results in a low number "
                f"({size}) of bootstrap samples. We recommend passing `max_samples` as an integer.",
                stacklevel=5,
            )
    if not bootstrap and size > n:
        raise ParameterError(
            f"Effective max_samples={size} must be <= n_samples={n} to be able to sample without replacement."
        )
    if not bootstrap and weight is not None and size > np.count_nonzero(weight):
        raise ParameterError(
            f"max_samples={size}: only {np.count_nonzero(weight)} rows have a positive weight to be drawn without "
            "replacement"
        )
    return size


def n_features_drawn(asked: float, p: int) -> int:
    """Number of features of a member."""
    size = int(asked) if isinstance(asked, numbers.Integral) else max(1, int(asked * p))
    if size > p:
        raise ParameterError(f"max_features must be <= n_features, got {size} of {p}")
    return size


def row_ranks(X: Any, y: np.ndarray) -> np.ndarray:
    """Ranks of the rows by a hash of their content, as bytes: samples then do not depend on the order of the rows."""
    n = len(y)
    if nw.dependencies.is_into_dataframe(X) or X.dtype.kind not in "biuf":  # no numbers: in the order of the rows
        return np.arange(n, dtype=np.uint32).view(np.uint8)
    ranks = np.empty(n, np.uint32)
    ranks[np.argsort(row_keys(X.tocsr() if sp.issparse(X) else X, y), kind="stable")] = np.arange(n, dtype=np.uint32)
    return ranks.view(np.uint8)
