"""Least squares with an effect of every unit and every time, on panels with or without gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.causal.designs._inputs import correction, grouped
from epicycle.causal.designs._panel import Panel
from epicycle.core._exceptions import DataError

Array = np.ndarray


@dataclass(frozen=True)
class TwoWay:
    """Coefficients of columns with unit and time effects removed, and what is left."""

    coef: Array
    covariance: Array
    error: float
    columns: Array
    degrees: float


def _within(panel: Panel, values: Array) -> Array:
    """Values less the means of their units."""
    count = np.bincount(panel.unit)
    out = np.array(values, dtype=np.float64)
    for j in range(out.shape[1]):
        out[:, j] -= (np.bincount(panel.unit, out[:, j]) / count)[panel.unit]
    return out


def two_way(panel: Panel, D: Array, cluster: Array | None, weight: Array | None = None) -> TwoWay:
    """Regression of y on the columns D, unit effects and time effects; standard errors by cluster.

    `weight` is that of each unit: one of weight 2 is two units.
    """
    T = panel.shape[1]
    times = np.zeros((len(panel.y), T - 1))
    later = panel.time > 0
    times[later, panel.time[later] - 1] = 1.0
    both = _within(panel, np.column_stack([times, D, panel.y]))
    root = None if weight is None else np.sqrt(weight[panel.unit])[:, None]
    both = both if root is None else both * root
    Q = np.linalg.qr(both[:, : T - 1])[0]
    left = both[:, T - 1 :] - Q @ (Q.T @ both[:, T - 1 :])
    columns, y = left[:, :-1], left[:, -1]
    size = np.linalg.norm(D - D.mean(axis=0), axis=0)
    weak = np.linalg.norm(columns, axis=0) <= 1e-9 * np.maximum(size, 1e-300)
    gram = columns.T @ columns
    if weak.any() or np.linalg.cond(gram) > 1e16:
        raise DataError(
            "treatment: cannot be told from the effects of units and times; expected untreated units or times"
        )
    inverse = np.linalg.inv(gram)
    coef = inverse @ (columns.T @ y)
    residual = y - columns @ coef
    group = panel.unit if cluster is None else cluster
    scores = grouped(columns * residual[:, None], group) @ inverse
    rows, count = float(len(y)), None
    if weight is not None:
        rows = float(weight[panel.unit].sum())
        if cluster is None:  # copies of a unit are clusters of their own
            scores, count = scores / np.sqrt(weight)[:, None], float(weight.sum())
    # Effects of units that lie inside the clusters do not count as parameters, as usual for fixed effects.
    factor, degrees = correction(rows, D.shape[1] + T, group, count)
    scale = np.linalg.norm(columns, axis=0) * max(float(np.linalg.norm(y)), np.finfo(float).tiny)
    error = float(np.max(np.abs(columns.T @ residual) / scale))
    return TwoWay(coef, factor * scores.T @ scores, error, columns if root is None else columns * root, degrees)
