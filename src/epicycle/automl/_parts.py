"""From a source to the rows to learn from and the rows to test on: what is done first, and the same each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl._column_kinds import as_numbers
from epicycle.automl._profiles import Warned
from epicycle.automl._splitting import group_labels, order_of, split_table
from epicycle.automl._tables import read_table, source_name
from epicycle.automl._targets import check_varies, choose_target, known_rows, target_values, task_of
from epicycle.core._exceptions import DataError, ParameterError

__all__ = ["Parts", "read_parts"]


@dataclass
class Parts:
    """The training part and the test part.

    Attributes
    ----------
    train, test : pyarrow.Table
        Their rows, all columns.
    y_train, y_test : ndarray
    weight_train, weight_test : ndarray or None
    groups_train : ndarray or None
    rows_test : ndarray
        Where the test rows stand in the source.
    target, task : str
    roles : dict
        Columns that have a part of their own, by name: "target", "weight", "group", "order".
    how : str
        How the rows were divided.
    ordered : bool
        Whether the rows are in order of time.
    warned : list of Warned
    """

    train: pa.Table
    test: pa.Table
    y_train: np.ndarray
    y_test: np.ndarray
    weight_train: np.ndarray | None
    weight_test: np.ndarray | None
    groups_train: np.ndarray | None
    rows_test: np.ndarray
    target: str
    why_target: str
    task: str
    roles: dict[str, str]
    how: str
    ordered: bool
    warned: list[Warned]

    @property
    def n_rows(self) -> int:
        return len(self.y_train) + len(self.y_test)


def read_parts(
    data: Any,
    *,
    target: str | None = None,
    task: str = "auto",
    test: Any = None,
    test_size: float = 0.2,
    groups: str | None = None,
    weight: str | None = None,
    order: str | None = "auto",
    seed: int = 0,
) -> Parts:
    """Read a source and set its test part aside.

    Parameters
    ----------
    data : str, path or frame
        As for :func:`read_table`.
    target : str, optional
        The column to predict; by default one called target, y, label, class, outcome or response, else the last.
    task : {"auto", "regression", "classification"}, default="auto"
    test : str, path or frame, optional
        Test rows of their own; no row of `data` is then set aside.
    test_size : float, default=0.2
        The share of rows that is set aside.
    groups : str, optional
        A column whose values say which rows belong together; groups are never divided.
    weight : str, optional
        A column of weights.
    order : str, optional
        A column of time: the last rows are set aside. "auto" takes a column of dates by which the rows are sorted
        already; None takes rows at random.
    seed : int, default=0

    Returns
    -------
    Parts

    Examples
    --------
    >>> from epicycle.automl import read_parts
    >>> parts = read_parts("iris")
    >>> parts.task, parts.train.num_rows, parts.test.num_rows, parts.how
    ('classification', 120, 30, 'with equal shares of classes')
    """
    table = read_table(data)
    name, why = choose_target(table, target, data)
    roles = _roles(table, name, groups, weight)
    if table[name].null_count == table.num_rows:
        raise DataError(f"target {name!r}: all values are missing")
    task = task_of(table[name], task)
    table, rows, warned = _with_target(table, name, task)
    y = target_values(table[name], classes=task == "classification", name=name)
    check_varies(y, name, classes=task == "classification")
    if len(table.column_names) == len(roles):
        raise DataError("the table has no column besides the target; expected features")
    time_column, at = (None, None) if groups is not None else order_of(table, order, tuple(roles))
    if time_column is not None:
        roles[time_column] = "order"
    g = None if groups is None else group_labels(table, groups)
    w = None if weight is None else _weights(table[weight], weight)
    if test is not None:
        return _given_test(test, table, y, w, g, at, roles, name, why, task, warned, ordered=time_column is not None)
    train, held, plan = split_table(table, y, task=task, test_size=test_size, groups=g, order=at, seed=seed)
    chosen = table.take(pa.array(train)), table.take(pa.array(held))
    del table
    pa.default_memory_pool().release_unused()
    return Parts(
        train=chosen[0], test=chosen[1], y_train=y[train], y_test=y[held],
        weight_train=None if w is None else w[train], weight_test=None if w is None else w[held],
        groups_train=None if g is None else g[train], rows_test=rows[held], target=name, why_target=why, task=task,
        roles=roles, how=plan.how, ordered=plan.ordered, warned=warned,
    )  # fmt: skip


def _roles(table: pa.Table, target: str, groups: str | None, weight: str | None) -> dict[str, str]:
    roles = {target: "target"}
    for argument, column, role in (("groups", groups, "group"), ("weight", weight, "weight")):
        if column is None:
            continue
        if column not in table.column_names:
            raise DataError(f"{argument}={column!r}: the table has no such column")
        if column in roles:
            raise ParameterError(f"{argument}={column!r}: is the {roles[column]} already")
        roles[column] = role
    return roles


def _with_target(table: pa.Table, name: str, task: str) -> tuple[pa.Table, np.ndarray, list[Warned]]:
    """The rows that have a target, where they stood, and a word about the others."""
    known = known_rows(table[name], classes=task == "classification")
    rows = np.arange(table.num_rows)
    if known.all():
        return table, rows, []
    gone = int((~known).sum())
    said = f"{gone:,} rows ({gone / len(known):.1%}) have no {name} and are left out"
    severity = "medium" if gone > 0.05 * len(known) else "low"
    return table.filter(pa.array(known)), rows[known], [Warned("missing target", severity, said, (name,))]


def _weights(column: Any, name: str) -> np.ndarray:
    try:
        weights = as_numbers(column)
    except DataError as error:
        raise DataError(f"weight={name!r}: {error}") from None
    if np.isnan(weights).any() or (weights < 0).any() or not weights.any():
        raise DataError(f"weight={name!r}: expected numbers >= 0, none of them missing, not all zero")
    return weights


def _given_test(
    source: Any, table: pa.Table, y: np.ndarray, w: np.ndarray | None, g: np.ndarray | None, at: np.ndarray | None,
    roles: dict[str, str], name: str, why: str, task: str, warned: list[Warned], *, ordered: bool,
) -> Parts:  # fmt: skip
    held = read_table(source)
    gone = [column for column in table.column_names if column not in held.column_names and roles.get(column) != "group"]
    if gone:
        raise DataError(f"test: {source_name(source)} has no column {', '.join(map(repr, gone[:5]))}")
    held, rows, more = _with_target(held, name, task)
    if held.num_rows == 0:
        raise DataError(f"test: no row of {source_name(source)} has a {name}")
    y_test = target_values(held[name], classes=task == "classification", name=name)
    if task == "classification":
        y_test = y_test if y_test.dtype.kind == y.dtype.kind else y_test.astype(y.dtype)
        if len(new := np.setdiff1d(y_test, y)):
            raise DataError(
                f"test: {name!r} has classes that the training rows do not have: {', '.join(map(str, new[:5]))}"
            )
    weight = next((column for column, role in roles.items() if role == "weight"), None)
    order = np.arange(len(y)) if at is None else at
    return Parts(
        train=table.take(pa.array(order)) if at is not None else table, test=held, y_train=y[order], y_test=y_test,
        weight_train=None if w is None else w[order],
        weight_test=None if weight is None else _weights(held[weight], weight),
        groups_train=None if g is None else g[order], rows_test=rows, target=name, why_target=why, task=task,
        roles=roles, how="as given", ordered=ordered, warned=[*warned, *more],
    )  # fmt: skip
