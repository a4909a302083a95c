r"""Agreement of two partitions by what one tells of the other, in nats.

With shares :math:`p_{ij}` of the rows in part i of one and part j of the other,
:math:`I = \sum p_{ij} \log p_{ij} / (p_i p_j)` and :math:`H = -\sum p_i \log p_i`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from epicycle import _native
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, Real, check_parameter
from epicycle.metrics._contingency_matrix import counted_table
from epicycle.metrics._criterion import criterion
from epicycle.metrics._labelled_rows import MOST_ROWS

_AVERAGES = {
    "min": min,
    "geometric": lambda a, b: float(np.sqrt(a * b)),
    "arithmetic": lambda a, b: (a + b) / 2,
    "max": max,
}


def _entropy(counts: np.ndarray) -> float:
    p = np.asarray(counts, dtype=np.float64) / counts.sum()
    return float(-xlogy(p, p).sum()) + 0.0


def _entropies(table: sp.csr_array) -> tuple[float, float]:
    return _entropy(table.sum(axis=1)), _entropy(table.sum(axis=0))


def _information(table: sp.csr_array) -> float:
    entries = table.tocoo()
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    total = rows.sum()
    share = entries.data / total
    seen = share > 0  # one that underflows beside the others says nothing
    # A part that holds all rows gives a ratio of exactly 1, and no product of weights overflows.
    ratio = (entries.data / rows[entries.coords[0]])[seen] / (columns[entries.coords[1]][seen] / total)
    return max(float(xlogy(share[seen], ratio).sum()), 0.0)


def _is_one_to_one(table: sp.csr_array) -> bool:
    """Whether the partitions are equal but for names."""
    return bool(table.nnz == table.shape[0] == table.shape[1])


@criterion()
def mutual_info_score(
    labels_true: Any, labels_pred: Any, *, contingency: Any = None, sample_weight: Any = None
) -> float:
    """Mutual information of two partitions.

    Parameters
    ----------
    contingency : array or sparse matrix of shape (n_classes, n_clusters), optional
        Their table, where it is known; the labels are not looked at then.

    Examples
    --------
    >>> from epicycle.metrics import mutual_info_score
    >>> round(mutual_info_score([0, 0, 1, 1], [0, 0, 1, 1]), 4)  # log 2
    0.6931
    """
    given = contingency is not None
    table = _given_table(contingency) if given else counted_table(labels_true, labels_pred, sample_weight)
    return _information(table) if table.nnz else 0.0


def _given_table(contingency: Any) -> sp.csr_array:
    table = sp.csr_array(contingency, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table.data).all() or (table.data < 0).any():
        raise DataError("contingency: expected a table of finite numbers >= 0")
    table = table.copy()
    table.eliminate_zeros()
    return table


@criterion()
def expected_mutual_information(contingency: Any, n_samples: int | None = None) -> float:
    """Mutual information to be expected by chance of two partitions with parts of these sizes.

    Entries of the table have hypergeometric distributions then; their sum is exact up to rounding, at a cost that grows
    with the square root of the sizes of the parts.

    Parameters
    ----------
    contingency : array or sparse matrix of shape (n_classes, n_clusters)
    n_samples : int, optional
        Sum of the table; it is computed where it is not given.

    Examples
    --------
    >>> from epicycle.metrics import expected_mutual_information
    >>> round(expected_mutual_information([[1, 1], [1, 1]]), 4)  # log 2 with probability 1/3
    0.231
    """
    table = _given_table(contingency)
    total = float(table.sum())
    if n_samples is not None and n_samples != total:
        raise ParameterError(f"n_samples={n_samples!r}; expected the sum of the table, {total:g}")
    sizes = []
    for axis in (1, 0):
        found = np.asarray(table.sum(axis=axis))
        sizes.append(np.unique(found[found > 0], return_counts=True))
    if any((values != np.floor(values)).any() for values, _ in sizes) or total > MOST_ROWS:
        raise DataError(f"contingency: expected whole numbers, of a sum up to {MOST_ROWS:g}, since rows are counted")
    (a, a_times), (b, b_times) = sizes
    return float(_native.cluster.expected_information(a, a_times.astype(float), b, b_times.astype(float), total))


@criterion(whole_weights=True)
def adjusted_mutual_info_score(
    labels_true: Any, labels_pred: Any, *, average_method: str = "arithmetic", sample_weight: Any = None
) -> float:
    r"""Mutual information beyond what chance would give: 1 for equal partitions, 0 on average by chance.

    .. math:: \frac{I - \mathrm{E} I}{\mathrm{mean}(H_1, H_2) - \mathrm{E} I}

    Examples
    --------
    >>> from epicycle.metrics import adjusted_mutual_info_score
    >>> adjusted_mutual_info_score([0, 0, 1, 1], [1, 1, 0, 0]), adjusted_mutual_info_score([0, 0, 0, 0], [0, 1, 2, 3])
    (1.0, 0.0)
    """
    average = _average(average_method)
    table = counted_table(labels_true, labels_pred, sample_weight, whole=True)
    if _is_one_to_one(table):
        return 1.0
    if 1 in table.shape:
        return 0.0
    expected = expected_mutual_information(table)
    scale = average(*_entropies(table)) - expected
    excess = _information(table) - expected
    # No partition with parts of these sizes does better than chance: there is nothing to be gained.
    return float(excess / scale) if abs(scale) > 1e-14 * max(1.0, expected) else 0.0


@criterion()
def normalized_mutual_info_score(
    labels_true: Any, labels_pred: Any, *, average_method: str = "arithmetic", sample_weight: Any = None
) -> float:
    """Mutual information over a mean of the two entropies; not adjusted for chance.

    Examples
    --------
    >>> from epicycle.metrics import normalized_mutual_info_score
    >>> normalized_mutual_info_score([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    average = _average(average_method)
    table = counted_table(labels_true, labels_pred, sample_weight)
    if _is_one_to_one(table):
        return 1.0
    information = _information(table)
    return 0.0 if information == 0 else min(information / average(*_entropies(table)), 1.0)


def _average(method: str) -> Any:
    check_parameter("mutual information", "average_method", method, Choice(*_AVERAGES))
    return _AVERAGES[method]


@criterion()
def homogeneity_completeness_v_measure(
    labels_true: Any, labels_pred: Any, *, beta: float = 1.0, sample_weight: Any = None
) -> tuple[float, float, float]:
    r"""Homogeneity, completeness and their weighted harmonic mean.

    .. math:: h = I / H_{\text{true}}, \qquad c = I / H_{\text{pred}}, \qquad v = (1 + \beta) h c / (\beta h + c)

    Returns
    -------
    homogeneity, completeness, v_measure : float
        1 where no cluster holds rows of two classes, where no class lies in two clusters, and where both hold.

    Examples
    --------
    >>> from epicycle.metrics import homogeneity_completeness_v_measure
    >>> [round(v, 4) for v in homogeneity_completeness_v_measure([0, 0, 1, 1], [0, 0, 1, 2])]
    [1.0, 0.6667, 0.8]
    """
    check_parameter("v_measure", "beta", beta, Real(minimum=0))
    table = counted_table(labels_true, labels_pred, sample_weight)
    if not table.nnz:
        return 1.0, 1.0, 1.0
    information = _information(table)
    homogeneity, completeness = (min(information / h, 1.0) if h else 1.0 for h in _entropies(table))
    if homogeneity + completeness == 0.0:
        return 0.0, 0.0, 0.0
    # In this form no product with a large beta overflows.
    below = homogeneity * (beta / (1 + beta)) + completeness / (1 + beta)
    return homogeneity, completeness, homogeneity * (completeness / below) if below > 0 else 0.0


@criterion()
def homogeneity_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """1 where every cluster holds rows of one class alone, 0 where the clusters tell nothing of the classes."""
    return homogeneity_completeness_v_measure(labels_true, labels_pred, sample_weight=sample_weight)[0]


@criterion()
def completeness_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """1 where every class lies in one cluster alone, 0 where the classes tell nothing of the clusters."""
    return homogeneity_completeness_v_measure(labels_true, labels_pred, sample_weight=sample_weight)[1]


@criterion()
def v_measure_score(labels_true: Any, labels_pred: Any, *, beta: float = 1.0, sample_weight: Any = None) -> float:
    """The weighted harmonic mean of homogeneity and completeness."""
    return homogeneity_completeness_v_measure(labels_true, labels_pred, beta=beta, sample_weight=sample_weight)[2]
