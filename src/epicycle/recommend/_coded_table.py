"""Ids become codes: a table of two columns of codes, and the ids and features of both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.data import Scan
from epicycle.data._categories import LevelEncoder, learn_levels
from epicycle.data._dask_data import is_dask
from epicycle.recommend._side_features import aligned, with_featured
from epicycle.recommend._tables import Columns, coded, features_by_id, pair_columns, split, whole

Array = np.ndarray


@dataclass
class Side:
    """Ids of users or items, their features in the order of the ids, and which of them have features."""

    ids: Array
    features: Array | None = None
    known: Array | None = None

    @classmethod
    def of(cls, ids: Array, given: tuple[Array, Array] | None, label: str) -> Side:
        """All ids, with ratings or with features."""
        if given is None:
            return cls(ids)
        every = with_featured(ids, given[0], label)
        return cls(every, *aligned(every, *given))


def coded_table(
    X: Any, y: Any, columns: Columns, user_features: Any, item_features: Any, name: str
) -> tuple[Any, Any, Side, Side]:
    """Codes (user, item) as an array, or as files or a collection that stay lazy; ratings or None; both sides."""
    given = [
        None if features is None else features_by_id(f"{label}_features", features, column)
        for label, features, column in (("user", user_features, columns.user), ("item", item_features, columns.item))
    ]
    lazy = None
    if sp.issparse(X) and y is None:
        matrix = sp.coo_array(X)
        pairs = [(np.arange(n), np.asarray(c)) for n, c in zip(matrix.shape, matrix.coords, strict=True)]
        y = matrix.data
    else:
        X, y = split(X, y, columns)
        if isinstance(X, Scan) or is_dask(X):
            lazy = X
            levels = learn_levels(X, [0, 1], name, allow_missing=False)
            pairs = [(whole(levels[j]), np.empty(0, dtype=np.int32)) for j in (0, 1)]
        else:
            pairs = [coded(c, label) for c, label in zip(pair_columns(X), ("user", "item"), strict=True)]
    sides = [Side.of(pairs[s][0], given[s], label) for s, label in enumerate(("user", "item"))]
    if lazy is not None:
        levels = {0: sides[0].ids, 1: sides[1].ids}
        return LevelEncoder(levels, estimator_name=name, dtype=np.float64).encode(lazy), y, sides[0], sides[1]
    table = np.empty((len(pairs[0][1]), 2))
    for s, (ids, codes) in enumerate(pairs):
        table[:, s] = codes if len(ids) == len(sides[s].ids) else np.searchsorted(sides[s].ids, ids)[codes]
    return table, y, sides[0], sides[1]
