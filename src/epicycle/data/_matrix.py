"""Features as users bring them, to a float32 or float64 matrix; an array that is one already is used as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._data import Matrix
from epicycle.data._frames import frame_columns, frame_to_matrix, is_frame, is_lazy_frame
from epicycle.data._numbers import exact_in_float64, numbers_of_objects, refuse_non_numbers, require_finite

_FLOATS = (np.float64, np.float32)


def as_matrix(
    X: Any, *, estimator_name: str, accept_sparse: bool = True, check_finite: bool = True
) -> tuple[Matrix, tuple[str, ...] | None]:
    """X as a matrix, and the names of its columns where it has any."""
    names: tuple[str, ...] | None = None
    # The common case is passed through without a look at other containers.
    if not (type(X) is np.ndarray and X.dtype in _FLOATS):
        X, names = _read(X)
    if sp.issparse(X):
        return _as_csr(X, estimator_name, accept_sparse, check_finite), names
    if X.ndim != 2 or 0 in X.shape:
        _explain_shape(X, estimator_name)
    X = aligned(X)
    if check_finite:
        require_finite(X, "X", columns=names, estimator_name=estimator_name)
    return X, names


def aligned(array: Any) -> Any:
    """A copy of an array or a CSR matrix that arrived over a wire or from a packed record; others as they are.

    Native code cannot read what lies between the words of memory, and BLAS takes other paths, that round otherwise.
    """
    if sp.issparse(array):
        whole = all(part.flags.aligned for part in (array.data, array.indices, array.indptr))
        return array if whole else array.copy()
    return array if array is None or array.flags.aligned else array.copy(order="K")


def _read(X: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Any container as a floating ndarray or a sparse matrix, with names; finiteness and shape not yet checked."""
    if isinstance(X, np.matrix):
        raise DataTypeError("X: np.matrix is not supported; pass np.asarray(X)")
    if sp.issparse(X):
        return X, None
    if X is None or isinstance(X, str | bytes | dict | set) or callable(X):
        raise DataTypeError(f"X: expected a table of numbers (ep.scan for files), got {type(X).__name__}")
    if is_frame(X):
        names = frame_columns(X)
        return frame_to_matrix(X), names
    if not isinstance(X, np.ndarray) and is_lazy_frame(X):
        raise DataTypeError(f"X: is a lazy {type(X).__name__}; collect() it, or read files with ep.scan")
    if hasattr(X, "iloc") or type(X).__module__.split(".")[0] in ("polars", "pyarrow"):  # a column
        raise DataError(
            f"X: Expected a 2-dimensional container but got {type(X).__name__}. Reshape your data: pass a DataFrame "
            "with one column, or .to_numpy().reshape(-1, 1)"
        )
    return as_floating(_as_ndarray(X)), None


def _as_ndarray(X: Any) -> np.ndarray:
    try:
        return np.asarray(X)
    except ValueError as error:
        raise DataError(f"X: {error} (rows differ in length?)") from None
    except TypeError as error:
        raise DataTypeError(f"X: {error}") from None


def in_type_if_it_fits(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Results in the type of the data; in float64 where a float32 would overflow."""
    dtype = np.dtype(dtype)
    if dtype == np.float32 and np.abs(values).max(initial=0.0, where=~np.isnan(values)) > np.finfo(np.float32).max:
        return np.asarray(values, dtype=np.float64)
    return values.astype(dtype, copy=False)


def as_floating(X: np.ndarray) -> np.ndarray:
    """An array of numbers as float32 or float64; itself where it is that already."""
    refuse_non_numbers(X, "X")
    if X.dtype in _FLOATS:
        return X
    if X.dtype == object:
        return numbers_of_objects(X, "X")
    if X.dtype == np.float16:  # exact in float32, and no BLAS takes it
        return X.astype(np.float32)
    exact_in_float64(X, "X")
    return X.astype(np.float64)


def dense(X: Any) -> np.ndarray:
    """A matrix as an ordinary array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def _as_csr(X: Any, estimator_name: str, accept_sparse: bool, check_finite: bool) -> sp.csr_array | sp.csr_matrix:
    if not accept_sparse:
        raise DataTypeError(
            f"Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert to a dense array "
            f"if {estimator_name} is to see it"
        )
    refuse_non_numbers(X, "X")
    if X.ndim != 2 or 0 in X.shape:
        _explain_shape(np.empty(X.shape), estimator_name)
    X = X.tocsr()  # itself if it is CSR already
    if X.dtype not in _FLOATS:
        exact_in_float64(X.data, "X")
        X = X.astype(np.float32 if X.dtype == np.float16 else np.float64)
    X = aligned(X)
    if not X.has_canonical_format:  # duplicate or unsorted: put in order, not in the caller's object
        X = X.copy()
        X.sum_duplicates()
    if check_finite:
        require_finite(X.data, "X", estimator_name=estimator_name, unit="stored entry")
    return X


def _explain_shape(X: np.ndarray, estimator_name: str) -> None:
    """Raise what scikit-learn says about an array that is no table."""
    try:
        check_array(X, ensure_all_finite=False, input_name="X", estimator=estimator_name)
    except ValueError as error:
        raise DataError(f"X: {error}") from None
    raise DataError(f"X: expected a table with rows and columns, got shape {X.shape}")
