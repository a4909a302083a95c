"""The table of two partitions: entry (i, j) is the number of rows in part i of one and part j of the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import ParameterError
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.data._target import as_weight
from epicycle.metrics._labelled_rows import Partition, as_partition, row_counts, same_length


@in_catalogue("metrics", "E17", certificate="exact")
def contingency_matrix(
    labels_true: Any,
    labels_pred: Any,
    *,
    eps: float | None = None,
    sparse: bool = False,
    dtype: Any = np.int64,
    sample_weight: Any = None,
) -> Any:
    """Number of rows that each class has in common with each cluster.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Classes; numbers or strings.
    labels_pred : array-like of shape (n_samples,)
        Clusters.
    eps : float, optional
        Added to every entry.
    sparse : bool, default=False
        Whether to return a CSR matrix: tables of many classes and clusters are mostly empty.
    dtype : type, default=int64
        Of the entries; float64 where weights are not whole numbers.

    Returns
    -------
    array or CSR matrix of shape (n_classes, n_clusters)

    Examples
    --------
    >>> from epicycle.metrics import contingency_matrix
    >>> contingency_matrix(["a", "a", "b"], [0, 1, 1]).tolist()
    [[1, 1], [0, 1]]
    """
    if eps is not None and sparse:
        raise ParameterError("eps: Cannot set 'eps' when sparse=True")
    first, second = partitions(labels_true, labels_pred)
    table = table_of(first, second, as_weight(sample_weight, len(first.codes)))
    if np.issubdtype(dtype, np.integer) and (table.data != np.floor(table.data)).any():
        dtype = np.float64
    table = table.astype(dtype)
    if sparse:
        return table
    return table.toarray() if eps is None else table.toarray() + eps


def partitions(labels_true: Any, labels_pred: Any) -> tuple[Partition, Partition]:
    """Two partitions of the same rows."""
    first, second = as_partition(labels_true, "labels_true"), as_partition(labels_pred, "labels_pred")
    same_length(len(first.codes), len(second.codes), "labels_true, labels_pred")
    return first, second


def table_of(first: Partition, second: Partition, weight: np.ndarray | None) -> sp.csr_array:
    """The table, in float64, without the labels that only rows of weight zero have."""
    values = np.ones(len(first.codes)) if weight is None else weight
    table = sp.csr_array((values, (first.codes, second.codes)), shape=(first.n_parts, second.n_parts))
    table.sum_duplicates()
    if weight is None or weight.all():
        return table
    table.eliminate_zeros()
    return sp.csr_array(table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0])


def counted_table(labels_true: Any, labels_pred: Any, sample_weight: Any, *, whole: bool = False) -> sp.csr_array:
    """The table of two labellings; `whole` asks for weights that are whole numbers."""
    first, second = partitions(labels_true, labels_pred)
    n = len(first.codes)
    if n == 0:
        return sp.csr_array((0, 0), dtype=np.float64)
    return table_of(first, second, (row_counts if whole else as_weight)(sample_weight, n))
