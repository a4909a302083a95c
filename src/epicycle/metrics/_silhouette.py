r"""Silhouettes of rows in their clusters.

With the mean distance :math:`a_i` of a row to the other rows of its cluster and the least mean distance :math:`b_i` to
those of another one, :math:`s_i = (b_i - a_i) / \max(a_i, b_i)`, and 0 for a row that is all of its cluster. Distances
are added up as they come: memory grows with the rows, never with their pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._checks import count
from epicycle.core._exceptions import DataError
from epicycle.core._random import Seed, stream
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.metrics._criterion import criterion
from epicycle.metrics._distances import Distances
from epicycle.metrics._labelled_rows import Rows, check_number_of_clusters, labelled_rows
from epicycle.spatial._metrics import is_precomputed
from epicycle.stats._intervals import standard_error, t_quantile

_BLOCK = 1 << 21  # distances that are held at a time, for each thread


@dataclass(frozen=True)
class SilhouetteEstimate:
    """The mean silhouette, estimated from some rows.

    score : mean silhouette of the rows that were drawn.
    standard_error : of the score, for rows drawn without replacement; 0 where all rows were taken.
    lower, upper : an interval that covers the mean over all rows with probability 0.95, for samples that are not tiny.
    sample_size : number of rows drawn.
    """

    score: float
    standard_error: float
    lower: float
    upper: float
    sample_size: int

    def __str__(self) -> str:
        return f"{self.score:.4g}, between {self.lower:.4g} and {self.upper:.4g} ({self.sample_size:,} rows drawn)"


@criterion(whole_weights=True, distances=True)
def silhouette_samples(
    X: Any, labels: Any, *, metric: Any = "euclidean", sample_weight: Any = None, n_jobs: int | None = None, **kwds: Any
) -> np.ndarray:
    r"""The silhouette of every row: near 1 well inside its cluster, near 0 between two, negative nearer to another.

    .. math:: s_i = \frac{b_i - a_i}{\max(a_i, b_i)}

    Returns
    -------
    array of shape (n_samples,)
        nan for a row of weight zero.

    Examples
    --------
    >>> from epicycle.metrics import silhouette_samples
    >>> silhouette_samples([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]).round(4).tolist()
    [0.7778, 0.7143, 0.7143, 0.7778]
    """
    rows = _rows(X, labels, sample_weight, metric)
    values = _silhouettes(rows, np.arange(len(rows.codes)), metric, kwds, n_jobs)
    if rows.kept is None:
        return values
    out = np.full(len(rows.kept), np.nan)
    out[rows.kept] = values
    return out


@criterion(whole_weights=True, distances=True)
def silhouette_score(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    sample_size: int | None = None,
    random_state: Seed = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    **kwds: Any,
) -> float:
    """The mean silhouette of all rows.

    Parameters
    ----------
    sample_size : int, optional
        Number of rows drawn, whose silhouettes among all rows are averaged; scikit-learn looks at the drawn rows alone,
        which biases the mean. :func:`silhouette_estimate` adds the error of it.

    Examples
    --------
    >>> from epicycle.metrics import silhouette_score
    >>> round(silhouette_score([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]), 4)
    0.746
    """
    rows = _rows(X, labels, sample_weight, metric)
    drawn, share = _draw(rows, sample_size, random_state)
    return float(_silhouettes(rows, drawn, metric, kwds, n_jobs) @ share)


@criterion(distances=True, certificate="interval")
def silhouette_estimate(
    X: Any,
    labels: Any,
    *,
    sample_size: int = 1000,
    metric: Any = "euclidean",
    random_state: Seed = None,
    n_jobs: int | None = None,
    **kwds: Any,
) -> SilhouetteEstimate:
    """The mean silhouette from a sample of the rows, with its error.

    Rows are drawn without replacement; the silhouette of each is exact, so that the mean is unbiased.

    Parameters
    ----------
    sample_size : int, default=1000
        Number of rows drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.metrics import silhouette_estimate, silhouette_score
    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(2000, 2)), np.full((10, 2), 9.0)])
    >>> labels = X[:, 0] > 4
    >>> found = silhouette_estimate(X, labels, sample_size=500, random_state=0)
    >>> bool(found.lower < silhouette_score(X, labels) < found.upper)
    True
    """
    rows = _rows(X, labels, None, metric)
    drawn, _ = _draw(rows, sample_size, random_state)
    values = _silhouettes(rows, drawn, metric, kwds, n_jobs)
    n, m = len(rows.codes), len(drawn)
    mean = float(values.mean())
    # sampling without replacement leaves the share 1 - m/n of the variance
    error = float(standard_error(values) * np.sqrt(1 - m / n)) if m > 1 else float("nan")
    reach = t_quantile(m) * error if m > 1 else float("nan")
    return SilhouetteEstimate(mean, error, max(mean - reach, -1.0), min(mean + reach, 1.0), m)


def _rows(X: Any, labels: Any, sample_weight: Any, metric: Any) -> Rows:
    if is_precomputed(metric):
        return _precomputed_rows(X, labels, sample_weight)
    rows = labelled_rows(X, labels, sample_weight, "silhouette", counts=True, sparse=True)
    check_number_of_clusters(rows.n_clusters, float(rows.weight.sum()))
    return rows


def _precomputed_rows(X: Any, labels: Any, sample_weight: Any) -> Rows:
    rows = labelled_rows(X, labels, sample_weight, "silhouette", counts=True, sparse=True)
    D = rows.X if rows.kept is None else rows.X[:, rows.kept]
    if D.shape[0] != D.shape[1]:
        raise DataError(f"X: has shape {D.shape}; metric='precomputed' expects the distances of all pairs of rows")
    given = np.asarray(X).dtype if not sp.issparse(X) else X.dtype
    tolerance = np.finfo(given).eps * 100 if given.kind == "f" else 0.0
    if (np.abs(D.diagonal()) > tolerance).any():
        raise DataError("X: The precomputed distance matrix contains non-zero elements on the diagonal.")
    check_number_of_clusters(rows.n_clusters, float(rows.weight.sum()))
    return Rows(D, rows.codes, rows.n_clusters, rows.weight, rows.kept)


def _draw(rows: Rows, sample_size: int | None, random_state: Seed) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows to look at, and their shares in the mean."""
    n = len(rows.codes)
    drawn = np.arange(n)
    if sample_size is not None and count("sample_size", sample_size, low=1) < n:
        drawn = np.sort(stream(random_state, "silhouette").choice(n, size=int(sample_size), replace=False))
    weight = rows.weight[drawn]
    return drawn, weight / weight.sum()


def _silhouettes(rows: Rows, drawn: np.ndarray, metric: Any, kwds: dict[str, Any], n_jobs: int | None) -> np.ndarray:
    plain = isinstance(metric, str) and metric in ("euclidean", "l2") and not kwds and not sp.issparse(rows.X)
    own, other = (_euclidean if plain else _in_blocks)(rows, drawn, metric, kwds, n_jobs)
    size = rows.cluster_weight[rows.codes[drawn]]
    a = own / np.maximum(size - 1, 1)
    s = np.zeros(len(drawn))
    np.divide(a, other, out=s, where=a < other)
    inside = np.where(a < other, 1 - s, 0.0)
    np.divide(other, a, out=s, where=a > other)
    return np.where(size > 1, np.where(a > other, s - 1, inside), 0.0)


def _euclidean(
    rows: Rows, drawn: np.ndarray, _metric: Any, _kwds: dict[str, Any], n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(rows.codes, kind="stable")
    where = np.empty(len(order), dtype=np.int64)
    where[order] = np.arange(len(order))
    X = np.ascontiguousarray(rows.X[order])
    # a common factor leaves silhouettes as they are: squares neither overflow nor vanish
    largest = float(np.abs(X).max(initial=0.0))
    if largest > 0.0 and not 1e-100 < largest < 1e100:
        X /= largest
    start = np.concatenate([[0], np.cumsum(np.bincount(rows.codes, minlength=rows.n_clusters))]).astype(np.int64)
    threads = n_threads(float(len(drawn)) * X.size, n_jobs)
    query = where[drawn]
    sorted_first = np.argsort(query)  # all rows in this order are computed by pairs
    found = _native.cluster.distances_to_clusters(X, rows.weight[order], start, query[sorted_first], threads)
    own, other = np.empty(len(drawn)), np.empty(len(drawn))
    own[sorted_first], other[sorted_first] = found
    return own, other


def _in_blocks(
    rows: Rows, drawn: np.ndarray, metric: Any, kwds: dict[str, Any], n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The same for any metric: blocks of distances times the indicator of the clusters."""
    n, k = len(rows.codes), rows.n_clusters
    indicator, size = rows.indicator, rows.cluster_weight
    distances = None if is_precomputed(metric) else Distances(rows.X, rows.X, metric, kwds)
    own, other = np.empty(len(drawn)), np.empty(len(drawn))

    def work(start: int) -> None:
        at = drawn[start : start + step]
        D = rows.X[at] if distances is None else distances.block(at)
        sums = D @ indicator
        sums = sums.toarray() if sp.issparse(sums) else np.asarray(sums)
        which = np.arange(len(at)), rows.codes[at]
        own[start : start + step] = sums[which]
        means = sums / size
        means[which] = np.inf
        other[start : start + step] = means.min(axis=1)

    step = max(1, min(1024, _BLOCK // (n + k)))
    threads = n_threads(float(len(drawn)) * n, n_jobs) if distances is None or distances.in_threads else 1
    in_order(range(0, len(drawn), step), work, None, threads)
    return own, other
