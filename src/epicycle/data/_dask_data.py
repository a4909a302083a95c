"""Data in a Dask collection: partitions that stay where they are, and become batches there."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from epicycle.core._exceptions import DataError, DataTypeError, EngineError
from epicycle.data._array_data import ArrayData
from epicycle.data._checks import Checks
from epicycle.data._data import Batch, Data, TargetEncoder
from epicycle.data._frames import frame_columns, frame_to_matrix
from epicycle.data._matrix import as_floating
from epicycle.data._target import TargetKind, as_partial_weight


def is_dask(x: Any) -> bool:
    """Whether x is a Dask collection; does not import Dask."""
    return type(x).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(x, "__dask_graph__")


@dataclass(frozen=True)
class _Recipe:
    """Checks that make a partition of X, y and the weights an :class:`ArrayData`."""

    dtype: np.dtype[Any]
    n_features: int
    checks: Checks

    def __call__(self, X: Any, y: Any, weight: Any, number: int) -> ArrayData:
        """Runs where the partition is."""
        try:
            n = len(X) if not sp.issparse(X) else X.shape[0]
            if n == 0:
                return self._empty(X)
            matrix, names = self.checks.matrix(X)
            targets = self.checks.targets(y, n)
            matrix = _settled(matrix.astype(self.dtype, copy=False), "C" if names is None else "F")
            weight = None if weight is None else as_partial_weight(weight, n)
        except DataError as error:
            raise type(error)(f"{error} [in partition {number}]") from None
        return ArrayData(matrix, targets, weight, feature_names=names)

    def _empty(self, X: Any) -> ArrayData:
        shape = (0, self.n_features)
        return ArrayData(sp.csr_array(shape, dtype=self.dtype) if sp.issparse(X) else np.empty(shape, self.dtype))


def _settled(X: Any, order: Literal["C", "F"]) -> Any:
    """X with a contiguous layout; only a strided view is copied.

    A view loses its strides when it is sent to another worker, and BLAS rounds differently in another layout: without
    this the bits of a sum would depend on which partitions have travelled.
    """
    if sp.issparse(X) or X.flags.c_contiguous or X.flags.f_contiguous:
        return X
    return np.array(X, order=order)


class DaskData(Data):
    """The partitions of a Dask collection.

    Attributes
    ----------
    parts : list of dask.delayed.Delayed
        One :class:`ArrayData` each.
    parent, encoder : DaskData and function, or None
        Where this data set is another one with its target encoded.
    sizes : list of int, or None
        Rows of each partition where they are known.
    resident : (client, futures) or None
        The partitions as they are held by a cluster; set by the engine at the first pass, kept as long as this object.
    """

    def __init__(
        self,
        parts: list[Any],
        *,
        n_features: int,
        feature_names: tuple[str, ...] | None,
        dtype: np.dtype[Any],
        sparse: bool,
        n_targets: int,
        target_is_vector: bool,
        has_weight: bool,
        sizes: list[int] | None,
    ) -> None:
        self.parts, self.sizes = parts, sizes
        self.n_features, self.feature_names = n_features, feature_names
        self.dtype, self.sparse = dtype, sparse
        self.n_targets, self.target_is_vector, self.has_weight = n_targets, target_is_vector, has_weight
        self.parent: DaskData | None = None
        self.encoder: TargetEncoder | None = None
        self.resident: tuple[Any, list[Any]] | None = None

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]
        """Number of rows where all partitions know theirs."""
        return None if self.sizes is None else sum(self.sizes)

    def batches(self) -> Iterator[Batch]:
        raise EngineError("a Dask collection is not gathered: use engine.sum or engine.map")

    def encode_target(self, function: TargetEncoder, n_columns: int | None = None) -> DaskData:
        from dask import delayed

        if not self.n_targets:
            raise DataError("y: there is no target to encode")
        encode = delayed(encode_partition, pure=False)
        encoded = copy.copy(self)
        encoded.parts = [encode(part, function) for part in self.parts]
        encoded.parent, encoded.encoder, encoded.resident = self, function, None
        if n_columns is not None:
            encoded.n_targets, encoded.target_is_vector = n_columns, False
        return encoded

    def head(self) -> Batch:
        from dask import delayed

        # A filter upstream may have left the first partitions without rows.
        for i in range(len(self.parts)):
            part = self.parts[i] if self.resident is None else self.resident[1][i]
            batch: Batch = delayed(_head, pure=False)(part).compute()
            if batch.n_rows:
                return batch
        raise DataError("X: Found array with 0 sample(s) while a minimum of 1 is required: every partition is empty")


def encode_partition(part: ArrayData, function: TargetEncoder) -> ArrayData:
    """One partition with its target encoded; X is shared."""
    return part if part.y is None else part.encode_target(function)


def _head(part: ArrayData) -> Batch:
    return part.head()


def dask_data(X: Any, y: Any, sample_weight: Any, checks: Checks) -> DaskData:
    """Check what the collections know of themselves (shapes, types, partitions); the rest is checked where it is."""
    from dask import delayed

    if not hasattr(X, "to_delayed") or not hasattr(X, "ndim"):
        raise DataTypeError(f"X: expected a Dask array or DataFrame, got a Dask {type(X).__name__}")
    if X.ndim != 2:
        raise DataError(f"X: Expected 2D array, got {X.ndim}D Dask {type(X).__name__}. Reshape your data")
    X, names, dtype, sparse = _features(X, checks.accept_sparse, checks.estimator_name)
    parts = _parts(X)
    n_targets, vector = 0, False
    targets: Sequence[Any] = [None] * len(parts)
    weights = targets
    if checks.target != "none":
        y, n_targets, vector = _target(y, checks.target, checks.multi_output)
        targets = _aligned(y, X, len(parts), "y")
    if sample_weight is not None:
        weights = _aligned(sample_weight, X, len(parts), "sample_weight")
    p = int(X.shape[1]) if _is_array(X) else len(X.columns)
    recipe = delayed(_Recipe(dtype, p, checks), pure=False)
    return DaskData(
        [recipe(part, targets[i], weights[i], i) for i, part in enumerate(parts)],
        n_features=p,
        feature_names=names,
        dtype=dtype,
        sparse=sparse,
        n_targets=n_targets,
        target_is_vector=vector,
        has_weight=sample_weight is not None,
        sizes=_sizes(X),
    )


def _is_array(x: Any) -> bool:
    return hasattr(x, "chunks") and hasattr(x, "numblocks")


def _parts(x: Any) -> list[Any]:
    """The partitions as Delayed objects, which keep what a cluster holds of them alive."""
    if not _is_array(x):
        return list(x.to_delayed(optimize_graph=False))  # optimising may merge partitions, of X and y differently
    # Optimising the graph of a persisted array drops the futures in it, and with them the data.
    persisted = any(type(task).__module__.startswith("distributed") for task in dict(x.__dask_graph__()).values())
    return list(x.to_delayed(optimize_graph=not persisted).ravel())


def _features(
    X: Any, accept_sparse: bool, estimator_name: str
) -> tuple[Any, tuple[str, ...] | None, np.dtype[Any], bool]:
    """X with one chunk across its columns; their names; the type of its batches; whether they are sparse."""
    if not _is_array(X):
        names = frame_columns(X._meta)
        if len(X.columns) == 0:
            raise DataError("X: Found array with 0 feature(s) while a minimum of 1 is required")
        return X, names, np.dtype(frame_to_matrix(X._meta).dtype), False
    if np.isnan(X.shape[1]):
        raise DataError("X: a Dask array with an unknown number of columns; call compute_chunk_sizes() first")
    if X.shape[1] == 0 or X.shape[0] == 0:
        which = "feature(s)" if X.shape[1] == 0 else "sample(s)"
        raise DataError(f"X: Found array with 0 {which} (shape={X.shape}) while a minimum of 1 is required")
    if X.numblocks[1] > 1:  # a batch holds whole rows
        X = X.rechunk({1: -1})
    sparse = sp.issparse(X._meta)
    if sparse and not accept_sparse:
        raise DataTypeError(f"X: Sparse data was passed, but {estimator_name} takes dense data only")
    return X, None, np.dtype(as_floating(np.empty((1, 1), X.dtype)).dtype), sparse


def _sizes(X: Any) -> list[int] | None:
    if not _is_array(X) or any(np.isnan(n) for n in X.chunks[0]):
        return None
    return [int(n) for n in X.chunks[0]]


def _target(y: Any, target: TargetKind, multi_output: bool) -> tuple[Any, int, bool]:
    """y, its number of columns, and whether it is a vector."""
    _require_dask(y, "y")
    if y.ndim == 1:
        return y, 1, True
    columns = int(y.shape[1]) if _is_array(y) else len(y.columns)
    if target == "numeric" and multi_output:
        return (y.rechunk({1: -1}) if _is_array(y) else y), columns, False
    if columns != 1:
        raise DataError(f"y should be a 1d array, got a Dask {type(y).__name__} with {columns} columns")
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected: pass y[:, 0] or one column of the frame.",
        DataConversionWarning,
        stacklevel=2,
    )
    return (y[:, 0] if _is_array(y) else y[y.columns[0]]), 1, True


def _require_dask(values: Any, name: str) -> None:
    if not is_dask(values) or not hasattr(values, "to_delayed") or not hasattr(values, "ndim"):
        raise DataTypeError(
            f"{name}: X is a Dask collection, {name} is {type(values).__name__}; expected a Dask array or series "
            "with the partitions of X (dask.array.from_array, say)"
        )


def _aligned(values: Any, X: Any, n_parts: int, name: str) -> Sequence[Any]:
    """The partitions of y or the weights, one for each of X."""
    _require_dask(values, name)
    parts = _parts(values)
    mine, theirs = _sizes(values), _sizes(X)
    if mine is not None and theirs is not None and mine != theirs:
        if sum(mine) != sum(theirs):
            raise DataError(
                f"{name}: Found input variables with inconsistent numbers of samples: [{sum(theirs)}, {sum(mine)}]"
            )
        raise DataError(f"{name}: its chunks {_short(mine)} are not those of X {_short(theirs)}; rechunk one of them")
    if len(parts) != n_parts:
        raise DataError(f"{name}: has {len(parts)} partitions, X has {n_parts}; both must be partitioned alike")
    divisions = getattr(values, "divisions", (None,)), getattr(X, "divisions", (None,))
    # Frames know their index only by divisions; unknown ones cannot be compared, and are trusted.
    if None not in (*divisions[0], *divisions[1]) and divisions[0] != divisions[1]:
        raise DataError(f"{name}: its divisions are not those of X; repartition(divisions=X.divisions) one of them")
    return parts


def _short(sizes: list[int]) -> str:
    return f"({', '.join(map(str, sizes[:4]))}{', ...' if len(sizes) > 4 else ''})"
