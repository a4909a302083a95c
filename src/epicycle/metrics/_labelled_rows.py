"""Input of all criteria: labels as codes, weights, and the rows in the order of their clusters."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, EpicycleWarning
from epicycle.data._matrix import as_matrix
from epicycle.data._target import as_weight


@dataclass(frozen=True)
class Partition:
    """The part of every row as a number below `n_parts`."""

    codes: np.ndarray
    n_parts: int


def as_partition(labels: Any, name: str) -> Partition:
    """Labels of any kind that can be compared."""
    values = np.asarray(labels)
    if values.ndim != 1:
        raise DataError(f"{name} must be 1D: shape is {values.shape}")
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            what = "NaN" if np.isnan(values).any() else "infinity"
            raise DataError(f"{name} contains {what}: every row needs a label")
        if (values != np.floor(values)).any():
            warnings.warn(
                f"{name}: Clustering metrics expects discrete values but received continuous values; every distinct "
                "number counts as a label",
                EpicycleWarning,
                stacklevel=4,
            )
    try:
        found, codes = np.unique(values, return_inverse=True)
    except TypeError:
        raise DataError(f"{name}: its values cannot be compared with each other; expected labels of one kind") from None
    return Partition(codes.astype(np.int64), len(found))


def same_length(first: int, second: int, names: str) -> None:
    if first != second:
        raise DataError(f"{names}: Found input variables with inconsistent numbers of samples: [{first}, {second}]")


#: Rows that can be counted one by one in float64.
MOST_ROWS = 2.0**53


def row_counts(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights that count rows: whole numbers, since pairs of rows are counted too."""
    weight = as_weight(sample_weight, n_rows)
    if weight is None:
        return None
    if (weight != np.floor(weight)).any():
        part = weight[weight != np.floor(weight)][0]
        raise DataError(
            f"sample_weight: {part:g} is no whole number; expected how often each row occurs, because pairs of rows "
            "are counted"
        )
    if weight.sum() > MOST_ROWS:
        raise DataError(f"sample_weight: they add up to {weight.sum():.3g}; expected at most {MOST_ROWS:g} rows")
    return weight


@dataclass(frozen=True)
class Rows:
    """Rows of positive weight with their clusters."""

    X: Any
    codes: np.ndarray
    n_clusters: int
    weight: np.ndarray
    kept: np.ndarray | None  # which of the rows given have a weight

    @property
    def cluster_weight(self) -> np.ndarray:
        return np.bincount(self.codes, weights=self.weight, minlength=self.n_clusters)

    @property
    def indicator(self) -> sp.csr_array:
        """Weight of every row, in the column of its cluster."""
        at = np.arange(len(self.codes) + 1)
        return sp.csr_array((self.weight, self.codes, at), shape=(len(self.codes), self.n_clusters))

    def means(self) -> np.ndarray:
        """The mean of every cluster."""
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self.indicator.T @ self.X
            means = np.asarray((sums.toarray() if sp.issparse(sums) else sums) / self.cluster_weight[:, None])
        if not np.isfinite(means).all():
            raise DataError("X, sample_weight: weighted sums overflow; scale X or the weights down")
        return means


def labelled_rows(
    X: Any, labels: Any, sample_weight: Any, name: str, *, counts: bool = False, sparse: bool = False
) -> Rows:
    """Rows in float64 with their labels; a row of weight zero is left out, and its label with it."""
    matrix, _ = as_matrix(X, estimator_name=name, accept_sparse=sparse)
    matrix = matrix.astype(np.float64, copy=False)
    n = int(matrix.shape[0])
    part = as_partition(labels, "labels")
    same_length(n, len(part.codes), "X, labels")
    weight = row_counts(sample_weight, n) if counts else as_weight(sample_weight, n)
    if weight is None or weight.all():
        return Rows(matrix, part.codes, part.n_parts, np.ones(n) if weight is None else weight, None)
    kept = weight > 0
    again = as_partition(part.codes[kept], "labels")
    return Rows(matrix[kept], again.codes, again.n_parts, weight[kept], kept)


def check_number_of_clusters(n_clusters: int, n_rows: float) -> None:
    if not 1 < n_clusters < n_rows:
        raise DataError(
            f"labels: Number of labels is {n_clusters}. Valid values are 2 to n_samples - 1 (inclusive), here "
            f"n_samples = {n_rows:g}"
        )
