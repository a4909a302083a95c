r"""The bandwidth of the largest leave-one-out likelihood:  max_h  mean_i log f_{-i}(x_i; h).

f_{-i} is the density without row i (of weight v: without one of v such rows). The mean goes to minus infinity for h to
0 and to infinity, unless most rows have a twin: then it has no maximum. A maximum is bracketed by factors of two from
the normal rule on, and found by Brent's method on log h.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from epicycle.core._exceptions import DataError
from epicycle.engine._row_order import row_hashes

#: log f at rows, for a bandwidth, with up to this weight of equal rows left out.
LogDensities = Callable[[np.ndarray, float, float], np.ndarray]

_MOST_QUERIES = 2_000  # rows whose mean is taken; all rows stay in the density
_HALVINGS = 40  # of the bandwidth: rows that are nearer to each other than 1e-12 of their spread are taken as equal
_ACCURACY = 1e-4  # of log h


def likeliest_bandwidth(X: np.ndarray, weight: np.ndarray | None, log_densities: LogDensities) -> float:
    """The bandwidth for rows X of positive weight."""
    queries, share = _queries(X, weight)

    def loss(log_h: float) -> float:
        logs = log_densities(queries, math.exp(log_h), 1.0)
        return -float(share @ np.maximum(logs, -1e300))

    start = math.log(_normal_rule(X, weight))
    low, middle, high = start - math.log(2), start, start + math.log(2)
    losses = [loss(low), loss(middle), loss(high)]
    for _ in range(_HALVINGS):
        if losses[0] < losses[1]:
            low, middle, high = low - math.log(2), low, middle
            losses = [loss(low), *losses[:2]]
        elif losses[2] < losses[1]:
            low, middle, high = middle, high, high + math.log(2)
            losses = [*losses[1:], loss(high)]
        else:
            found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": _ACCURACY})
            return math.exp(found.x if found.fun <= losses[1] else middle)
    raise DataError(
        "bandwidth='likelihood': the likelihood has no maximum, because too many rows equal another one; expected a "
        "number, 'scott' or 'silverman'"
    )


def _queries(X: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(rows, their shares of the mean): all, or some of them evenly through the weights, in an order by content."""
    n = len(X)
    total = float(n) if weight is None else float(weight.sum())
    if n <= _MOST_QUERIES and total <= _MOST_QUERIES:
        return X, (np.ones(n) if weight is None else weight) / total
    order = np.argsort(row_hashes(X), kind="stable")
    ends = np.cumsum(np.ones(n) if weight is None else weight[order])
    places = (np.arange(_MOST_QUERIES) + 0.5) / _MOST_QUERIES * ends[-1]
    rows = order[np.minimum(np.searchsorted(ends, places, side="right"), n - 1)]
    return np.ascontiguousarray(X[rows]), np.full(_MOST_QUERIES, 1.0 / _MOST_QUERIES)


def _normal_rule(X: np.ndarray, weight: np.ndarray | None) -> float:
    """Silverman's bandwidth for rows of this spread."""
    p = X.shape[1]
    w = np.ones(len(X)) if weight is None else weight
    largest = float(np.abs(X).max()) or 1.0
    Z, share = X / largest, w / w.sum()
    spread = largest * math.sqrt(float((share @ (Z - share @ Z) ** 2).mean()))
    if not spread > 0:
        raise DataError("bandwidth='likelihood': all rows are equal; expected rows that differ")
    return max(spread * math.pow(float(w.sum()) * (p + 2) / 4, -1 / (p + 4)), 1e-290)
