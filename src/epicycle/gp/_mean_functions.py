"""Mean functions of a Gaussian process: zero, a basis whose coefficients are estimated, or a function that is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError


@dataclass(frozen=True)
class MeanFunction:
    """m(x) = offset(x) + h(x)' beta.

    kind : "zero", "constant", "linear", "basis" (a function that gives rows h(x)) or "given" (m itself)
    source : the function or fitted estimator behind "basis" and "given"
    centre, scale : (p,), of the columns of the linear basis
    kept : which columns of the basis are independent of those before
    """

    kind: str
    source: Any
    centre: np.ndarray
    scale: np.ndarray
    kept: np.ndarray

    def basis(self, X: Any) -> np.ndarray:
        """h(x) for every row, of shape (n, q)."""
        return self._all(X)[:, self.kept]

    def _all(self, X: Any) -> np.ndarray:
        n = X.shape[0]
        if self.kind == "constant":
            return np.ones((n, 1))
        if self.kind == "linear":
            rows = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
            return np.hstack([np.ones((n, 1)), (rows - self.centre) / self.scale])
        if self.kind == "basis":
            return _values(self.source, X, n)
        return np.zeros((n, 0))

    def offset(self, X: Any, n_targets: int) -> np.ndarray | float:
        """The known part of the mean, of shape (n, t); 0 where there is none."""
        if self.kind != "given":
            return 0.0
        values = _values(self.source, X, X.shape[0])
        if values.shape[1] not in (1, n_targets):
            raise DataError(f"mean: {self.source!r:.60} gave {values.shape[1]} columns; expected {n_targets}")
        return values


def mean_function(mean: Any, X: Any, takes: str) -> MeanFunction:
    """The argument `mean` of a Gaussian process for rows X."""
    none = np.zeros(0)
    if isinstance(mean, str):
        kind, source = mean, None
    elif hasattr(mean, "predict"):
        kind, source = "given", mean
    else:
        kind, source = ("given" if _raw(mean, X).ndim == 1 else "basis"), mean
    if kind == "linear" and takes != "vectors":
        raise ParameterError("mean='linear'; the rows are no vectors: expected 'zero', 'constant' or a function")
    centre, scale = none, none
    if kind == "linear":
        rows = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        centre, scale = rows.mean(axis=0), rows.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
    n_columns = {"zero": 0, "given": 0, "constant": 1, "linear": 1 + len(centre)}.get(kind)
    every = MeanFunction(kind, source, centre, scale, np.arange(n_columns or 0))
    if kind in ("zero", "given", "constant"):
        return every
    H = every._all(X)
    return MeanFunction(kind, source, centre, scale, _independent(H))


def _independent(H: np.ndarray) -> np.ndarray:
    """Columns that span what all of them span."""
    lengths = np.linalg.norm(H, axis=0)
    # Columns of length one, so that their units have no part in the decision.
    R, order = scipy.linalg.qr(H / np.where(lengths > 0, lengths, 1.0), mode="r", pivoting=True)
    size = np.abs(np.diagonal(R))
    rank = int((size > 1e-10 * max(float(size.max(initial=0.0)), 1e-300)).sum())
    return np.sort(order[:rank])


def _raw(source: Any, X: Any) -> np.ndarray:
    if not callable(source):
        raise ParameterTypeError(
            f"mean={source!r:.60}; expected 'zero', 'constant', 'linear', a function of X or a fitted estimator"
        )
    try:
        return np.asarray(source(X), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"mean: {source!r:.60} failed on X: {error}") from error


def _values(source: Any, X: Any, n: int) -> np.ndarray:
    """The values of a function or an estimator for X, as columns."""
    values = np.asarray(source.predict(X), dtype=np.float64) if hasattr(source, "predict") else _raw(source, X)
    columns = values[:, None] if values.ndim == 1 else values
    if columns.ndim != 2 or len(columns) != n:
        raise DataError(f"mean: {source!r:.60} gave shape {values.shape} for {n} rows")
    if not np.isfinite(columns).all():
        raise DataError(f"mean: {source!r:.60} gave NaN or infinity")
    return columns
