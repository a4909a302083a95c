"""Arguments that trees and forests share: what they may be, and what they come to for a table of n rows."""

from __future__ import annotations

import math
import numbers
from typing import Any

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, InstanceOf, Integer, NoneOr, RandomState, Real

__all__ = ["growth_domains", "row_count", "share_of_features"]


def growth_domains() -> dict[str, Domain]:
    """Domains of the arguments that every tree has."""
    share = Real(0, 1, inclusive=(False, True))
    return {
        "max_depth": NoneOr(Integer(1)),
        "min_samples_split": AnyOf(Integer(2), share),
        "min_samples_leaf": AnyOf(Integer(1), Real(0, 1, inclusive=False)),
        "min_weight_fraction_leaf": Real(0, 0.5),
        "max_features": NoneOr(AnyOf(Integer(1), share, Choice("sqrt", "log2"))),
        "random_state": RandomState(),
        "max_leaf_nodes": NoneOr(Integer(2)),
        "min_impurity_decrease": Real(0),
        "leaf_cost": Real(0),
        "ccp_alpha": Real(0),
        "monotonic_cst": NoneOr(AnyOf(ArrayLike(), InstanceOf(dict))),
        "categorical_features": NoneOr(AnyOf(Choice("from_dtype"), ArrayLike())),
        "handle_unknown": Choice("missing", "error"),
        "n_jobs": NoneOr(Integer()),
    }


def row_count(value: float, n: int, least: int) -> int:
    """A number of rows, given as such or as a share of n."""
    return max(least, int(value) if isinstance(value, numbers.Integral) else math.ceil(value * n))


def share_of_features(asked: Any, p: int) -> int:
    """How many of p features a node looks at."""
    if asked is None:
        return p
    if asked == "sqrt":
        return max(1, int(math.sqrt(p)))
    if asked == "log2":
        return max(1, int(math.log2(p)))
    if isinstance(asked, numbers.Integral):
        if int(asked) > p:
            raise ParameterError(f"max_features={asked}; X has {p} features")
        return int(asked)
    return max(1, int(asked * p))
