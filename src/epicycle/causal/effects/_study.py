"""The data of a study: covariates X, treatment t, outcome y and weights of rows.

A treatment of two values is coded 0 (control) and 1 (treated), in their sorted order; one of more values is a number
whose unit the effect refers to. Rows of weight zero are left out at once: they are as if they had not been there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, DataTypeError, ParameterError

_LARGEST = 1e150  # sums of squares of numbers beyond it leave the range of floating point


@dataclass(frozen=True)
class Study:
    """Rows of a study, checked.

    X : covariates (n, p), dense or CSR.
    t : the treatment, 0.0 and 1.0 where it is binary.
    y : the outcome in float64.
    w : weights of the rows, all positive.
    levels : the two values of a binary treatment, control first; empty for a numeric one.
    names : names of the covariates.
    weighted : whether weights were given.
    """

    X: Any
    t: np.ndarray
    y: np.ndarray
    w: np.ndarray
    levels: tuple[Any, ...]
    names: tuple[str, ...]
    weighted: bool

    @property
    def binary(self) -> bool:
        return bool(self.levels)

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def size(self) -> float:
        """The number of rows that the weights stand for."""
        return float(self.w.sum())

    def dense(self) -> np.ndarray:
        """The covariates as a dense array of float64."""
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        return np.asarray(X, dtype=np.float64)

    def weight_of(self, rows: Any) -> np.ndarray | None:
        """The `sample_weight` of these rows; None where all rows count the same."""
        return self.w[rows] if self.weighted else None

    def taken(self, rows: np.ndarray) -> Study:
        """The study of these rows (a mask) alone."""
        return replace(self, X=self.X[rows], t=self.t[rows], y=self.y[rows], w=self.w[rows])

    def target(self, estimand: str) -> np.ndarray:
        """1 for the rows that the effect is averaged over, 0 for the others."""
        return {"att": self.t, "atc": 1 - self.t}.get(estimand, np.ones_like(self.t))


def split_frame(X: Any, name: str) -> tuple[Any, np.ndarray]:
    """(the other columns, the column `name`) of a data frame."""
    if not nw.dependencies.is_into_dataframe(X):
        raise DataTypeError(
            f"treatment={name!r}: the name of a column needs X as a data frame, got {type(X).__name__}; pass the values"
        )
    frame = nw.from_native(X, eager_only=True)
    if name not in frame.columns:
        raise DataError(f"treatment={name!r}: X has no such column; it has {', '.join(map(repr, frame.columns[:20]))}")
    return nw.to_native(frame.drop(name)), frame[name].to_numpy()


def without_column(X: Any, name: str | None) -> Any:
    """A data frame without the column of the treatment, where it is there."""
    if name is None or not nw.dependencies.is_into_dataframe(X):
        return X
    frame = nw.from_native(X, eager_only=True)
    return nw.to_native(frame.drop(name)) if name in frame.columns else X


def split_position(X: Any, column: int) -> tuple[Any, np.ndarray, int]:
    """(the other columns, the column, its number from the left) of a matrix."""
    p = X.shape[1]
    if not -p <= column < p:
        raise ParameterError(f"treatment_column={column}: X has {p} columns")
    j = column % p
    values = X[:, [j]].toarray().ravel() if sp.issparse(X) else X[:, j]
    return drop_position(X, j), np.asarray(values), j


def drop_position(X: Any, j: int) -> Any:
    """All columns but number j."""
    if sp.issparse(X):
        return X[:, [i for i in range(X.shape[1]) if i != j]].tocsr()
    return np.delete(X, j, axis=1)


def with_treatment(X: Any, t: Any) -> Any:
    """The covariates with the treatment as a further column: of each row, or one value for all."""
    column = np.broadcast_to(np.asarray(t, dtype=np.float64), (X.shape[0],))[:, None]
    return sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])


def require_squares(X: Any, names: list[str]) -> None:
    """Raise where squares of a covariate would leave the range of numbers."""
    if 0 in X.shape:
        return
    low, high = (np.asarray(bound.toarray() if sp.issparse(bound) else bound).ravel() for bound in (X.min(0), X.max(0)))
    size = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
    if (wrong := ~(size <= _LARGEST)).any():
        j = int(wrong.argmax())
        raise DataError(f"X: {names[j]!r} holds {size[j]:.1e}, whose square is no number; divide it by a constant")


def coded_treatment(values: Any, n: int) -> tuple[np.ndarray, tuple[Any, ...]]:
    """(t, levels): 0 and 1 with the two values they stand for, or the numbers themselves and no levels."""
    found = np.asarray(values)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found.ravel()
    if found.shape != (n,):
        raise DataError(f"treatment: has shape {found.shape}; expected ({n},), one value for each row of X")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise DataError(f"treatment: row {int(np.flatnonzero(~np.isfinite(found))[0])} is not finite")
    try:
        levels, codes = np.unique(found, return_inverse=True)
    except TypeError:
        raise DataTypeError("treatment: mixes values that cannot be compared, or has missing ones") from None
    if len(levels) == 2:
        return codes.astype(np.float64), tuple(levels.tolist())
    if len(levels) < 2:
        only = levels.tolist()[0]
        raise DataError(f"treatment: has one value only, {only!r}, in n_samples={n} rows; an effect compares two")
    if found.dtype.kind not in "biuf":
        raise DataError(f"treatment: has {len(levels)} values that are not numbers; expected two values, or numbers")
    return found.astype(np.float64), ()
