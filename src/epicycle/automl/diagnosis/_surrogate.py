"""A global surrogate: a small tree that imitates the predictions of a model, and how well it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epicycle.automl.diagnosis._explanations import Explained
from epicycle.core._exceptions import DataError
from epicycle.diagnose._tree_rules import branch_of, splittable, whole_columns
from epicycle.tree import DecisionTreeRegressor

#: Rows that the tree is grown on, its leaves, and the levels of a category beyond which its rules cannot be read.
_ROWS, _LEAVES, _DEPTH, _LEVELS = 2_000, 8, 3, 30


def surrogate_tree(explained: Explained, train: pa.Table, kinds: Mapping[str, str], seed: int) -> dict[str, Any]:
    """The tree as nested nodes, and its R2 to the predictions on the test rows; empty where no column can be split."""
    part = train.take(pa.array(np.unique(np.linspace(0, train.num_rows - 1, _ROWS).astype(int))))
    names = [name for name in explained.table.column_names if _is_splittable(part[name], kinds.get(name, ""))]
    try:
        features, categorical, _ = splittable(part.select(names), part.num_rows)
    except DataError:
        return {}
    names = list(features.column_names)
    tree = DecisionTreeRegressor(
        max_depth=_DEPTH,
        max_leaf_nodes=_LEAVES,
        min_samples_leaf=max(5, part.num_rows // 50),
        categorical_features=categorical or None,
        random_state=seed,
    ).fit(features, explained.predict(part))
    if len(tree.tree_.feature) < 2:
        return {}
    wanted = explained.predict(explained.table)
    left = float(((wanted - tree.predict(explained.table.select(names))) ** 2).sum())
    whole_sum = float(((wanted - wanted.mean()) ** 2).sum())
    fidelity = 1.0 - left / whole_sum if whole_sum > 0 else None
    return {"of": explained.what, "rows": len(wanted), "fidelity": fidelity, "root": _nested(tree, features)}


def _is_splittable(column: pa.ChunkedArray, kind: str) -> bool:
    if kind == "number":
        return bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type))
    return kind == "category" and 1 < int(pc.count_distinct(column.drop_null()).as_py()) <= _LEVELS


def _nested(tree: Any, features: pa.Table) -> dict[str, Any]:
    """The nodes of a tree: condition, mean prediction, share of the rows, children."""
    whole, t = whole_columns(features), tree.tree_

    def walk(node: int, path: list[tuple[int, bool]]) -> dict[str, Any]:
        made: dict[str, Any] = {
            "condition": branch_of(tree, path, whole) if path else "",
            "mean": float(np.ravel(t.values[node])[0]),
            "share": float(t.n_node_samples[node] / t.n_node_samples[0]),
        }
        if (child := int(t.children_left[node])) >= 0:
            made["children"] = [walk(child + i, [*path, (node, i == 0)]) for i in range(2)]
        return made

    return walk(0, [])
