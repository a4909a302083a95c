"""What is to be predicted: which column, numbers or classes, and its values as an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epicycle.automl._column_kinds import as_numbers, as_text
from epicycle.automl._tables import EMBEDDED
from epicycle.core._exceptions import DataError, ParameterError

__all__ = ["choose_target", "is_count", "target_values", "task_of"]

#: Whole numbers with no more different values than this are classes, unless the task says otherwise.
MOST_CLASSES_OF_NUMBERS = 10
MOST_CLASSES = 200

_USUAL = ("target", "y", "label", "class", "outcome", "response")


def choose_target(table: pa.Table, asked: str | None, source: Any) -> tuple[str, str]:
    """The column to predict, and why it is that one."""
    names = table.column_names
    if asked is not None:
        if asked not in names:
            from difflib import get_close_matches

            close = get_close_matches(asked, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(map(repr, names[:12]))}"
            raise DataError(f"target={asked!r}: the table has no such column{hint}")
        return asked, "as asked"
    if isinstance(source, str) and source in EMBEDDED and EMBEDDED[source][1] in names:
        return EMBEDDED[source][1], "of this data set"
    for usual in _USUAL:
        for name in names:
            if name.lower() == usual:
                return name, "by its name; --target names another"
    return names[-1], "the last column; --target names another"


def task_of(column: Any, asked: str) -> str:
    """ "regression" or "classification", for a target of which some values are known."""
    if asked not in ("auto", "regression", "classification"):
        raise ParameterError(f"task={asked!r}; expected 'auto', 'regression' or 'classification'")
    kind = column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    if asked == "regression":
        if text or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            values = as_numbers(column) if text else np.array([np.nan])
            if np.isnan(values).sum() > column.null_count:
                raise DataError(f"task='regression': the target holds values of type {kind}; expected numbers")
        return asked
    if asked == "classification":
        return asked
    if text or pa.types.is_boolean(kind):
        return "classification"
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"target: values of type {kind}; expected numbers, text or truth values")
    values = as_numbers(column)
    values = values[~np.isnan(values)]
    whole = bool((values == np.floor(values)).all())
    return "classification" if whole and len(np.unique(values)) <= MOST_CLASSES_OF_NUMBERS else "regression"


def target_values(column: Any, *, classes: bool, name: str) -> np.ndarray:
    """The target as an array: numbers, or labels as text, truth values or whole numbers; none may be missing."""
    if column.null_count:
        raise DataError(f"target {name!r}: {column.null_count} values are missing; leave these rows out")
    if not classes:
        values = as_numbers(column)
        if np.isnan(values).any():
            raise DataError(f"target {name!r}: {int(np.isnan(values).sum())} values are no finite numbers")
        return np.ascontiguousarray(values)
    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(column.to_pylist(), dtype=bool)
    if pa.types.is_integer(kind):
        values64: np.ndarray = column.cast(pa.int64()).to_numpy()
        return values64
    if pa.types.is_floating(kind):
        values = as_numbers(column)
        if (values == np.floor(values)).all():
            return values.astype(np.int64)
    return np.asarray(as_text(column).to_pylist(), dtype=str)


def known_rows(column: Any, *, classes: bool) -> np.ndarray:
    """Which rows have a target."""
    known = np.asarray(pc.is_valid(column).to_pylist(), dtype=bool) if column.null_count else np.ones(len(column), bool)
    if not classes and known.any():
        known &= ~np.isnan(as_numbers(column))
    return known


def check_varies(y: np.ndarray, name: str, *, classes: bool) -> None:
    """A target that says nothing, or too much, is refused."""
    if len(y) < 10:
        raise DataError(
            f"target {name!r}: {len(y)} row{'s' if len(y) != 1 else ''} with a target; expected at least 10"
        )
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 1:
        raise DataError(f"target {name!r}: is {values[0]!s:.40} in all rows; there is nothing to predict")
    if classes and len(values) > min(MOST_CLASSES, len(y) / 2):
        raise DataError(
            f"target {name!r}: {len(values)} different values in {len(y)} rows are too many for classes; for numbers "
            "say task='regression' (--task regression)"
        )
    if classes and counts.max() == len(y) - 1:
        raise DataError(
            f"target {name!r}: all rows but one are {values[counts.argmax()]!s:.40}; there is nothing to learn"
        )


def is_count(y: np.ndarray) -> bool:
    """Whether numbers look like counts: whole, not negative, small, and spread to the right."""
    whole = bool((y >= 0).all() and (y == np.floor(y)).all())
    return (
        whole and float(y.mean()) < 1000 and len(np.unique(y)) < 0.5 * len(y) and float(y.mean()) >= float(np.median(y))
    )
