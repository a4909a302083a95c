"""Distances of rows by name: all pairs, or a block of them at a time.

What `spatial` computes natively or in blocks is taken from there; Mahalanobis' distance is Euclid's of whitened rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.data._matrix import as_matrix
from epicycle.engine._ordered import in_order
from epicycle.metrics._geodesic_distances import geodesic_distances
from epicycle.metrics._gower_distances import gower_distances
from epicycle.spatial._metrics import NAMES, MetricInUse, is_precomputed, resolve, takes_sparse
from epicycle.spatial._search import distance_block

#: Distances held at a time by one thread.
_BLOCK = 1 << 20


class Distances:
    """Distances of the rows of X from those of Y, a block of rows at a time."""

    def __init__(self, X: Any, Y: Any, metric: Any, options: dict[str, Any]) -> None:
        if isinstance(metric, str) and metric not in NAMES:
            raise ParameterError(f"metric={metric!r}; expected one of {', '.join(sorted({*NAMES, *_MADE_HERE}))}")
        if isinstance(metric, str) and metric == "mahalanobis":
            X, Y = _whitened(X, Y, dict(options))
            metric, options = "euclidean", {}
        elif isinstance(metric, str) and metric == "seuclidean" and "V" not in options:
            if sp.issparse(X) or sp.issparse(Y):
                raise DataTypeError("X is sparse, for which metric='seuclidean' is not defined here; pass X.toarray()")
            both = X if Y is X else np.concatenate([X, Y])
            V = np.var(both, axis=0, ddof=1) if len(both) > 1 else np.zeros(both.shape[1])
            options = {**options, "V": np.where(V > 0, V, 1.0)}  # all differences of a constant column are zero
        options = dict(options)
        power = options.pop("p", 2) if isinstance(metric, str) else 2
        self.metric: MetricInUse = resolve(power, metric, options)
        if (sp.issparse(X) or sp.issparse(Y)) and not takes_sparse(self.metric):
            raise DataTypeError(f"X is sparse, for which metric={metric!r} is not defined here; pass X.toarray()")
        same = Y is X
        self.X = self.metric.scaled(X)
        self.Y = self.X if same else self.metric.scaled(Y)

    @property
    def in_threads(self) -> bool:
        """Whether blocks may be computed at once."""
        return self.metric.blocks is None or self.metric.blocks.in_threads

    def block(self, rows: Any) -> np.ndarray:
        """Distances of these rows of X from all of Y."""
        Q, Y = self.X[rows], self.Y
        if self.metric.native is None:
            assert self.metric.blocks is not None
            return self.metric.blocks.block(Q, Y)
        if sp.issparse(Q) != sp.issparse(Y):
            Q, Y = (A if sp.issparse(A) else sp.csr_array(A) for A in (Q, Y))
        return distance_block(self.metric.native, Q, Y)


def _whitened(X: Any, Y: Any, options: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Rows L'x with L L' the inverse covariance: Euclid's distances of these are Mahalanobis' of the rows."""
    if sp.issparse(X) or sp.issparse(Y):
        raise DataTypeError("X is sparse, for which metric='mahalanobis' is not defined here; pass X.toarray()")
    given, variance = options.pop("VI", None), options.pop("V", None)
    if options:
        raise ParameterError(f"metric='mahalanobis' has no parameter {next(iter(options))!r}; expected VI or V")
    p = X.shape[1]
    if given is None:
        if variance is None:
            both = X if Y is X else np.concatenate([X, Y])
            variance = np.cov(both, rowvar=False, ddof=1) if len(both) > 1 else np.zeros((p, p))
        C = np.atleast_2d(np.asarray(variance, dtype=np.float64))
        _check_square(C, p, "V")
        factor = _cholesky(C)
        white = [scipy.linalg.solve_triangular(factor, A.T, lower=True).T for A in ((X,) if Y is X else (X, Y))]
    else:
        precision = np.atleast_2d(np.asarray(given, dtype=np.float64))
        _check_square(precision, p, "VI")
        values, vectors = np.linalg.eigh((precision + precision.T) / 2)
        if values.min() < -1e-10 * max(values.max(), 0.0):
            raise ParameterError("VI: has a negative eigenvalue; expected the inverse of a covariance matrix")
        white = [A @ (vectors * np.sqrt(values.clip(min=0))) for A in ((X,) if Y is X else (X, Y))]
    return white[0], white[-1]


def _cholesky(C: np.ndarray) -> np.ndarray:
    """The factor of a covariance matrix, refused where rounding is all that is left of a column after the others."""
    try:
        factor: np.ndarray = scipy.linalg.cholesky(C, lower=True)
    except scipy.linalg.LinAlgError:
        factor = np.zeros_like(C)
    if (np.diagonal(factor) ** 2 <= 1e-13 * np.diagonal(C)).any():
        raise DataError(
            f"metric='mahalanobis': the covariance of the {len(C)} columns is singular (constant or dependent columns, "
            "or too few rows); give VI, or leave columns out"
        )
    return factor


def _check_square(matrix: np.ndarray, p: int, name: str) -> None:
    if matrix.shape != (p, p) or not np.isfinite(matrix).all():
        raise ParameterError(f"{name} has shape {matrix.shape}; expected a finite ({p}, {p}) matrix")


#: Distances between rows of tables and along graphs, which have arguments of their own.
_MADE_HERE = {"gower": gower_distances, "geodesic": geodesic_distances}


@in_catalogue("metrics", "E17", certificate="exact")
def pairwise_distances(
    X: Any, Y: Any = None, metric: Any = "euclidean", *, n_jobs: int | None = None, **kwds: Any
) -> Any:
    """The distances of all rows of X from all rows of Y.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        For ``metric="precomputed"`` the distances themselves, which are checked and returned.
    Y : array-like, sparse matrix or data frame of shape (m, n_features), optional
        By default X.
    metric : str or callable, default="euclidean"
        "euclidean", "manhattan", "chebyshev", "minkowski" (with `p`), "cosine", "mahalanobis" (with `V` or its inverse
        `VI`; by default the covariance of the rows), "hamming", "jaccard", "gower" (:func:`gower_distances`),
        "geodesic" (:func:`geodesic_distances`), the others that scikit-learn knows, or a function of two rows.
    **kwds
        Parameters of the metric.

    Returns
    -------
    array of shape (n_samples, m)

    Examples
    --------
    >>> from epicycle.metrics import pairwise_distances
    >>> pairwise_distances([[0.0, 0.0], [3.0, 4.0]]).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    >>> pairwise_distances([[0.0, 0.0]], [[3.0, 4.0]], metric="manhattan").tolist()
    [[7.0]]
    """
    if isinstance(metric, str) and metric == "gower":
        return gower_distances(X, Y, **kwds)
    if isinstance(metric, str) and metric == "geodesic":
        if Y is not None:
            raise ParameterError("Y: distances along a graph are those of the rows of X; expected None")
        return geodesic_distances(X, n_jobs=n_jobs, **kwds)
    finite = not (isinstance(metric, str) and metric == "nan_euclidean")
    A, _ = as_matrix(X, estimator_name="pairwise_distances", check_finite=finite)
    if is_precomputed(metric):
        return _given_distances(A, Y)
    B = A if Y is None else as_matrix(Y, estimator_name="pairwise_distances", check_finite=finite)[0]
    if A.shape[1] != B.shape[1]:
        raise DataError(f"Y: has {B.shape[1]} columns and X has {A.shape[1]}; expected the same")
    distances = Distances(A, B, metric, kwds)
    n, m = int(A.shape[0]), int(B.shape[0])
    out = np.empty((n, m))
    step = max(1, min(1024, _BLOCK // m))

    def work(start: int) -> None:
        out[start : start + step] = distances.block(slice(start, min(start + step, n)))

    threads = n_threads(float(n) * m * A.shape[1], n_jobs) if distances.in_threads else 1
    in_order(range(0, n, step), work, None, threads)
    if Y is None and not callable(metric):
        np.fill_diagonal(out, 0.0)
    return out


def _given_distances(D: Any, Y: Any) -> Any:
    if Y is None and D.shape[0] != D.shape[1]:
        raise DataError(f"X: has shape {D.shape}; metric='precomputed' expects the distances of all pairs of rows")
    values = D.data if sp.issparse(D) else D
    if (values < 0).any():
        raise DataError("X: Negative values in data; metric='precomputed' expects distances >= 0")
    return D


@in_catalogue("metrics", "E17", certificate="exact")
def euclidean_distances(X: Any, Y: Any = None, *, n_jobs: int | None = None) -> np.ndarray:
    """Euclid's distances, from differences: equal rows have distance zero.

    Examples
    --------
    >>> from epicycle.metrics import euclidean_distances
    >>> euclidean_distances([[0.0, 0.0]], [[3.0, 4.0]]).tolist()
    [[5.0]]
    """
    return np.asarray(pairwise_distances(X, Y, "euclidean", n_jobs=n_jobs))


@in_catalogue("metrics", "E17", certificate="exact")
def manhattan_distances(X: Any, Y: Any = None, *, n_jobs: int | None = None) -> np.ndarray:
    """Sums of absolute differences."""
    return np.asarray(pairwise_distances(X, Y, "manhattan", n_jobs=n_jobs))


@in_catalogue("metrics", "E17", certificate="exact")
def minkowski_distances(X: Any, Y: Any = None, *, p: float = 2, w: Any = None, n_jobs: int | None = None) -> np.ndarray:
    r"""Minkowski's distances, :math:`(\sum_j w_j |x_j - y_j|^p)^{1/p}`."""
    return np.asarray(pairwise_distances(X, Y, "minkowski", n_jobs=n_jobs, p=p, w=w))


@in_catalogue("metrics", "E17", certificate="exact")
def chebyshev_distances(X: Any, Y: Any = None, *, n_jobs: int | None = None) -> np.ndarray:
    """Largest absolute differences."""
    return np.asarray(pairwise_distances(X, Y, "chebyshev", n_jobs=n_jobs))


@in_catalogue("metrics", "E17", certificate="exact")
def cosine_distances(X: Any, Y: Any = None, *, n_jobs: int | None = None) -> np.ndarray:
    """One less the cosine of the angle between rows; one from a row of zeros."""
    return np.asarray(pairwise_distances(X, Y, "cosine", n_jobs=n_jobs))


@in_catalogue("metrics", "E17", certificate="exact")
def mahalanobis_distances(
    X: Any, Y: Any = None, *, V: Any = None, VI: Any = None, n_jobs: int | None = None
) -> np.ndarray:
    r"""Mahalanobis' distances, :math:`\sqrt{(x - y)' V^{-1} (x - y)}`; V is the covariance of the rows by default."""
    given = {name: value for name, value in (("V", V), ("VI", VI)) if value is not None}
    return np.asarray(pairwise_distances(X, Y, "mahalanobis", n_jobs=n_jobs, **given))


@in_catalogue("metrics", "E17", certificate="exact")
def hamming_distances(X: Any, Y: Any = None, *, n_jobs: int | None = None) -> np.ndarray:
    """The share of columns that differ."""
    return np.asarray(pairwise_distances(X, Y, "hamming", n_jobs=n_jobs))


@in_catalogue("metrics", "E17", certificate="exact")
def jaccard_distances(X: Any, Y: Any = None, *, n_jobs: int | None = None) -> np.ndarray:
    """Of the columns that are not zero in one of the rows, the share that is zero in the other."""
    return np.asarray(pairwise_distances(X, Y, "jaccard", n_jobs=n_jobs))
