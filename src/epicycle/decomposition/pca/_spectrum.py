"""Eigenvalues and axes of the covariance of rows: S = sum_i w_i (x_i - m)(x_i - m)' / (W - 1), W the sum of weights.

Three ways, each a sum over batches, so that rows may be in memory, in files or on a cluster:

- the triangular factor R of the centred rows, S (W - 1) = R'R: as accurate as the SVD of the rows,
- S itself: the fastest for many rows, with eigenvalues that are accurate to rounding of the largest,
- products S V with a few columns: for few components of many columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from epicycle import _native, engine
from epicycle.core._exceptions import DataError
from epicycle.core._threads import n_threads
from epicycle.data import ArrayData, Batch, Data
from epicycle.decomposition._scatter import scatter_of
from epicycle.linalg._leading_eigenpairs import PROBES, largest_outside, leading_eigenpairs
from epicycle.stats._moments import CentredFactor, shift_of, triangular_factor_of

#: The residual of eigenvectors, relative to the largest eigenvalue, that direct methods are certified with.
DIRECT = 1e-10


@dataclass(frozen=True)
class Spectrum:
    """Leading eigenvalues of S, which fall, with their axes as rows; `total` is the trace of S."""

    values: np.ndarray
    axes: np.ndarray
    mean: np.ndarray
    weight: float
    n_rows: int
    total: float
    residual: float
    tolerance: float = DIRECT
    residuals: list[float] = field(default_factory=list)  # after every product, of an iteration
    outside: float | None = None  # bound on the standard deviation along any other direction
    sums: np.ndarray | None = None  # of the rows, about the shift of a centred table and about zero otherwise


def degrees_of_freedom(weight: float, n_rows: int) -> float:
    """The divisor of sums of squares about the mean."""
    if n_rows < 2:
        raise DataError(f"n_samples={n_rows}: variances need at least two rows")
    if weight <= 1:
        raise DataError(f"sample_weight: a sum of {weight:.3g}; weights count rows, expected a sum of more than one")
    return weight - 1.0


def by_factor(data: Data, n_jobs: int | None) -> Spectrum:
    """All of min(n, p) eigenvalues from the triangular factor of the rows."""
    return spectrum_of(triangular_factor_of(data, shift_of(data, targets=False), intercept=True, n_jobs=n_jobs))


def spectrum_of(found: CentredFactor) -> Spectrum:
    """All of min(n, p) eigenvalues from the factor of rows about their mean."""
    R = found.R_x
    if not np.isfinite(R).all():
        raise DataError("X: products of its columns overflow; scale them down")
    over = degrees_of_freedom(found.weight, found.n_rows)
    _, s, axes = scipy.linalg.svd(R, full_matrices=False, check_finite=False)
    count = number_of_axes(found.weight, found.n_rows, R.shape[1])
    s, axes = _completed(s, axes, count, np.finfo(np.float64).eps * max(R.shape))
    products = (axes @ R.T) @ R
    return Spectrum(
        s**2 / over,
        axes,
        found.mean,
        found.weight,
        found.n_rows,
        float((s**2).sum()) / over,
        _residual(products, s**2, axes),
    )


def number_of_axes(weight: float, n_rows: int, p: int) -> int:
    """All axes of p columns, or as many as rows; a row of weight v counts as v rows."""
    return min(max(n_rows, int(weight)), p)


def _completed(values: np.ndarray, axes: np.ndarray, count: int, least: float) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` axes, where those without variance follow from the others and not from rounding.

    Unit vectors of columns, made orthogonal to all axes before them, the farthest from their space first.
    """
    kept = min(int((values > least * values[0]).sum()) if values.size and values[0] > 0 else 0, count)
    found = np.zeros((count, axes.shape[1]))
    found[:kept] = axes[:kept]
    outside = 1.0 - np.square(found).sum(axis=0)
    for i in range(kept, count):
        j = int(np.argmax(outside.round(9)))  # ties do not go by rounding
        unit = -found[:i].T @ found[:i, j]
        unit[j] += 1.0
        unit -= found[:i].T @ (found[:i] @ unit)
        found[i] = unit / np.linalg.norm(unit)
        outside -= np.square(found[i])
    return np.pad(values[:kept], (0, count - kept)), found


def by_covariance(data: Data, n_jobs: int | None) -> Spectrum | None:
    """All eigenvalues from S; None where entries are missing."""
    found = scatter_of(data, n_jobs, as_factor=False)
    if found is None:
        return None
    assert found.S is not None
    S = found.S * (found.weight / degrees_of_freedom(found.weight, found.n_rows))
    values, vectors = scipy.linalg.eigh(S, check_finite=False)
    values, axes = values[::-1].clip(min=0.0), vectors[:, ::-1].T
    count = number_of_axes(found.weight, found.n_rows, data.n_features)
    values, axes = _completed(values, axes, count, 10 * np.finfo(np.float64).eps * len(S))
    total, residual = float(np.trace(S)), _residual(axes @ S, values, axes)
    return Spectrum(values, axes, found.mean, found.weight, found.n_rows, total, residual)


def _residual(products: np.ndarray, values: np.ndarray, axes: np.ndarray) -> float:
    """The longest of S v - lambda v over the largest eigenvalue."""
    if not len(values) or values[0] <= 0:
        return 0.0
    left = products / values[0] - (values / values[0])[:, None] * axes  # divided first: squares may overflow
    return float(np.linalg.norm(left, axis=1).max())


def by_products(
    data: Data,
    k: int,
    rng: np.random.Generator,
    *,
    tol: float,
    max_products: int,
    n_more: int,
    centred: bool = True,
    n_jobs: int | None = None,
) -> Spectrum:
    """The k largest eigenvalues from products with S, until residuals are `tol` of the largest.

    Without centring S is X'WX itself, and its eigenvalues are the squares of the singular values of the rows.
    """
    shift = shift_of(data, targets=False) if centred else np.zeros(data.n_features)
    weight, n_rows, sums, squares = engine.sum(_first_moments, data, shift, n_jobs=n_jobs)
    if not np.isfinite(squares):
        raise DataError("X: sums of squares of its columns overflow; scale them down")
    over = degrees_of_freedom(weight, n_rows) if centred else 1.0
    mean = shift + sums / weight if centred else shift
    total = max(float(squares) - (float(sums @ (sums / weight)) if centred else 0.0), 0.0) / over

    def product(V: np.ndarray) -> np.ndarray:
        if isinstance(data, ArrayData) and data.sparse:
            with np.errstate(over="ignore", invalid="ignore"):
                return scatter_product(data, mean, V, n_jobs) / over
        return np.asarray(engine.sum(_scatter_product, data, mean, V, n_jobs=n_jobs)[0]) / over

    def times(V: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(engine.sum(_lengths, data, mean, V, n_jobs=n_jobs)[0] / over))[None, :]

    found = leading_eigenpairs(
        product, data.n_features, k, rng, tol=tol, max_products=max_products, n_more=n_more, n_jobs=n_jobs
    )
    outside = largest_outside(times, found.vectors, rng)
    limit = max(tol, DIRECT)
    return Spectrum(
        found.values, found.vectors, mean, weight, n_rows, total, found.residual, limit, found.residuals, outside, sums
    )


def _first_moments(batch: Batch, shift: np.ndarray) -> tuple[float, int, np.ndarray, float]:
    """(sum of weights, rows of positive weight, sums of the columns and sum of all squares about the shift)."""
    w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    counted = (float(w.sum()), int(np.count_nonzero(w)))
    with np.errstate(over="ignore", invalid="ignore"):
        if sp.issparse(batch.X):  # its shift is zero
            X = sp.csr_array(batch.X, dtype=np.float64)
            each = np.square(X.data) if batch.weight is None else np.square(X.data) * np.repeat(w, np.diff(X.indptr))
            return *counted, np.asarray(X.T @ w), float(each.sum())
        D = np.asarray(batch.X, dtype=np.float64) - shift
        return *counted, w @ D, float((w @ np.square(D)).sum())


def _scatter_product(batch: Batch, mean: np.ndarray, V: np.ndarray) -> tuple[np.ndarray]:
    """A'A V for the rows A = sqrt(w) (x - mean); sparse rows are never centred themselves."""
    X = batch.X
    with np.errstate(over="ignore", invalid="ignore"):
        if not sp.issparse(X):
            D = np.asarray(X, dtype=np.float64) - mean
            T = D @ V
            return (D.T @ (T if batch.weight is None else T * batch.weight[:, None]),)
        T = np.asarray(X @ V) - mean @ V
        T = T if batch.weight is None else T * batch.weight[:, None]
        return (np.asarray(X.T @ T) - np.outer(mean, T.sum(axis=0)),)


def _lengths(batch: Batch, mean: np.ndarray, V: np.ndarray) -> tuple[np.ndarray]:
    """Squared lengths of the columns of A V."""
    T = np.asarray(batch.X @ V) - mean @ V if sp.issparse(batch.X) else (batch.X - mean) @ V
    w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    return (w @ np.square(T),)


def in_words(found: Spectrum) -> str:
    """The residual in words."""
    words = f"every axis solves its eigenvalue equation up to {found.residual:.1e} of the largest variance"
    if found.outside is None:
        return words
    return (
        f"{words}; no other direction has a standard deviation above {found.outside:.3g} "
        f"(fails with probability 1e-{PROBES})"
    )


# Products with the scatter of sparse rows in memory: A'A V for A = sqrt(w) (x - m), in one read of the rows.
#
# Rows are never centred themselves:  A'A V = X'W (X V - 1 m'V) - m 1'W (X V - 1 m'V).

_PANEL = 16  # columns that the kernel takes together
_ENTRIES = 2_000_000  # stored entries between two looks for Ctrl-C


def scatter_product(data: ArrayData, mean: np.ndarray, V: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """A'A V; no sum depends on the number of threads."""
    p, columns = V.shape
    panels = -(-columns // _PANEL)
    wide = np.zeros((p, panels * _PANEL))
    wide[:, :columns] = V
    packed = np.ascontiguousarray(wide.reshape(p, panels, _PANEL).transpose(1, 0, 2))
    shift = np.ascontiguousarray((mean @ wide).reshape(panels, _PANEL))
    out, sums = np.zeros_like(packed), np.zeros_like(shift)
    threads = min(n_threads(2.0 * data.X.nnz * columns, n_jobs), panels)
    rows = max(1, int(_ENTRIES * data.n_rows / max(data.X.nnz, 1)))
    for start in range(0, data.n_rows, rows):
        batch = data.rows(start, min(start + rows, data.n_rows))
        _native.decomposition.scatter_product(batch.X, batch.weight, shift, packed, out, sums, threads)
    found = out.transpose(1, 0, 2).reshape(p, panels * _PANEL)[:, :columns]
    return np.asarray(found - np.outer(mean, sums.ravel()[:columns]) if mean.any() else found)
