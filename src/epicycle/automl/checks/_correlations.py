"""Rank correlations of the columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

#: Columns that a report shows, and rows from which they are computed.
_MOST, _ROWS = 12, 20_000


def rank_correlations(
    features: np.ndarray,
    sources: Sequence[str],
    categorical: Sequence[int],
    association: Mapping[str, float],
    target: tuple[str, np.ndarray] | None,
) -> dict[str, Any]:
    """Spearman's correlations of the numbers that tell most of the target, which comes first where it is a number.

    Of each pair the rows in which both are known. Empty where there are fewer than two columns.
    """
    step = max(1, len(features) // _ROWS)
    once = [j for j, name in enumerate(sources) if j not in set(categorical) and list(sources).count(name) == 1]
    once = sorted(once, key=lambda j: -association.get(sources[j], 0.0))[:_MOST]
    columns = [(sources[j], features[::step, j]) for j in once]
    if target is not None:
        columns = [(target[0], target[1][::step]), *columns]
    if len(columns) < 2:
        return {}
    k = len(columns)
    values = np.eye(k)
    for i in range(k):
        for j in range(i):
            values[i, j] = values[j, i] = _spearman(columns[i][1], columns[j][1])
    return {
        "names": [name for name, _ in columns],
        "values": [[None if np.isnan(value) else round(float(value), 4) for value in row] for row in values],
    }


def _spearman(x: np.ndarray, y: np.ndarray) -> float:
    known = ~(np.isnan(x) | np.isnan(y))
    if known.sum() < 3:
        return float("nan")
    a, b = (rankdata(values[known]) for values in (x, y))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else float("nan")
