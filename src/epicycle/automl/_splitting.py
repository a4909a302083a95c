"""The test part, set aside first, and the folds of the rest: at random, by groups, or in order of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._column_kinds import as_dates, as_numbers, as_text, kind_of_column, sample_of
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.select._inputs import Rows, Split, folds_of, held_out_part

__all__ = ["Plan", "folds", "order_of", "split_table"]


@dataclass(frozen=True)
class Plan:
    """How rows are divided, in words and in numbers.

    how : "at random", "with equal shares of classes", "whole groups at a time" or "in order of time".
    """

    how: str
    ordered: bool = False


def order_of(table: pa.Table, asked: str | None, skip: tuple[str, ...]) -> tuple[str | None, np.ndarray | None]:
    """The column of time, and the order of the rows by it; None where they are in no such order.

    "auto" finds a column of dates by which the rows are sorted already.
    """
    if asked is None or asked == "none":
        return None, None
    if asked != "auto":
        if asked not in table.column_names:
            raise DataError(f"order={asked!r}: the table has no such column")
        return asked, np.argsort(_times(table[asked], asked), kind="stable")
    for name in table.column_names:
        if name in skip:
            continue
        found = kind_of_column(sample_of(table.select([name]), 2_000)[name], name).kind
        if not found.startswith("date") or table[name].null_count:
            continue
        times = _times(table[name], name)
        steps = np.diff(times)
        if len(np.unique(times)) >= max(10, 0.02 * len(times)) and not np.isnan(times).any():
            if (steps >= 0).all():
                return name, np.arange(len(times))
            if (steps <= 0).all():
                return name, np.arange(len(times))[::-1].copy()
    return None, None


def _times(column: Any, name: str) -> np.ndarray:
    kind = kind_of_column(column, name).kind
    if kind.startswith("date"):
        return as_numbers(as_dates(column, kind.removeprefix("date").strip()).cast(pa.int64()))
    values = as_numbers(column)
    if np.isnan(values).all():
        raise DataError(f"order={name!r}: expected dates or numbers")
    return values


def split_table(
    table: pa.Table,
    y: np.ndarray,
    *,
    task: str,
    test_size: float,
    groups: np.ndarray | None = None,
    order: np.ndarray | None = None,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, Plan]:
    """Numbers of the rows to learn from and of those to test on, each in the order in which they are to be used."""
    n = len(y)
    if not 0 < test_size < 1:
        raise ParameterError(f"test_size={test_size!r}; expected a share between 0 and 1")
    if order is not None:
        cut = min(max(n - round(n * test_size), 1), n - 1)
        return order[:cut], order[cut:], Plan("in order of time", ordered=True)
    classifier = task == "classification"
    rows = Rows(np.empty((n, 1)), y, None, groups)
    train, test = held_out_part(rows, test_size, classifier=classifier, ordered=False, seed=seed)
    if groups is not None:
        return train, test, Plan("whole groups at a time")
    return train, test, Plan("with equal shares of classes" if classifier else "at random")


def folds(
    y: np.ndarray, *, task: str, groups: np.ndarray | None, ordered: bool, seed: int, k: int | None = None
) -> list[Split]:
    """Splits of the training part; fewer folds for more rows, one split for millions."""
    n = len(y)
    if k is None:
        k = 5 if n <= 200_000 else 3
    if groups is not None:
        k = min(k, len(np.unique(groups)))
    k = max(2, min(k, n // 2))
    rows = Rows(np.empty((n, 1)), y, None, groups)
    splits = folds_of(rows, k, classifier=task == "classification", ordered=ordered, seed=seed)
    if task == "classification":
        # A fold of one class can be neither learnt from nor scored.
        usable = [(a, b) for a, b in splits if len(np.unique(y[a])) > 1 and len(np.unique(y[b])) > 1]
        if not usable and ordered:
            usable = folds_of(Rows(np.empty((n, 1)), y), k, classifier=True, seed=seed)
        splits = usable or splits
    return splits[-1:] if n > 2_000_000 else splits


def group_labels(table: pa.Table, name: str) -> np.ndarray:
    """The groups of all rows as whole numbers; a missing one is a group of its own."""
    if name not in table.column_names:
        raise DataError(f"groups={name!r}: the table has no such column")
    text = as_text(table[name])
    codes = (
        text.dictionary_encode() if not isinstance(text, pa.ChunkedArray) else text.combine_chunks().dictionary_encode()
    )
    numbers: np.ndarray = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    if len(np.unique(numbers)) < 2:
        raise DataError(f"groups={name!r}: one group only; expected at least 2")
    return numbers
