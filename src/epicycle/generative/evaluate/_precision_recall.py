r"""Precision, recall, density and coverage of drawn rows, by balls that reach to the k-th nearest row.

With B(x) the ball around a row x of a sample that reaches to its k-th nearest other row there,

    precision = share of the drawn rows that lie in the ball of some real row,
    recall    = share of the real rows that lie in the ball of some drawn row      (Kynkaanniemi and others 2019),
    density   = mean number of balls of real rows that a drawn row lies in, over k,
    coverage  = share of the balls of real rows that hold a drawn row              (Naeem and others 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epicycle.core._checks import count
from epicycle.core._exceptions import ParameterError
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.generative.evaluate._features import FEATURE_DOCS, feature_pair
from epicycle.spatial._metric import metric_by_name
from epicycle.spatial._search import (
    distance_block,
    nearest,
    tree_pays,
    within_radius,
    within_radius_by_tree,
    without_self,
)

EUCLIDEAN = metric_by_name("euclidean", 2)


@dataclass(frozen=True)
class PrecisionRecall:
    """Result of ``precision_recall``.

    Attributes
    ----------
    precision : float
        Share of the drawn rows that are where real ones are.
    recall : float
        Share of the real rows that are where drawn ones are.
    density : float
        How many real rows there are around a drawn one; 1 for rows of the same distribution.
    coverage : float
        Share of the real rows that have a drawn row among their nearest.
    expected_coverage : float
        Its mean for drawn rows of the distribution of the real ones.
    n_neighbors : int
    n_real, n_drawn : int
    """

    precision: float
    recall: float
    density: float
    coverage: float
    expected_coverage: float
    n_neighbors: int
    n_real: int
    n_drawn: int


@in_catalogue("generative", "F9", certificate="exact", docs=FEATURE_DOCS)
def precision_recall(
    real: Any, drawn: Any, *, n_neighbors: int = 3, features: Any = None, n_jobs: int | None = None
) -> PrecisionRecall:
    r"""Whether drawn rows lie where real ones do (precision), and whether they do so everywhere (recall).

    The place of a sample is the union of the balls around its rows that reach to their k-th nearest other row.
    Precision is the share of the drawn rows in the place of the real ones, recall that of the real rows in the place of
    the drawn ones. Density and coverage, which single outliers change less, count balls of real rows only.

    Returns
    -------
    PrecisionRecall

    References
    ----------
    T. Kynkäänniemi and others, Improved precision and recall metric for assessing generative models, 2019.
    M. F. Naeem and others, Reliable fidelity and diversity metrics for generative models, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.generative.evaluate import precision_recall
    >>> rng = np.random.default_rng(0)
    >>> real = rng.normal(size=(1000, 2))
    >>> good, half = rng.normal(size=(1000, 2)), np.abs(rng.normal(size=(1000, 2)))
    >>> precision_recall(real, good).recall > 0.9
    True
    >>> precision_recall(real, half).precision > 0.9, precision_recall(real, half).recall < 0.5
    (True, True)
    """
    X, Y, k = _checked(real, drawn, n_neighbors, features, "precision_recall")
    around_real, around_drawn = inside_balls(X, Y, k, n_jobs), inside_balls(Y, X, k, n_jobs)
    n, m = len(X), len(Y)
    return PrecisionRecall(
        precision=len(np.unique(np.concatenate(around_real))) / m,
        recall=len(np.unique(np.concatenate(around_drawn))) / n,
        density=sum(map(len, around_real)) / (k * m),
        coverage=_hit(around_real),
        expected_coverage=expected_coverage(n, m, k),
        n_neighbors=k,
        n_real=n,
        n_drawn=m,
    )


@in_catalogue("generative", "F9", certificate="exact", docs=FEATURE_DOCS)
def coverage(real: Any, drawn: Any, *, n_neighbors: int = 5, features: Any = None, n_jobs: int | None = None) -> float:
    r"""The share of the real rows that have a drawn row within the distance of their k-th nearest real row.

    For n real rows and m drawn ones of the same distribution, whatever that is, its mean is

    .. math:: 1 - \prod_{i=1}^{k} \frac{n - i}{n + m - i} ,

    about :math:`1 - 2^{-k}` for as many of both.

    Returns
    -------
    float

    References
    ----------
    M. F. Naeem and others, Reliable fidelity and diversity metrics for generative models, 2020.

    Examples
    --------
    >>> from epicycle.generative.evaluate import coverage
    >>> coverage([[0.0], [1.0], [5.0], [6.0]], [[0.2], [0.9]], n_neighbors=1)
    0.5
    """
    X, Y, k = _checked(real, drawn, n_neighbors, features, "coverage")
    return _hit(inside_balls(X, Y, k, n_jobs))


def _checked(
    real: Any, drawn: Any, n_neighbors: Any, features: Any, function: str
) -> tuple[np.ndarray, np.ndarray, int]:
    X, Y = feature_pair(real, drawn, features, function)
    k, least = count("n_neighbors", n_neighbors, low=1), min(len(X), len(Y))
    if k >= least:
        raise ParameterError(f"n_neighbors={k}; expected less than the number of rows, {least}")
    return X, Y, k


def inside_balls(X: np.ndarray, Q: np.ndarray, k: int, n_jobs: int | None) -> list[np.ndarray]:
    """For each row of X which rows of Q are at most as far from it as its k-th nearest other row in X."""
    reach = nearest_others(X, k, n_jobs)[:, -1]
    if tree_pays(Q, k, EUCLIDEAN, "auto"):
        return within_radius_by_tree(Q, X, reach, EUCLIDEAN, n_jobs)[1]
    return within_radius(partial(distance_block, EUCLIDEAN), Q, X, reach, n_jobs)[1]


def nearest_others(X: np.ndarray, k: int, n_jobs: int | None = None) -> np.ndarray:
    """Distances of each row from its k nearest other rows, of shape (n, k)."""
    return without_self(*nearest(X, X, k + 1, EUCLIDEAN, "auto", n_jobs))[0]


def expected_coverage(n: int, m: int, k: int) -> float:
    """Mean coverage of n real rows by m drawn ones of the same distribution: no ball has all of the first k places."""
    i = np.arange(1, k + 1)
    return float(1 - np.prod((n - i) / (n + m - i)))


def _hit(balls: list[np.ndarray]) -> float:
    return sum(len(inside) > 0 for inside in balls) / len(balls)
