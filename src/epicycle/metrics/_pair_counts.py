r"""Agreement of two partitions by pairs of rows, of which each partition holds some together and some apart.

With the table :math:`n_{ij}` of the partitions, its row sums :math:`a_i` and column sums :math:`b_j`, the ordered pairs
that both hold together are :math:`\sum n_{ij}^2 - n`, those of one of them :math:`\sum a_i^2 - n` and
:math:`\sum b_j^2 - n`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.metrics._contingency_matrix import counted_table
from epicycle.metrics._criterion import criterion


@criterion(whole_weights=True)
def pair_confusion_matrix(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> np.ndarray:
    """Ordered pairs of rows that two partitions hold apart or together.

    Returns
    -------
    array of shape (2, 2)
        Row: apart or together in `labels_true`. Column: the same in `labels_pred`.

    Examples
    --------
    >>> from epicycle.metrics import pair_confusion_matrix
    >>> pair_confusion_matrix([0, 0, 1, 1], [0, 0, 1, 2]).tolist()
    [[8, 0], [2, 2]]
    """
    return np.array(_pairs(labels_true, labels_pred, sample_weight), dtype=np.int64).reshape(2, 2)


def _pairs(labels_true: Any, labels_pred: Any, sample_weight: Any) -> tuple[int, int, int, int]:
    """(apart in both, together in the second, together in the first, together in both), without overflow."""
    table = counted_table(labels_true, labels_pred, sample_weight, whole=True)
    n = int(table.sum())
    together = _squares(table.data)
    first, second = _squares(table.sum(axis=1)), _squares(table.sum(axis=0))
    return n * n - first - second + together, second - together, first - together, together - n


def _squares(counts: Any) -> int:
    values = np.asarray(counts).astype(np.int64)
    if values.size and int(values.max()) > 2**20:  # sums of squares may leave 64 bits
        return sum(int(v) ** 2 for v in values.tolist())
    return int((values**2).sum())


@criterion(whole_weights=True)
def rand_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """The share of pairs of rows on which two partitions agree.

    Examples
    --------
    >>> from epicycle.metrics import rand_score
    >>> round(rand_score([0, 0, 1, 2], [0, 0, 1, 1]), 4)
    0.8333
    """
    apart, only_second, only_first, together = _pairs(labels_true, labels_pred, sample_weight)
    if only_first == only_second == 0:  # also where there is no pair
        return 1.0
    return (apart + together) / (apart + only_second + only_first + together)


@criterion(whole_weights=True)
def adjusted_rand_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Agreement on pairs of rows beyond what chance would give: 1 for equal partitions, 0 on average by chance.

    .. math:: \frac{R - \mathrm{E} R}{\max R - \mathrm{E} R}

    for the number R of pairs that both hold together, with the expectation over partitions with parts of these sizes.

    Examples
    --------
    >>> from epicycle.metrics import adjusted_rand_score
    >>> adjusted_rand_score([0, 0, 1, 1], [1, 1, 0, 0]), adjusted_rand_score([0, 0, 1, 1], [0, 1, 0, 1])
    (1.0, -0.5)
    """
    apart, only_second, only_first, together = _pairs(labels_true, labels_pred, sample_weight)
    if only_first == only_second == 0:
        return 1.0
    excess = 2 * (together * apart - only_first * only_second)
    scale = (together + only_first) * (only_first + apart) + (together + only_second) * (only_second + apart)
    return excess / scale


@criterion(whole_weights=True)
def fowlkes_mallows_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Pairs together in both partitions, over the geometric mean of the pairs together in each.

    Examples
    --------
    >>> from epicycle.metrics import fowlkes_mallows_score
    >>> round(fowlkes_mallows_score([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]), 4)
    0.4714
    """
    _, only_second, only_first, together = _pairs(labels_true, labels_pred, sample_weight)
    if together == 0:
        return 0.0
    return float(np.sqrt(together / (together + only_first)) * np.sqrt(together / (together + only_second)))
