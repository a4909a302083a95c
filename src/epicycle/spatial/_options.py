"""The arguments of a search, as all estimators that search have them: domains, types, entries of docstrings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.metrics import DistanceMetric

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.spatial._metrics import NAMES

SEARCH_PARAMETERS: Mapping[str, Domain] = {
    "algorithm": Choice("auto", "brute", "kd_tree", "ball_tree"),
    "leaf_size": Integer(minimum=1),
    "p": NoneOr(Real(minimum=0, inclusive=False, allow_inf=True)),
    "metric": AnyOf(Choice(*NAMES), Callable(), InstanceOf(DistanceMetric)),
    "metric_params": NoneOr(InstanceOf(dict)),
}


class SearchArguments(SharedArguments, total=False):
    """Types of the arguments of a search, for constructors that take them as ``**shared``."""

    algorithm: str
    leaf_size: int
    metric: Any
    p: float | None
    metric_params: dict[str, Any] | None


SEARCH_DOCS: Mapping[str, str] = {
    "algorithm": """algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default={default}
    "auto" takes a tree for up to eight columns, ten from 50,000 rows on; "ball_tree" walks the tree of "kd_tree", or
    searches by brute force where the metric has none. The result is the same.""",
    "leaf_size": """leaf_size : int, default={default}
    Accepted for compatibility; the result does not depend on it.""",
    "metric": """metric : str, callable or DistanceMetric, default={default}
    "euclidean" ("l2"), "manhattan" ("l1", "cityblock"), "chebyshev", "cosine", "minkowski" with its `p`; "precomputed",
    for which X holds distances (a sparse X those of the neighbours); any other name of
    ``sklearn.neighbors.VALID_METRICS``, a function of two rows, or a ``sklearn.metrics.DistanceMetric``, which are
    searched by brute force. With "nan_euclidean" X may hold NaN; metrics of labels ("jaccard") look at which values
    are not zero.""",
    "metric_params": """metric_params : dict, optional
    More parameters of the metric: `p` and weights `w` of "minkowski", `V` of "seuclidean", `VI` of "mahalanobis", or
    keyword arguments of a function.""",
    "p": """p : float, default={default}
    Power of Minkowski's distance; infinity for the largest difference. Below 1 it is no metric, and the search is by
    brute force.""",
}
