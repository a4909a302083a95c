"""Rows as users bring them, for a kernel: a table of numbers, a sequence of strings, a matrix of kernel values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._matrix import as_matrix

if TYPE_CHECKING:
    from epicycle.kernels._kernel import Kernel

__all__ = ["as_rows", "as_texts"]


def as_rows(X: Any, kernel: Kernel, name: str) -> Any:
    """A float32 or float64 array, a CSR matrix, or an object array of strings."""
    owner = type(kernel).__name__
    if kernel.takes == "strings":
        return as_texts(X, name, owner)
    try:
        matrix, _ = as_matrix(X, estimator_name=owner, accept_sparse=kernel.accepts_sparse)
    except DataError as error:
        if name == "X":
            raise
        raise type(error)(str(error).replace("X", name, 1)) from None
    return matrix


def as_texts(X: Any, name: str, owner: str) -> np.ndarray:
    """A sequence of str (a list, an array, a column of a frame) as an array of objects."""
    if isinstance(X, str | bytes) or not (isinstance(X, Sequence | np.ndarray) or hasattr(X, "__array__")):
        raise DataTypeError(f"{name}: {owner} expected a sequence of strings, got {type(X).__name__}")
    array = np.asarray(X, dtype=object) if not isinstance(X, np.ndarray) else X
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name}: {owner} expected one string for each row, got an array of shape {array.shape}")
    if not len(array):
        raise DataError(f"{name}: has no rows (0 sample(s)); at least one string is needed")
    items = array.tolist()
    wrong = next((i for i, item in enumerate(items) if not isinstance(item, str)), None)
    if wrong is not None:
        raise DataTypeError(f"{name}: row {wrong} is {items[wrong]!r:.60}; {owner} expected strings")
    texts = np.empty(len(items), dtype=object)
    texts[:] = [str(item) for item in items]
    return texts
