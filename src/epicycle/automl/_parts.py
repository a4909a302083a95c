"""Training and test set of a source, and the folds of the training set: at random, by groups, or in order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl.checks._data_checks import DataIssue
from epicycle.automl.tables._columns import (
    as_numbers,
    as_text,
    check_varies,
    choose_target,
    form_of,
    kind_of_column,
    known_rows,
    sample_of,
    target_values,
    task_of,
)
from epicycle.automl.tables._dates import as_dates
from epicycle.automl.tables._label_sets import column_of, with_labels
from epicycle.automl.tables._labelled_rows import like_labels
from epicycle.automl.tables._tables import like_data, read_table, source_name
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream
from epicycle.select._inputs import Rows, Split, folds_of, held_out_part


def order_of(table: pa.Table, asked: str | None, skip: tuple[str, ...]) -> tuple[str | None, np.ndarray | None]:
    """The column of time, and the order of the rows by it; None where the rows are not ordered.

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
        return as_numbers(as_dates(column, form_of(kind)).cast(pa.int64()))
    values = as_numbers(column)
    if np.isnan(values).all():
        raise DataError(f"order={name!r}: expected dates or numbers")
    return values


def split_rows(
    y: np.ndarray,
    *,
    task: str,
    test_size: float,
    groups: np.ndarray | None = None,
    order: np.ndarray | None = None,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, str]:
    """Indices of the training rows and of the test rows in the order of use, and how they were split."""
    n = len(y)
    if not 0 < test_size < 1:
        raise ParameterError(f"test_size={test_size!r}; expected a share between 0 and 1")
    if order is not None:
        n_train = min(max(n - round(n * test_size), 1), n - 1)
        return order[:n_train], order[n_train:], "in order of time"
    classifier = task == "classification"
    if groups is not None or not classifier:
        rows = Rows(np.empty((n, 1)), y, None, groups)
        train, test = held_out_part(rows, test_size, classifier=classifier, ordered=False, seed=seed)
        return train, test, "at random" if groups is None else "by groups"
    # The only row of a class is a training row: a class that no fit has seen cannot be predicted.
    codes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    several = np.flatnonzero(counts[codes] > 1)
    rest = Rows(np.empty((len(several), 1)), y[several])
    split = held_out_part(rest, test_size, classifier=True, ordered=False, seed=seed)
    test = several[split[1]]
    seen = np.bincount(codes, minlength=len(counts)) > np.bincount(codes[test], minlength=len(counts))
    unseen = [test[codes[test] == k][0] for k in np.flatnonzero(~seen)]
    test = np.setdiff1d(test, unseen)
    return np.setdiff1d(np.arange(n), test), test, "stratified by class"


def folds(
    y: np.ndarray, *, task: str, groups: np.ndarray | None, ordered: bool, seed: int, k: int | None = None
) -> list[Split]:
    """Splits of the training set; fewer folds for more rows, one split for millions."""
    n = len(y)
    if k is None:
        # With more rows the score of a fold is precise, and a fold costs more.
        k = 5 if n <= 200_000 else 3
    if groups is not None:
        k = min(k, len(np.unique(groups)))
    k = max(2, min(k, n // 2))
    rows = Rows(np.empty((n, 1)), y, None, groups)
    codes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    if task == "classification" and groups is None and not ordered and counts.min() < k:
        splits = _folds_with_rare_classes(codes, counts, k, seed)
    elif ordered and n >= _ORDERED_ROWS:
        # Every fold learns from at least half of the rows: the first part of a year says little of the rest.
        splits = folds_of(rows, 2 * k, classifier=task == "classification", ordered=True, seed=seed)[-k:]
    else:
        splits = folds_of(rows, k, classifier=task == "classification", ordered=ordered, seed=seed)
    if task == "classification":
        # With one class only a fold can be neither fitted nor scored.
        # Ordered or grouped folds may lack a class.
        usable = [(a, b) for a, b in splits if len(np.unique(y[a])) > 1 and len(np.unique(y[b])) > 1]
        if not usable and ordered:
            usable = folds_of(Rows(np.empty((n, 1)), y), k, classifier=True, seed=seed)
        splits = usable or splits
    return splits[-1:] if n > 2_000_000 else splits


def _folds_with_rare_classes(codes: np.ndarray, counts: np.ndarray, k: int, seed: int) -> list[Split]:
    """Stratified folds where a class has fewer rows than there are folds: each class is in every training part.

    The rows of each class are dealt out in turn. The only row of a class is never a test row.
    """
    order = stream(seed, "folds").permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    dealt = order[counts[codes[order]] > 1]
    fold = np.full(len(codes), -1)
    fold[dealt] = np.arange(len(dealt)) % k
    return [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(k) if (fold == j).any()]


#: Rows in order of time from which a tenth of them is enough to test on.
_ORDERED_ROWS = 500
#: Test rows of a class from which it is scored: with fewer, all of them right, the 95% interval of its share of right
#: predictions still holds one half (0.025^(1/5) = 0.48).
_EVALUATED_ROWS = 6


def rare_classes(y_train: np.ndarray, y_test: np.ndarray, name: str) -> list[DataIssue]:
    """An issue that names the classes which are too rare for a judgement about them."""
    classes, codes = np.unique(np.concatenate([y_train, y_test]), return_inverse=True)
    learnt, tested = (
        np.bincount(part, minlength=len(classes)) for part in (codes[: len(y_train)], codes[len(y_train) :])
    )
    rare = [k for k in np.argsort(tested, kind="stable") if tested[k] < _EVALUATED_ROWS]
    if not rare:
        return []
    listed = ", ".join(f"{classes[k]!s:.40} ({learnt[k]:,} training and {tested[k]:,} test rows)" for k in rare[:6])
    more = f" and {len(rare) - 6} more" if len(rare) > 6 else ""
    text = f"{name}: too rare to be evaluated, with fewer than {_EVALUATED_ROWS} test rows: {listed}{more}"
    return [DataIssue("rare classes", "medium" if (learnt[rare] < _EVALUATED_ROWS).any() else "low", text, (name,))]


def group_labels(table: pa.Table, name: str) -> np.ndarray:
    """The groups of all rows as whole numbers; a missing one is a group of its own."""
    if name not in table.column_names:
        raise DataError(f"groups={name!r}: the table has no such column")
    numbers = _codes(table[name])
    if len(np.unique(numbers)) < 2:
        raise DataError(f"groups={name!r}: one group only; expected at least 2")
    return numbers


def _codes(column: Any) -> np.ndarray:
    """A whole number for each distinct value; -1 where it is missing."""
    text = as_text(column)
    codes = (text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text).dictionary_encode()
    numbers: np.ndarray = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


@dataclass
class Parts:
    """Training set and test set.

    Attributes
    ----------
    train, test : pyarrow.Table
        Their rows, all columns.
    y_train, y_test : ndarray
    weight_train, weight_test : ndarray or None
    groups_train : ndarray or None
    rows_test : ndarray
        Indices of the test rows in the source.
    target, task : str
    roles : dict
        Columns that are no features, by name: "target", "weight", "group", "order".
    how : str
        How the rows were split.
    ordered : bool
        Whether the rows are in order of time.
    warned : list of DataIssue
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
    warned: list[DataIssue]

    @property
    def n_rows(self) -> int:
        return len(self.y_train) + len(self.y_test)


def read_parts(
    data: Any,
    *,
    target: str | None = None,
    also: Sequence[str] = (),
    labels: str | None = None,
    task: str = "auto",
    test: Any = None,
    test_size: float = 0.2,
    groups: str | None = None,
    weight: str | None = None,
    order: str | None = "auto",
    header: bool = True,
    seed: int = 0,
) -> Parts:
    """Read a source and split it into training and test set.

    Parameters
    ----------
    data : str, path or frame
        As for :func:`read_table`.
    target : str, optional
        The column to predict; by default one called target, y, label, class, outcome or response, else the last.
    also : list of str, optional
        Further targets, which are no features. Rows that lack one are left out; the split is the same whichever of the
        targets is the first, with rare classes of all of them in both parts.
    labels : str, optional
        A column of several labels a row. `target` and `also` are then columns of yes and no, "labels=label".
    task : {"auto", "regression", "classification"}, default="auto"
    test : str, path or frame, optional
        A separate test set; all rows of `data` are then training rows.
    test_size : float, default=0.2
        Share of the rows for the test set.
    groups : str, optional
        A column of groups; the rows of a group are all in the training set or all in the test set.
    weight : str, optional
        A column of sample weights.
    order : str, optional
        A column of time: the last rows are the test set. "auto" takes a column of dates by which the rows are sorted
        already; None splits at random.
    header : bool, default=True
        Whether the first line of a CSV file names the columns; otherwise they are called x0, x1, ...
    seed : int, default=0

    Returns
    -------
    Parts

    Examples
    --------
    >>> from epicycle.automl import read_parts
    >>> parts = read_parts("iris")
    >>> parts.task, parts.train.num_rows, parts.test.num_rows, parts.how
    ('classification', 120, 30, 'stratified by class')
    """
    asked = [] if target is None else [target, *also]
    table = _with_columns_of_labels(read_table(data, header=header), labels, asked)
    name, why = choose_target(table, target, data)
    roles = _roles(table, name, groups, weight)
    table, present, incomplete = _with_further_targets(table, name, also, roles)
    if table[name].null_count == table.num_rows:
        raise DataError(f"target {name!r}: all values are missing")
    task = task_of(table[name], task)
    table, rows, warned = _with_target(table, name, task)
    rows, warned = present[rows], [*incomplete, *warned]
    if header and like_data(table.column_names):
        text = "the names of the columns are numbers: if the first line is a row, give --no-header (header=False)"
        warned.append(DataIssue("header", "high", text))
    y = target_values(table[name], classes=task == "classification", name=name)
    check_varies(y, name, classes=task == "classification")
    if len(table.column_names) == len(roles):
        raise DataError("the table has no column besides the target; expected features")
    time_column, at = (None, None) if groups is not None else order_of(table, order, tuple(roles))
    if time_column is not None:
        roles[time_column] = "order"
    g = None if groups is None else group_labels(table, groups)
    w = None if weight is None else _weights(table[weight], weight)
    if test is None:
        strata, kind = (y, task) if not also else _strata(table, [name, *also])
        train, held, how = split_rows(strata, task=kind, test_size=test_size, groups=g, order=at, seed=seed)
        later, y_test, rows_test = table.take(pa.array(held)), y[held], rows[held]
        w_test = None if w is None else w[held]
    else:
        train, how = np.arange(len(y)) if at is None else at, "as given"
        given = _with_columns_of_labels(read_table(test, header=header), labels, asked)
        given, there, few = _with_further_targets(given, name, also, {})
        later, y_test, rows_test, more = _given_test(given, test, table, y, roles, name, task)
        rows_test, more = there[rows_test], [*few, *more]
        w_test = None if weight is None else _weights(later[weight], weight)
        warned += more
    if task == "classification":
        warned += rare_classes(y[train], y_test, name)
    earlier = table if test is not None and at is None else table.take(pa.array(train))
    # The parts are copies: without this the source would stay in memory during the whole search.
    del table
    pa.default_memory_pool().release_unused()
    return Parts(
        train=earlier,
        test=later,
        y_train=y[train],
        y_test=y_test,
        weight_train=None if w is None else w[train],
        weight_test=w_test,
        groups_train=None if g is None else g[train],
        rows_test=rows_test,
        target=name,
        why_target=why,
        task=task,
        roles=roles,
        how=how,
        ordered=at is not None,
        warned=warned,
    )


def _with_columns_of_labels(table: pa.Table, labels: str | None, columns: Sequence[str]) -> pa.Table:
    """The table with a column for each label in the place of their common one."""
    if labels is None:
        return table
    start = column_of(labels, "")
    return with_labels(table, labels, [column.removeprefix(start) for column in columns] or None)[0]


def _with_further_targets(
    table: pa.Table, target: str, also: Sequence[str], roles: dict[str, str]
) -> tuple[pa.Table, np.ndarray, list[DataIssue]]:
    """The rows that have all further targets, their indices, and an issue for the others; these are no features."""
    known = np.ones(table.num_rows, bool)
    for name in also:
        if name not in table.column_names:
            raise DataError(f"target={name!r}: the table has no such column")
        if name in roles or name == target:
            raise ParameterError(f"target={name!r}: is already the {roles.get(name, 'target')}")
        roles[name] = "drop"
        known &= known_rows(table[name], classes=task_of(table[name], "auto") == "classification")
    rows = np.flatnonzero(known)
    if known.all():
        return table, rows, []
    gone = int((~known).sum())
    text = f"{gone:,} rows ({gone / len(known):.1%}) lack another target and are left out"
    severity = "medium" if gone > 0.05 * len(known) else "low"
    return table.filter(pa.array(known)), rows, [DataIssue("missing target", severity, text, tuple(also))]


#: Distinct values up to which a further target counts for the split.
_MOST_STRATA = 20


def _strata(table: pa.Table, names: Sequence[str]) -> tuple[np.ndarray, str]:
    """A stratum of each row for the split: its rarest class among all targets, in an order that they do not depend on.

    As in iterative stratification (Sechidis et al. 2011) the rarest classes are divided first; unlike there each row
    counts for one class alone.
    """
    rarest, stratum = np.full(table.num_rows, table.num_rows + 1), np.zeros(table.num_rows, np.int64)
    for j, name in enumerate(sorted(names)):
        codes = _codes(table[name])
        counts = np.bincount(codes)
        if len(counts) > _MOST_STRATA:
            continue
        rarer = counts[codes] < rarest
        rarest = np.where(rarer, counts[codes], rarest)
        stratum = np.where(rarer, j * _MOST_STRATA + codes, stratum)
    return stratum, "classification" if len(np.unique(stratum)) > 1 else "regression"


def _roles(table: pa.Table, target: str, groups: str | None, weight: str | None) -> dict[str, str]:
    roles = {target: "target"}
    for argument, column, role in (("groups", groups, "group"), ("weight", weight, "weight")):
        if column is None:
            continue
        if column not in table.column_names:
            raise DataError(f"{argument}={column!r}: the table has no such column")
        if column in roles:
            raise ParameterError(f"{argument}={column!r}: is already the {roles[column]}")
        roles[column] = role
    return roles


def _with_target(table: pa.Table, name: str, task: str) -> tuple[pa.Table, np.ndarray, list[DataIssue]]:
    """The rows that have a target, their indices, and an issue for the others."""
    known = known_rows(table[name], classes=task == "classification")
    rows = np.arange(table.num_rows)
    if known.all():
        return table, rows, []
    gone = int((~known).sum())
    text = f"{gone:,} rows ({gone / len(known):.1%}) have no {name} and are left out"
    severity = "medium" if gone > 0.05 * len(known) else "low"
    return table.filter(pa.array(known)), rows[known], [DataIssue("missing target", severity, text, (name,))]


def _weights(column: Any, name: str) -> np.ndarray:
    try:
        weights = as_numbers(column)
    except DataError as error:
        raise DataError(f"weight={name!r}: {error}") from None
    if np.isnan(weights).any() or (weights < 0).any() or not weights.any():
        raise DataError(f"weight={name!r}: expected numbers >= 0, none of them missing, not all zero")
    return weights


def _given_test(
    held: pa.Table, source: Any, table: pa.Table, y: np.ndarray, roles: dict[str, str], name: str, task: str
) -> tuple[pa.Table, np.ndarray, np.ndarray, list[DataIssue]]:
    """The rows of a separate test set, their targets, their indices, and issues."""
    gone = [column for column in table.column_names if column not in held.column_names and roles.get(column) != "group"]
    if gone:
        raise DataError(f"test: {source_name(source)} has no column {', '.join(map(repr, gone[:5]))}")
    held, rows, issues = _with_target(held, name, task)
    if held.num_rows == 0:
        raise DataError(f"test: no row of {source_name(source)} has a {name}")
    y_test = target_values(held[name], classes=task == "classification", name=name)
    if task == "classification":
        y_test, new = like_labels(y_test, np.unique(y))
        if new:
            raise DataError(f"test: {name!r} has classes that the training rows do not have: {', '.join(new[:5])}")
    return held, y_test, rows, issues
