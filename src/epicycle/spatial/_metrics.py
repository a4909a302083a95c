"""Metrics by name, as functions, or as a matrix of distances.

Minkowski's distances (p = 1, 2 and infinity among them) and the cosine have a native search. All others are
computed in blocks by scikit-learn and SciPy and searched by brute force: slower, and as exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import DistanceMetric
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS, PAIRWISE_DISTANCE_FUNCTIONS, pairwise_distances

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.spatial._metric import METRICS, Metric, metric_by_name

_ALIASES = {"p": "minkowski", "infinity": "chebyshev"}
_BOOLEAN = {*PAIRWISE_BOOLEAN_FUNCTIONS, "sokalmichener"}
#: Shares of the entries of two rows that differ.
_SHARES = {*_BOOLEAN, "braycurtis"}
_OTHER = (
    "braycurtis", "canberra", "correlation", "dice", "hamming", "haversine", "jaccard", "mahalanobis", "nan_euclidean",
    "precomputed", "pyfunc", "rogerstanimoto", "russellrao", "seuclidean", "sokalmichener", "sokalsneath",
    "sqeuclidean", "yule",
)  # fmt: skip
NAMES = (*METRICS, *_ALIASES, *_OTHER)
#: For which a tree of boxes, or of balls, is known to be right.
_BOXES = {"minkowski", "euclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev", *_ALIASES}
_BALLS = _BOXES | _BOOLEAN - {"yule"} | {"seuclidean", "mahalanobis", "hamming", "canberra", "braycurtis", "haversine"}
_BALLS |= {"pyfunc"}
_REQUIRED = {"seuclidean": "V", "mahalanobis": "VI"}


@dataclass(frozen=True)
class BlockMetric:
    """A metric whose distances are computed in blocks, by a name, a function or an object of scikit-learn."""

    metric: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def in_threads(self) -> bool:
        """Whether blocks may be computed at once: not with functions of users, which may not be made for it."""
        return isinstance(self.metric, str)

    def block(self, Q: Any, X: Any) -> np.ndarray:
        """The distances of the rows of Q and X."""
        if self.metric == "precomputed":
            return np.ascontiguousarray(Q, dtype=np.float64)
        if isinstance(self.metric, DistanceMetric):
            single = (
                self.metric.dtype == np.float32 if hasattr(self.metric, "dtype") else "32" in str(type(self.metric))
            )
            Q, X = (np.ascontiguousarray(A, dtype=np.float32 if single else np.float64) for A in (Q, X))
            D = self.metric.pairwise(Q, X)
        elif self.metric == "sokalmichener":  # not in SciPy any more
            D = DistanceMetric.get_metric("sokalmichener").pairwise(Q != 0.0, X != 0.0)
        elif isinstance(self.metric, str) and self.metric in _BOOLEAN:
            D = pairwise_distances(Q != 0.0, X != 0.0, metric=self.metric, **self.options)
        else:
            try:
                D = pairwise_distances(
                    Q, X, metric=self.metric, ensure_all_finite=self.metric != "nan_euclidean", **self.options
                )
            except (ValueError, TypeError) as error:
                if callable(self.metric):
                    raise
                raise DataError(f"metric={self.metric!r}: {error}") from None
        D = np.ascontiguousarray(D, dtype=np.float64)
        if self.metric == "correlation" and X.shape[1] == 1:
            raise DataError(
                "metric='correlation': X has one column; expected at least two, a number has no correlation"
            )
        if isinstance(self.metric, str) and self.metric in _SHARES:
            D[np.isnan(D)] = 0.0  # a share of nothing: rows without any entry are equal
        if self.metric == "correlation":
            D[np.isnan(D)] = 1.0  # a row of equal numbers is correlated with none
        # Rows that have no value in common have no distance: they are farther than all that have one.
        return np.where(np.isnan(D), np.inf, D) if np.isnan(D).any() else D


@dataclass(frozen=True)
class MetricInUse:
    """A metric with a native search, or one in blocks, and the factors of the columns for weights."""

    native: Metric | None
    blocks: BlockMetric | None = None
    factors: np.ndarray | None = None

    @property
    def is_given(self) -> bool:
        """Whether the table holds the distances themselves."""
        return self.blocks is not None and is_precomputed(self.blocks.metric)

    @property
    def is_symmetric(self) -> bool:
        """Whether the distance is one by name: those that are given, or come from a function, need not be symmetric."""
        return self.blocks is None or (isinstance(self.blocks.metric, str) and not self.is_given)

    def scaled(self, X: Any) -> Any:
        """The rows with every column multiplied by its factor."""
        if self.factors is None:
            return X
        if len(self.factors) != X.shape[1]:
            raise ParameterError(
                f"metric_params: w has {len(self.factors)} elements; expected one for each of {X.shape[1]} columns"
            )
        return sp.csr_array(X * self.factors[None, :]) if sp.issparse(X) else X * self.factors


def options_of(p: Any, metric: Any, metric_params: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """(effective metric, its parameters), in scikit-learn's terms."""
    options = dict(metric_params or {})
    metric = _ALIASES.get(metric, metric) if isinstance(metric, str) else metric
    if isinstance(metric, str) and metric == "pyfunc":
        if not callable(options.get("func")):
            raise ParameterError("metric='pyfunc'; expected metric_params={'func': a function of two rows}")
        metric = options.pop("func")
    if not (isinstance(metric, str) and metric == "minkowski"):
        return metric, options
    power, weights = options.pop("p", p), options.pop("w", None)
    if power is None or not power > 0:
        raise ParameterError(f"p={power!r}; expected a number > 0 for Minkowski's distance")
    named = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}
    if weights is None and power in named:
        return named[power], options
    return "minkowski", {**options, "p": power, "w": weights}


def resolve(p: Any, metric: Any, metric_params: Mapping[str, Any] | None) -> MetricInUse:
    """The metric to search with."""
    name, options = options_of(p, metric, metric_params)
    if not (isinstance(name, str) and name in METRICS):
        if isinstance(name, str) and name == "mahalanobis" and "V" in options and "VI" not in options:
            options["VI"] = np.linalg.inv(np.asarray(options.pop("V"), dtype=np.float64))
        required = _REQUIRED.get(name) if isinstance(name, str) else None
        if required is not None and required not in options:
            raise ParameterError(f"metric={name!r}; expected metric_params={{{required!r}: ...}} with it")
        return MetricInUse(None, BlockMetric(name, options))
    power, weights = options.pop("p", 2), options.pop("w", None)
    if options:
        raise ParameterError(f"metric_params: metric={name!r} has no parameter {next(iter(options))!r}")
    native = metric_by_name(name, power)
    if weights is None:
        return MetricInUse(native)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
        raise ParameterError("metric_params: w; expected a finite number >= 0 for each column")
    # w |d|^p = |w^(1/p) d|^p; the largest difference counts columns of positive weight.
    factors = (weights > 0).astype(np.float64) if np.isinf(power) else weights ** (1 / float(power))
    return MetricInUse(native, factors=factors)


def is_precomputed(metric: Any) -> bool:
    return isinstance(metric, str) and metric == "precomputed"


def has_tree(metric: Any, algorithm: str) -> bool:
    """Whether a tree of boxes ("kd_tree") or of balls is known to be right for the metric."""
    return isinstance(metric, str) and metric in (_BOXES if algorithm == "kd_tree" else _BALLS)


def check_algorithm(algorithm: str, metric: Any, p: Any, metric_params: Mapping[str, Any] | None) -> bool:
    """Refuse a tree that the metric has none of; whether the distance is one of 0 < p < 1, which needs brute force."""
    name, options = options_of(p, metric, metric_params)
    semimetric = isinstance(name, str) and name == "minkowski" and options["p"] < 1
    if algorithm in ("auto", "brute"):
        return semimetric
    if semimetric:
        raise ParameterError(
            f'algorithm="{algorithm}" does not support 0 < p < 1 for the Minkowski metric. To resolve this problem '
            'either set p >= 1 or algorithm="brute".'
        )
    if isinstance(metric, DistanceMetric) or (callable(metric) and algorithm == "ball_tree"):
        return False
    known = _BOXES if algorithm == "kd_tree" else _BALLS
    weighted = isinstance(name, str) and name == "minkowski" and options.get("w") is not None
    if callable(metric) or metric not in known or (weighted and algorithm == "kd_tree"):
        shown = "a function" if callable(metric) else f"metric={metric!r}{' with weights w' if weighted else ''}"
        raise ParameterError(f"algorithm={algorithm!r} is not valid for {shown}; expected 'brute' or 'auto'")
    return False


def takes_sparse(metric: MetricInUse) -> bool:
    """Whether distances of sparse rows are defined here."""
    if metric.blocks is None:
        return True
    name = metric.blocks.metric
    known = set(PAIRWISE_DISTANCE_FUNCTIONS) - {"haversine", "nan_euclidean"}
    return callable(name) or (isinstance(name, str) and name in known)
