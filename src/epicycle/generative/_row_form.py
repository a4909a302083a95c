"""The form of rows when they came in, so that rows that are drawn can have the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from epicycle.data._frames import is_frame
from epicycle.nets.vision._images import as_images

#: Kinds of data frame by the name of narwhals.
_FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf")


def is_images(X: Any) -> bool:
    """Whether X has the three or four axes of images."""
    if isinstance(X, list | tuple):
        try:
            return bool(np.ndim(X) > 2)
        except ValueError:  # ragged: the check of tables has the words for it
            return False
    return getattr(X, "ndim", 2) > 2


def images_with_gaps(X: Any, name: str, shape: list[int] | None = None) -> np.ndarray:
    """X as images, as `as_images` makes them for the estimator of this name; entries that are missing stay NaN."""
    gaps = np.isnan(X) if getattr(X, "dtype", np.dtype("O")).kind == "f" else np.zeros(1, dtype=bool)
    if not gaps.any():
        return as_images(X, name, shape)
    images = as_images(np.where(gaps, 0.0, X), name, shape)
    images[gaps.reshape(images.shape)] = np.nan
    return images


def row_form(X: Any) -> dict[str, Any]:
    """The shape and the types of the rows of X: numbers, texts and lists.

    shape : of a row, such as [28, 28] or [5].
    dtype : name of the type of the elements, where X is an array.
    frame : the library of a data frame, and `columns` the types of its columns.
    """
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame) and frame.implementation.value in _FRAMES:
            columns = [str(dtype) for dtype in frame.schema.values()]
            return {"shape": [len(columns)], "frame": frame.implementation.value, "columns": columns}
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    shape = [int(side) for side in X.shape[1:]] if getattr(X, "ndim", 0) >= 2 else []
    dtype = np.dtype(X.dtype) if isinstance(X, np.ndarray) and X.dtype.kind in "buif" else np.dtype(np.float64)
    return {"shape": shape, "dtype": dtype.name}


def as_given(values: np.ndarray, form: dict[str, Any], names: Sequence[str] | None) -> Any:
    """Rows of numbers, in the shape and the types of `form`: whole numbers are rounded, bytes end at 0 and 255."""
    if "frame" in form:
        names = names or [str(j) for j in range(len(form["columns"]))]
        columns = {
            name: _cast(values[:, j], dtype) for j, (name, dtype) in enumerate(zip(names, form["columns"], strict=True))
        }
        return nw.from_dict(columns, backend=form["frame"]).to_native()
    return _cast(values.reshape(len(values), *form["shape"]), form["dtype"])


def _numpy_type(name: str) -> np.dtype[Any]:
    """NumPy's type of a column, by the name that narwhals has for it."""
    known = name.lower().removesuffix("ean")  # "Boolean"
    return np.dtype(known if re.fullmatch(r"bool|u?int(8|16|32|64)|float(16|32|64)", known) else np.float64)


def _cast(values: np.ndarray, name: str) -> np.ndarray:
    """Values in a type: the nearest that it has, also where it ends, as float16 does at 65,504."""
    wanted = _numpy_type(name)
    if wanted.kind == "b":
        return np.asarray(values > 0.5)
    if wanted.kind in "iu":
        ends = np.iinfo(wanted)
        values = np.rint(values).clip(ends.min, ends.max)
    else:
        largest = np.finfo(wanted).max
        values = np.where(np.isfinite(values), values.clip(-largest, largest), values)
    found: np.ndarray = np.ascontiguousarray(values, dtype=wanted)
    return found
