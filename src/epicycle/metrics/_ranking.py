"""Criteria of ranked lists of items, one list for each user, against the items that turned out to be relevant.

Lists and relevant items are given user by user. A user without relevant items has no criterion and is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from epicycle.core._checks import count
from epicycle.core._exceptions import DataError
from epicycle.core.estimator._catalogue import in_catalogue

_DOCS = {
    "recommended": "recommended : sequence of sequences\n    For every user the recommended items, the best first.",
    "relevant": "relevant : sequence of collections\n    For every user the items that are relevant.",
    "k": "k : int, default=10\n    Length of the lists that count; shorter lists count as if they ended in misses.",
}


def _mean(
    recommended: Sequence[Any], relevant: Sequence[Any], k: int, of_list: Callable[[list[Any], Any, int], float]
) -> float:
    """The mean of a criterion over the users that have relevant items."""
    k = count("k", k, low=1)
    if len(recommended) != len(relevant):
        raise DataError(f"recommended: {len(recommended)} lists for {len(relevant)} collections of relevant items")
    values: list[float] = []
    for row, wanted in zip(recommended, relevant, strict=True):
        row = list(row)
        if len(set(row)) < len(row):
            raise DataError(f"recommended: the list of user {len(values)} names an item twice")
        wanted = wanted if isinstance(wanted, Mapping) else set(wanted)
        if len(wanted):
            values.append(of_list(row[:k], wanted, k))
    if not values:
        raise DataError("relevant: no user has a relevant item")
    return float(np.mean(values))


@in_catalogue("metrics", "E15", certificate="exact", docs=_DOCS)
def precision_at_k(recommended: Sequence[Any], relevant: Sequence[Collection[Any]], k: int = 10) -> float:
    """The share of the k recommended items that are relevant, mean over users.

    Examples
    --------
    >>> from epicycle.metrics import precision_at_k
    >>> precision_at_k([["a", "b", "c", "d"]], [{"a", "d", "e"}], k=4)
    0.5
    """
    return _mean(recommended, relevant, k, lambda row, wanted, k: sum(i in wanted for i in row) / k)


@in_catalogue("metrics", "E15", certificate="exact", docs=_DOCS)
def recall_at_k(recommended: Sequence[Any], relevant: Sequence[Collection[Any]], k: int = 10) -> float:
    """The share of the relevant items that are among the k recommended ones, mean over users.

    Examples
    --------
    >>> from epicycle.metrics import recall_at_k
    >>> recall_at_k([["a", "b", "c", "d"]], [{"a", "d", "e", "f"}], k=4)
    0.5
    """
    return _mean(recommended, relevant, k, lambda row, wanted, _k: sum(i in wanted for i in row) / len(wanted))


@in_catalogue("metrics", "E15", certificate="exact", docs=_DOCS)
def mean_average_precision_at_k(recommended: Sequence[Any], relevant: Sequence[Collection[Any]], k: int = 10) -> float:
    r"""MAP@k: the precision at each relevant place of the list, added up and divided by the most that are possible.

    .. math:: \frac{1}{\min(k, |R|)} \sum_{j \le k} [i_j \in R] \, \frac{1}{j} \sum_{l \le j} [i_l \in R]

    mean over users.

    Examples
    --------
    >>> from epicycle.metrics import mean_average_precision_at_k
    >>> mean_average_precision_at_k([["a", "b", "c", "d"]], [{"a", "d"}], k=4)
    0.75
    """
    return _mean(recommended, relevant, k, _average_precision)


def _average_precision(row: list[Any], wanted: Any, k: int) -> float:
    hits, total = 0, 0.0
    for place, item in enumerate(row, start=1):
        if item in wanted:
            hits += 1
            total += hits / place
    return total / min(k, len(wanted))


@in_catalogue("metrics", "E15", certificate="exact", docs=_DOCS)
def ndcg_at_k(recommended: Sequence[Any], relevant: Sequence[Any], k: int = 10) -> float:
    r"""NDCG@k: gains discounted by their place, relative to the best list that is possible.

    .. math:: \sum_{j \le k} \frac{g(i_j)}{\log_2 (j + 1)} \Big/ \sum_{j \le k} \frac{g^*_j}{\log_2 (j + 1)}

    with :math:`g^*` the gains in falling order; mean over users.

    Parameters
    ----------
    relevant : sequence of collections or mappings
        For every user the relevant items, with gain 1, or a mapping from items to gains that are not negative.

    Examples
    --------
    >>> from epicycle.metrics import ndcg_at_k
    >>> round(ndcg_at_k([["a", "b", "c"]], [{"a": 3.0, "c": 1.0}], k=3), 4)
    0.9639
    """
    return _mean(recommended, relevant, k, _normalised_gain)


def _normalised_gain(row: list[Any], wanted: Any, k: int) -> float:
    gains = wanted if isinstance(wanted, Mapping) else dict.fromkeys(wanted, 1.0)
    if min(gains.values()) < 0:
        raise DataError(f"relevant: a gain of {min(gains.values()):g}; expected none below 0")
    best = sum(g / math.log2(place + 2) for place, g in enumerate(sorted(gains.values(), reverse=True)[:k]))
    found = sum(gains.get(item, 0.0) / math.log2(place + 2) for place, item in enumerate(row))
    return found / best if best > 0 else 0.0


@in_catalogue("metrics", "E15", certificate="exact")
def catalogue_coverage(recommended: Sequence[Any], n_items: int, k: int = 10) -> float:
    """The share of all items that are among the k best of at least one user.

    Parameters
    ----------
    recommended : sequence of sequences
        For every user the recommended items, the best first.
    n_items : int
        Number of items that could have been recommended.
    k : int, default=10
        Length of the lists that count.

    Examples
    --------
    >>> from epicycle.metrics import catalogue_coverage
    >>> catalogue_coverage([["a", "b"], ["b", "c"]], n_items=6, k=2)
    0.5
    """
    n_items, k = count("n_items", n_items, low=1), count("k", k, low=1)
    shown = {item for row in recommended for item in list(row)[:k]}
    if len(shown) > n_items:
        raise DataError(f"n_items={n_items}: {len(shown)} different items are recommended")
    return len(shown) / n_items
