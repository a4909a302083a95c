"""Rules of a small tree in words: its leaves, its branches, and the columns that it can split."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _num_samples

from epicycle.core._exceptions import DataError
from epicycle.data._frames import is_frame
from epicycle.report._plain import brief
from epicycle.select._inputs import take
from epicycle.tree.cart._export import question


def splittable(X: Any, n: int) -> tuple[Any, list[Any], list[str]]:
    """The columns that a tree can split, the names of the categorical ones, and notes on columns left out."""
    if _num_samples(X) != n:
        raise DataError(f"features: {_num_samples(X)} rows; X has {n}")
    if not is_frame(X):
        return (np.asarray(X) if isinstance(X, list | tuple) else X), [], []
    frame = nw.from_native(X, eager_only=True)
    categorical: list[Any] = []
    kept, left = [], []
    for j, (name, dtype) in enumerate(frame.schema.items()):
        if dtype.is_numeric() or dtype == nw.Boolean:
            kept.append(j)
        elif dtype in (nw.Categorical, nw.Enum, nw.String, nw.Object) or isinstance(dtype, nw.Enum | nw.Categorical):
            kept.append(j)
            categorical.append(name)
        else:
            left.append(name)
    if not kept:
        raise DataError("features: no column of numbers, categories or text to describe slices by")
    notes = [f"columns that slices cannot be described by: {', '.join(map(str, left))}"] if left else []
    return (X if not left else take(X, np.array(kept))), categorical, notes


def rule_of(tree: Any, path: list[tuple[int, bool]], whole: Mapping[int, tuple[float, float]]) -> str:
    """The conditions on the path to a leaf: of each number one range, in whole numbers where all values are."""
    names = tree._names()
    ranges: dict[int, list[float]] = {}
    parts: dict[tuple[int, int], str] = {}
    for node, left in path:
        t = tree.tree_
        feature, value = int(t.feature[node]), float(t.threshold[node])
        if t.is_categorical[node] or not np.isfinite(value):
            parts[(feature, node + 1)] = question(tree, node, 3, left=left)  # questions about categories are kept all
        else:
            ranges.setdefault(feature, [-np.inf, np.inf])[int(left)] = value  # deeper ones are tighter
            low, high = ranges[feature]
            parts[(feature, 0)] = range_of(names[feature], (low, high), whole.get(feature))
    return " and ".join(parts.values()) or "all rows"


def branch_of(tree: Any, path: list[tuple[int, bool]], whole: Mapping[int, tuple[float, float]]) -> str:
    """The condition at the last node of a path, within what is known of its column from the nodes before.

    Of a set of one level the level is said.
    """
    t, node = tree.tree_, path[-1][0]
    is_range = not t.is_categorical[node] and np.isfinite(t.threshold[node])
    same = [step for step in path if t.feature[step[0]] == t.feature[node]] if is_range else path[-1:]
    rule = rule_of(tree, [step for step in same if not t.is_categorical[step[0]]] if is_range else same, whole)
    return re.sub(r" (?:(not) )?in \{([^,{}]+)\}$", lambda found: f" {found[1] or '='} {found[2]}", rule)


def range_of(name: Any, ends: tuple[float, float], whole: tuple[float, float] | None) -> str:
    """Numbers above the first and not above the second of `ends`, as a person would say it.

    `whole` are the least and the largest value of a column of whole numbers.
    """
    low, high = ends
    if whole is not None:
        first, last = max(np.floor(low) + 1, whole[0]), min(np.floor(high), whole[1])
        if first == last:
            return f"{name} = {brief(first)}"
        if low > -np.inf and high < np.inf:
            return f"{name} from {brief(first)} to {brief(last)}"
        return f"{name} <= {brief(last)}" if high < np.inf else f"{name} >= {brief(first)}"
    if low > -np.inf and high < np.inf:
        return f"{name} from {low:.4g} to {high:.4g}"
    return f"{name} <= {high:.4g}" if high < np.inf else f"{name} > {low:.4g}"


def whole_columns(table: Any) -> dict[int, tuple[float, float]]:
    """Columns of small whole numbers, with their ends."""
    found: dict[int, tuple[float, float]] = {}
    frame = nw.from_native(table, eager_only=True) if is_frame(table) else None
    for j in range(table.shape[1]):
        column = np.asarray(table[:, j]) if frame is None and not sp.issparse(table) else None
        if frame is not None:
            series = frame[:, j]
            column = series.drop_nulls().to_numpy() if series.dtype.is_numeric() else None
        if column is None or column.dtype.kind not in "iuf":
            continue
        values = column[np.isfinite(column)]
        if len(values) and np.abs(values).max() < 1e6 and (values == np.floor(values)).all():
            found[j] = (float(values.min()), float(values.max()))
    return found


def leaf_rules(tree: Any, whole: Mapping[int, tuple[float, float]]) -> dict[int, str]:
    children = tree.tree_.children_left
    found: dict[int, str] = {}

    def walk(node: int, path: list[tuple[int, bool]]) -> None:
        if children[node] < 0:
            found[node] = rule_of(tree, path, whole)
            return
        walk(int(children[node]), [*path, (node, True)])
        walk(int(children[node]) + 1, [*path, (node, False)])

    walk(0, [])
    return found
