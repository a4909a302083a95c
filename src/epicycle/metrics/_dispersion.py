r"""Criteria of a clustering from its means: scatter within clusters, and how far they lie apart.

With clusters of weight :math:`n_c` and mean :math:`m_c`, :math:`W = \sum_i v_i \|x_i - m_{c(i)}\|^2` is the scatter
within and :math:`B = \sum_c n_c \|m_c - m\|^2` the scatter between clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, pdist

from epicycle.core._exceptions import DataError
from epicycle.metrics._criterion import criterion
from epicycle.metrics._labelled_rows import Rows, check_number_of_clusters, labelled_rows

_BLOCK = 1 << 20  # entries of temporary arrays


def _distances_to_means(rows: Rows, means: np.ndarray, *, squared: bool) -> np.ndarray:
    """Distance of every row from the mean of its cluster, from differences."""
    step = max(1, _BLOCK // max(1, means.shape[1]))
    parts = []
    for start in range(0, len(rows.codes), step):
        difference = rows.X[start : start + step] - means[rows.codes[start : start + step]]
        parts.append(np.einsum("ij,ij->i", difference, difference))
    squares = np.concatenate(parts)
    return squares if squared else np.sqrt(squares)


@criterion()
def sum_of_squared_errors(X: Any, labels: Any, *, sample_weight: Any = None) -> float:
    r"""The scatter within clusters: squared distances of the rows from the means of their clusters, added up.

    .. math:: \sum_i v_i \| x_i - m_{c(i)} \|^2

    K-means minimises it. It falls with the number of clusters.

    Examples
    --------
    >>> from epicycle.metrics import sum_of_squared_errors
    >>> sum_of_squared_errors([[0.0], [2.0], [10.0]], [0, 0, 1])
    2.0
    """
    rows = labelled_rows(X, labels, sample_weight, "sum_of_squared_errors")
    return _within(rows, rows.means())


@criterion()
def separation(X: Any, labels: Any, *, kind: str = "between", sample_weight: Any = None) -> float:
    r"""Distances between clusters.

    Parameters
    ----------
    kind : {"between", "centers", "rows"}, default="between"
        The scatter between clusters, :math:`\sum_c n_c \|m_c - m\|^2`, which adds up to the total sum of squares with
        :func:`sum_of_squared_errors`; the distance of the two nearest means; or that of the two nearest rows of
        different clusters.

    Examples
    --------
    >>> from epicycle.metrics import separation
    >>> X, labels = [[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]
    >>> separation(X, labels), separation(X, labels, kind="centers"), separation(X, labels, kind="rows")
    (100.0, 10.0, 8.0)
    """
    if kind not in ("between", "centers", "rows"):
        raise DataError(f"kind={kind!r}; expected 'between', 'centers' or 'rows'")
    rows = labelled_rows(X, labels, sample_weight, "separation")
    means = rows.means()
    if kind == "between":
        return _between(rows, means)
    if rows.n_clusters < 2:
        raise DataError(f"labels: one cluster has no other to be apart from; kind={kind!r} needs two")
    if kind == "centers":
        return float(pdist(means).min())
    order = np.argsort(rows.codes, kind="stable")
    X, ends = rows.X[order], np.cumsum(np.bincount(rows.codes))
    step = max(1, _BLOCK // len(X))
    least = np.inf
    for start, end in zip(ends - np.bincount(rows.codes), ends, strict=True):
        for at in range(start, end, step):
            if end < len(X):  # pairs with later clusters: each pair of clusters once
                least = min(least, float(cdist(X[at : min(at + step, end)], X[end:]).min()))
    return least


def _between(rows: Rows, means: np.ndarray) -> float:
    size = rows.cluster_weight
    with np.errstate(over="ignore", invalid="ignore"):
        center = size @ means / size.sum()
        return _finite(size @ ((means - center) ** 2).sum(axis=1))


def _within(rows: Rows, means: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite(rows.weight @ _distances_to_means(rows, means, squared=True))


def _finite(value: Any) -> float:
    if not np.isfinite(value):
        raise DataError("X, sample_weight: sums of weighted squares overflow; scale X or the weights down")
    return float(value)


@criterion()
def calinski_harabasz_score(X: Any, labels: Any, *, sample_weight: Any = None) -> float:
    r"""Scatter between clusters over scatter within, each for one degree of freedom; the larger, the better.

    .. math:: \frac{B / (k - 1)}{W / (n - k)}

    Examples
    --------
    >>> from epicycle.metrics import calinski_harabasz_score
    >>> calinski_harabasz_score([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    50.0
    """
    rows = labelled_rows(X, labels, sample_weight, "calinski_harabasz_score")
    k, n = rows.n_clusters, float(rows.weight.sum())
    check_number_of_clusters(k, n)
    means = rows.means()
    within = _within(rows, means)
    return 1.0 if within == 0.0 else (_between(rows, means) / (k - 1.0)) / (within / (n - k))


@criterion()
def davies_bouldin_score(X: Any, labels: Any, *, sample_weight: Any = None) -> float:
    r"""Size of clusters relative to their distance from the one they are most easily confused with.

    .. math:: \frac1k \sum_a \max_{b \ne a} \frac{s_a + s_b}{\|m_a - m_b\|}

    with the mean distance :math:`s_a` of the rows of a cluster from its mean; the smaller, the better.

    Examples
    --------
    >>> from epicycle.metrics import davies_bouldin_score
    >>> davies_bouldin_score([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    0.2
    """
    rows = labelled_rows(X, labels, sample_weight, "davies_bouldin_score")
    k = rows.n_clusters
    check_number_of_clusters(k, float(rows.weight.sum()))
    means = rows.means()
    spread = np.bincount(rows.codes, weights=rows.weight * _distances_to_means(rows, means, squared=False), minlength=k)
    spread = spread / rows.cluster_weight
    apart = cdist(means, means)
    if np.allclose(spread, 0.0) or np.allclose(apart, 0.0):
        return 0.0
    # Clusters with one mean have no distance that could be divided by: they are left out, as in scikit-learn.
    apart[apart == 0.0] = np.inf
    return float(((spread[:, None] + spread) / apart).max(axis=1).mean())
