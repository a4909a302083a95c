r"""Measures of the neighbours of rows that an embedding keeps.

With :math:`N_i` the k nearest rows of row i in the table, :math:`M_i` those in the embedding, and r(i, j), s(i, j) the
ranks of row j by distance from row i in the two, the sums

    sum_i sum_(j in M_i) max(0, r(i, j) - k)       sum_i sum_(j in N_i) max(0, s(i, j) - k)

count neighbours that the embedding has invented and lost. Ranks come from one pass over the distances of a row to all
others; nothing is sorted. A sum over some of the rows, drawn at random, is an unbiased estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from epicycle import _native
from epicycle.core._checks import count
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import Seed, stream
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.data._matrix import as_matrix
from epicycle.metrics._distances import Distances
from epicycle.spatial._metric import metric_by_name
from epicycle.spatial._metrics import is_precomputed
from epicycle.spatial._search import power_overflows

_BLOCK = 1 << 21  # distances that are held at a time
_EUCLIDEAN = metric_by_name("euclidean", 2)

_DOCS = {
    "X": "X : array-like or sparse matrix of shape (n_samples, n_features)\n"
    '    Rows; or their distances, for ``metric="precomputed"``.',
    "X_embedded": "X_embedded : array-like of shape (n_samples, n_components)\n    Their places in the embedding.",
    "n_neighbors": "n_neighbors : int, default={default}\n    k, less than half of the rows.",
    "metric": "metric : str or callable, default={default}\n"
    "    Distance of rows of X, as in :func:`pairwise_distances`; that of places is Euclid's.",
    "sample_size": "sample_size : int, optional\n"
    "    Number of rows drawn, whose neighbours among all rows are looked at; by default all rows.",
    "random_state": "random_state : int, Generator, RandomState or None, default={default}\n    Which rows are drawn.",
}
_criterion = in_catalogue("metrics", "E12", certificate="exact", docs=_DOCS)


@dataclass(frozen=True)
class Agreement:
    """Agreement of two sets of neighbourhoods, each between 0 and 1, and from how many rows."""

    trustworthiness: float
    continuity: float
    preservation: float
    n_neighbors: int
    n_rows: int


@_criterion
def trustworthiness(
    X: Any,
    X_embedded: Any,
    *,
    n_neighbors: int = 5,
    metric: Any = "euclidean",
    sample_size: int | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> float:
    r"""Degree to which the neighbours in an embedding are neighbours in the table: 1 where none is invented.

    .. math:: 1 - \frac{2}{n k (2n - 3k - 1)} \sum_i \sum_{j \in M_i} \max(0, r(i, j) - k)

    with :math:`M_i` the k nearest rows in the embedding, and r(i, j) the rank of row j by distance from row i in the
    table.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.metrics import trustworthiness
    >>> X = np.arange(10.0)[:, None]
    >>> trustworthiness(X, -X, n_neighbors=2), round(trustworthiness(X, np.sin(X), n_neighbors=2), 3)
    (1.0, 0.523)
    """
    return _compared(X, X_embedded, n_neighbors, metric, sample_size, random_state, n_jobs).trustworthiness


@_criterion
def continuity(
    X: Any,
    X_embedded: Any,
    *,
    n_neighbors: int = 5,
    metric: Any = "euclidean",
    sample_size: int | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> float:
    r"""Degree to which the neighbours in the table are neighbours in an embedding: 1 where none is lost.

    .. math:: 1 - \frac{2}{n k (2n - 3k - 1)} \sum_i \sum_{j \in N_i} \max(0, s(i, j) - k)

    with :math:`N_i` the k nearest rows in the table, and s(i, j) the rank of row j by distance from row i in the
    embedding: :func:`trustworthiness` with the two exchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.metrics import continuity
    >>> ring = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> X = np.column_stack([np.cos(ring), np.sin(ring)])
    >>> continuity(X, ring[:, None]) < 1  # the ring is cut open
    True
    """
    return _compared(X, X_embedded, n_neighbors, metric, sample_size, random_state, n_jobs).continuity


@_criterion
def neighborhood_preservation(
    X: Any,
    X_embedded: Any,
    *,
    n_neighbors: int = 5,
    metric: Any = "euclidean",
    sample_size: int | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> float:
    r"""The mean share of the k nearest rows that are the same in the table and in an embedding.

    .. math:: \frac{1}{n k} \sum_i |N_i \cap M_i|

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.metrics import neighborhood_preservation
    >>> X = np.arange(10.0)[:, None]
    >>> neighborhood_preservation(X, -X, n_neighbors=2)
    1.0
    """
    return _compared(X, X_embedded, n_neighbors, metric, sample_size, random_state, n_jobs).preservation


def _compared(
    X: Any, Z: Any, n_neighbors: Any, metric: Any, sample_size: Any, random_state: Seed, n_jobs: int | None
) -> Agreement:
    finite = not (isinstance(metric, str) and metric == "nan_euclidean")
    A, _ = as_matrix(X, estimator_name="X", check_finite=finite)
    B, _ = as_matrix(Z, estimator_name="X_embedded", accept_sparse=True)
    n, k = int(A.shape[0]), count("n_neighbors", n_neighbors, low=1)
    if B.shape[0] != n:
        raise DataError(f"X_embedded: has {B.shape[0]} rows and X has {n}; expected the same")
    if k >= n / 2:
        raise ParameterError(f"n_neighbors ({k}) should be less than n_samples / 2 ({n / 2})")
    if is_precomputed(metric):
        if A.shape[1] != n:
            raise DataError(f"X: has shape {A.shape}; metric='precomputed' expects the distances of all pairs of rows")
        given = np.asarray(A.toarray() if hasattr(A, "toarray") else A, dtype=np.float64)
        seen = given.__getitem__
    else:
        plain = isinstance(metric, str) and metric in ("euclidean", "l2")
        seen = euclidean_rows(A) if plain else Distances(A, A, metric, {}).block
    m = n if sample_size is None else min(count("sample_size", sample_size, low=1), n)
    drawn = rows_drawn(n, m, random_state)
    return agreement(seen, euclidean_rows(B), n, drawn, k, n_jobs)


def euclidean_rows(A: Any) -> Callable[[Any], np.ndarray]:
    """A function that gives Euclid's distances of rows of A to all of them, from differences."""
    if sp.issparse(A) or power_overflows(A, A, _EUCLIDEAN):
        return Distances(A, A, "euclidean", {}).block
    X = np.ascontiguousarray(A, dtype=np.float64)
    return lambda rows: cdist(X[rows], X)


def rows_drawn(n: int, m: int, random_state: Seed) -> np.ndarray:
    """The numbers of m of n rows, drawn without replacement, ascending."""
    if m >= n:
        return np.arange(n)
    return np.sort(stream(random_state, "neighborhoods").choice(n, size=m, replace=False))


def agreement(
    first: Callable[[Any], np.ndarray],
    second: Callable[[Any], np.ndarray],
    n: int,
    drawn: np.ndarray,
    k: int,
    n_jobs: int | None = None,
) -> Agreement:
    """The neighbourhoods of the rows that are drawn, by two functions that give distances of rows to all n."""
    step = max(1, min(len(drawn), _BLOCK // n))
    sums = np.zeros(3, dtype=np.int64)
    threads = n_threads(20.0 * n * step, n_jobs)
    for start in range(0, len(drawn), step):
        at = np.ascontiguousarray(drawn[start : start + step], dtype=np.int64)
        A, B = (np.ascontiguousarray(block(at), dtype=np.float64) for block in (first, second))
        sums += _native.manifold.compare_neighborhoods(A, B, at, k, threads).sum(axis=0)
    worst = len(drawn) * k * (2.0 * n - 3.0 * k - 1.0) / 2.0
    invented, lost, same = (float(s) for s in sums)
    return Agreement(1.0 - invented / worst, 1.0 - lost / worst, same / (len(drawn) * k), k, len(drawn))
