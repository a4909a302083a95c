"""A column of several labels a row, as one column of yes and no for each label."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl.tables._columns import decoded
from epicycle.core._exceptions import DataError

#: Rows with and without a label at least: five folds of the training part and the test part then have some of both.
_FEWEST_ROWS = 10
#: Labels at most, the most frequent.
_MOST_LABELS = 100
#: Characters that may stand between labels, the most usual first.
_SEPARATORS = ("|", ";", ",", " ")


def with_labels(table: pa.Table, name: str, wanted: list[str] | None = None) -> tuple[pa.Table, list[str], list[str]]:
    """The table with a column for each label in the place of the column `name`; names of the columns, labels left out.

    wanted : the labels; by default those of enough rows, the most frequent first.
    """
    if name not in table.column_names:
        raise DataError(f"target={name!r}: the table has no such column")
    sets = label_sets(table[name], name)
    left_out: list[str] = []
    if wanted is None:
        counts = Counter(label for labels in sets if labels is not None for label in labels)
        known = sum(labels is not None for labels in sets)
        ranked = sorted(counts, key=lambda label: (-counts[label], label))
        enough = [label for label in ranked if _FEWEST_ROWS <= counts[label] <= known - _FEWEST_ROWS]
        wanted = enough[:_MOST_LABELS]
        left_out = [label for label in ranked if label not in set(wanted)]
    if not wanted:
        raise DataError(
            f"target {name!r}: no label is in at least {_FEWEST_ROWS} rows and not in as many; nothing can be learnt"
        )
    gone = pa.array([labels is None for labels in sets])
    columns = [column_of(name, label) for label in wanted]
    if taken := [column for column in columns if column in table.column_names]:
        raise DataError(f"target {name!r}: the table has a column {taken[0]!r} already, the name of a label")
    out = table.drop_columns([name])
    for column, label in zip(columns, wanted, strict=True):
        values = pa.array([False if labels is None else label in labels for labels in sets], mask=np.asarray(gone))
        out = out.append_column(column, values)
    return out, columns, left_out


def column_of(name: str, label: str) -> str:
    """The name of the column of a label."""
    return f"{name}={label}"


def label_sets(column: Any, name: str) -> list[frozenset[str] | None]:
    """The labels of each row: elements of a list, or parts of a text between separators; None where it is missing."""
    column = decoded(column)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        return [_set_of(value) if value is not None else None for value in column.to_pylist()]
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise DataError(f"target {name!r}: values of type {column.type}; expected lists of labels, or texts of several")
    texts = [value if value is None else re.sub(r"[\[\](){}'\"]", "", value) for value in column.to_pylist()]
    separator = separator_of([text for text in texts if text])
    if separator is None:
        listed = ", ".join(repr(mark) for mark in _SEPARATORS)
        raise DataError(f"target {name!r}: no row has several labels; expected lists, or texts divided by {listed}")
    return [None if text is None else _set_of(text.split(separator)) for text in texts]


def separator_of(texts: list[str]) -> str | None:
    """The first of the separators that stands in some texts and divides them into parts that come again."""
    for mark in _SEPARATORS:
        divided = [text.split(mark) for text in texts if mark in text]
        # One separator in a long free text proves nothing: most parts must be known from other rows.
        if len(divided) >= max(2, 0.01 * len(texts)):
            counts = Counter(part.strip() for text in texts for part in text.split(mark))
            if 2 * sum(count > 1 for count in counts.values()) >= len(counts):
                return mark
    return None


def _set_of(values: Any) -> frozenset[str]:
    labels = (str(value).strip() for value in values if value is not None)
    return frozenset(label for label in labels if label)
