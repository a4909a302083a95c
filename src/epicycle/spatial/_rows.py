"""The rows of a fit that searches among them: in memory, with a metric and an algorithm that are made for them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data import ArrayData
from epicycle.data._dask_data import is_dask
from epicycle.spatial._distance_graph import distance_graph
from epicycle.spatial._metrics import check_algorithm, is_precomputed, resolve, takes_sparse


def rows_to_search(estimator: Any, X: Any, y: Any, *, warn: bool = True, **checks: Any) -> tuple[ArrayData, Any]:
    """(data, its rows), checked; sparse distances are a :func:`distance_graph`, with `warn` better given in order."""
    name, metric, algorithm = type(estimator).__name__, estimator.metric, estimator.algorithm
    p, metric_params = estimator.p, estimator.metric_params
    if is_dask(X):
        raise DataError(f"X: {name} keeps its rows and needs them in memory; compute() them first")
    if metric_params is not None and "p" in metric_params and p is not None:
        warnings.warn(
            "Parameter p is found in metric_params. The corresponding parameter from __init__ is ignored.",
            SyntaxWarning,
            stacklevel=6,
        )
    found = resolve(p, metric, metric_params)
    if check_algorithm(algorithm, metric, p, metric_params):
        warnings.warn(
            "Mind that for 0 < p < 1, Minkowski metrics are not distance metrics. Continuing the execution with "
            "`algorithm='brute'`.",
            stacklevel=6,
        )
    distances = is_precomputed(metric)
    graph = distance_graph(X, warn=warn) if distances and sp.issparse(X) else None
    rows = X if graph is None else graph.copy()
    data = estimator._fit_data(rows, y, check_finite=not takes_missing(metric), **checks)
    if not isinstance(data, ArrayData):
        raise DataError(f"X: {name} keeps its rows and needs them in memory; collect them first")
    check_values(metric, data.X)
    if data.sparse and not takes_sparse(found):
        raise ParameterError(f"Metric {metric!r} not valid for sparse input; expected dense rows")
    if data.sparse and algorithm in ("kd_tree", "ball_tree"):
        warnings.warn("cannot use tree with sparse input: using brute force", stacklevel=6)
    if distances and data.n_rows != data.n_features:
        raise DataError(f"Precomputed matrix must be square. Input is a {data.n_rows}x{data.n_features} matrix.")
    return data, data.X if graph is None else graph


def takes_missing(metric: Any) -> bool:
    """Whether NaN may stand for what is missing."""
    return isinstance(metric, str) and metric == "nan_euclidean"


def check_values(metric: Any, X: Any) -> None:
    """Refuse infinity among values that may be missing, and distances below zero."""
    if not (takes_missing(metric) or is_precomputed(metric)):
        return
    values = X.data if sp.issparse(X) else X
    if takes_missing(metric) and np.isinf(values).any():
        raise DataError("Input X contains infinity or a value too large: only NaN may stand for what is missing")
    if is_precomputed(metric) and values.size and values.min() < 0:
        raise DataError("Negative values in data passed to precomputed distance matrix.")
