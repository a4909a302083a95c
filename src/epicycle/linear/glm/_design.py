"""The design of a model: dense columns, sparse columns and codes of categories, and which coefficient is whose.

Coefficients are worked with in the order (dense columns, levels of the first column of codes, of the second, ...) and
reported in the order of the columns of X, each level where its column stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.data import ArrayData, Data
from epicycle.data._categories import LevelEncoder, Levels

Array = np.ndarray


class Design:
    """The dense columns of X and those that hold codes.

    Parameters
    ----------
    n_columns : int
        Columns of X.
    levels : dict of int to array
        Levels of the columns of categories.
    drop : bool
        Whether the first level of each is the one that others are compared with.
    raw : bool
        Whether X holds the levels themselves (files, collections) and not their codes.
    ignore_unknown : bool
        Whether a level that is not known has no effect, or is an error.
    """

    def __init__(
        self,
        n_columns: int,
        levels: Levels | None = None,
        *,
        drop: bool = False,
        raw: bool = False,
        ignore_unknown: bool = False,
    ) -> None:
        self.n_columns, self.levels = n_columns, levels or {}
        self.drop, self.raw, self.ignore_unknown = drop, raw, ignore_unknown
        self.codes = sorted(self.levels)
        self.dense = [j for j in range(n_columns) if j not in self.levels]
        self.counts = np.array([len(self.levels[j]) for j in self.codes], dtype=np.int64)
        self.skip = np.full(len(self.codes), int(drop), dtype=np.int64)
        before = np.cumsum(self.counts - self.skip)
        self.first = len(self.dense) + np.concatenate([np.zeros(1, np.int64), before[:-1]])[: len(self.codes)]
        self.in_order = self.dense + self.codes == list(range(n_columns))

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return len(self.dense) + int((self.counts - self.skip).sum())

    @property
    def n_dense(self) -> int:
        """Number of dense columns, whose coefficients come first."""
        return len(self.dense)

    def split(self, X: Array) -> tuple[Array, Array]:
        """Dense columns and columns of codes of a batch; views where they stand in this order already."""
        codes, dense = self.codes, self.dense
        if not codes:
            return X, X[:, :0]
        left, right = (X[:, : len(dense)], X[:, len(dense) :]) if self.in_order else (X[:, dense], X[:, codes])
        if not self.raw:
            return left, right
        encoder = level_encoder(self.levels, self.ignore_unknown)
        coded = np.empty(right.shape, X.dtype, order="F")
        for c, j in enumerate(codes):
            coded[:, c] = encoder.codes(right[:, c], self.levels[j], str(j))
        return left, coded

    def tables(self) -> tuple[Array, Array, Array]:
        """For every column of codes its first coefficient, its number of levels, and how many of them are left out."""
        return self.first, self.counts, self.skip

    def parts(self, X: Any) -> tuple[Any, Any]:
        """The leading arguments of the native kernels for the X of a batch."""
        if sp.issparse(X):
            return X, None
        dense, codes = self.split(X)
        return dense, (codes, *self.tables())

    def predictor(self, X: Any, coef: Array) -> Array:
        """X w for a batch, of one or several columns of coefficients; unknown levels add nothing."""
        if sp.issparse(X) or not self.levels:
            return np.asarray(X @ coef)
        dense, codes = self.split(X)
        eta = np.asarray(dense @ coef[: self.n_dense], dtype=coef.dtype)
        for c, (first, count, skip) in enumerate(zip(*self.tables(), strict=True)):
            own = np.zeros((count + 1, *coef.shape[1:]), coef.dtype)  # the last is for unknown levels
            own[skip:count] = coef[first : first + count - skip]
            eta += own[codes[:, c].astype(np.intp)]
        return eta

    def columns(self, X: Any, chosen: Array) -> Array:
        """Some columns of the expanded design as a dense array; for working sets."""
        if sp.issparse(X):
            return np.asarray(X[:, chosen].toarray())
        dense, codes = self.split(X)
        out = np.zeros((X.shape[0], len(chosen)), order="F")
        inside = chosen < self.n_dense
        out[:, inside] = dense[:, chosen[inside]]
        for t in np.flatnonzero(~inside):
            c = int(np.searchsorted(self.first, chosen[t], side="right")) - 1
            first, _, skip = (int(table[c]) for table in self.tables())
            out[:, t] = codes[:, c] == chosen[t] - first + skip
        return out

    # ------------------------------------------------------------------------------------------- names and order

    def reported(self) -> Array:
        """For every reported coefficient, its number in the order of work."""
        at, order = dict(zip(self.codes, self.first, strict=True)), []
        dense = {j: k for k, j in enumerate(self.dense)}
        for j in range(self.n_columns):
            if j in dense:
                order.append([dense[j]])
            else:
                order.append(list(range(int(at[j]), int(at[j]) + len(self.levels[j]) - int(self.drop))))
        return np.array([k for part in order for k in part], dtype=np.intp)

    def names(self, columns: list[str]) -> list[str]:
        """Names of the reported coefficients: the column's, or "column[level]"."""
        out = []
        for j, name in enumerate(columns):
            if j in self.levels:
                out += [f"{name}[{level}]" for level in self.levels[j][int(self.drop) :].tolist()]
            else:
                out.append(name)
        return out

    def per_coefficient(self, values: Array) -> Array:
        """One number for each column of X, repeated for its levels, in the order of work."""
        owner = np.concatenate(
            [self.dense, *(np.full(len(self.levels[j]) - int(self.drop), j) for j in self.codes)]
        ).astype(np.intp)
        return np.asarray(values)[owner]


class _LargeBlocks(ArrayData):
    """An array in fewer blocks: each has enough rows that its Hessian costs more to compute than to add."""

    def __init__(self, data: ArrayData, rows: int) -> None:
        super().__init__(data.X, data.y, data.weight, feature_names=data.feature_names)
        self._rows = max(self._rows, -(-rows // 256) * 256)
        self.n_blocks = max(1, -(-self.n_rows // self._rows))


def in_large_blocks(data: Data, design: Design) -> Data:
    """The data in blocks that suit a design with many levels; as it is where it has few, or is not in memory."""
    if not isinstance(data, ArrayData) or not design.levels:
        return data
    k, p = len(design.levels), design.n_dense
    work = (k * (k + p) + p * p) / 2 + 1.0
    return _LargeBlocks(data, int((design.size + 1) ** 2 / work))


def level_encoder(levels: Levels, ignore_unknown: bool, estimator_name: str = "") -> LevelEncoder:
    """The encoder of a design: -1 is the code of what has no effect."""
    if ignore_unknown:
        return LevelEncoder(levels, "missing", missing_code=-1.0, estimator_name=estimator_name)
    advice = "; with handle_unknown='ignore' they have no effect"
    return LevelEncoder(levels, "error", missing_code=None, estimator_name=estimator_name, advice=advice)
