"""Parameters that trees, forests and boosting share: docstring entries, domains, and their values for a given table."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, InstanceOf, Integer, NoneOr, Real

#: A list holds the factors of each of several label columns.
CLASS_WEIGHT = NoneOr(AnyOf(InstanceOf(dict, list), Choice("balanced")))

E = TypeVar("E")
P = ParamSpec("P")
Init = TypeVar("Init", bound=Callable[..., None])

#: Entries of all tree methods.
TREE_DOCS = {
    "fit_X": "%(X)s\n    NaN counts as missing. Columns of a categorical type are split by sets of levels.",
    "class_weight": 'class_weight : dict, list of dict, "balanced" or None, default=None\n'
    '    Factors on the weights of the rows of each class; "balanced" gives all classes the same total. A list has\n'
    "    the factors of each of several label columns, which are multiplied.",
    "monotonic_cst": "monotonic_cst : array-like of -1, 0, 1, or dict from feature to sign, optional\n"
    "    1: the prediction does not decrease in the feature; -1: it does not increase.",
    "categorical_features": 'categorical_features : "from_dtype", None, or list of names, numbers or booleans, '
    "default={default}\n"
    '    Columns that are split by sets of levels. "from_dtype" takes the columns of a frame that have a categorical\n'
    "    type. Levels are learnt and found again by value; all but the 255 most frequent count as missing.",
    "handle_unknown": 'handle_unknown : {"missing", "error"}, default={default}\n'
    "    Treatment in prediction of levels that the fit did not see.",
    "classes_": "classes_ : ndarray of shape (n_classes,)\n    The class labels, sorted.",
    "categories_": "categories_ : dict of ndarray\n    Levels of the categorical columns, by column number.",
}

TREE_DOMAINS: dict[str, Domain] = {
    "monotonic_cst": NoneOr(AnyOf(ArrayLike(), InstanceOf(dict))),
    "categorical_features": NoneOr(AnyOf(Choice("from_dtype"), ArrayLike())),
    "handle_unknown": Choice("missing", "error"),
}

#: Entries of decision trees and forests, whose trees grow by the same rules.
GROWTH_DOCS = {
    **TREE_DOCS,
    "max_depth": "max_depth : int or None, default={default}\n    Maximum depth of a tree; None sets no limit.",
    "min_samples_split": "min_samples_split, min_samples_leaf : int or float, default=2 and 1\n"
    "    Minimum number of rows of a node that is split, and of a leaf; a float is a share of the rows.",
    "min_weight_fraction_leaf": "min_weight_fraction_leaf : float, default={default}\n"
    "    Minimum share of the total weight of the tree in a leaf.",
    "max_features": 'max_features : int, float, "sqrt", "log2" or None, default={default}\n'
    "    Number of features that are candidates at a node, drawn anew for each; a float is a share, None means all.",
    "max_leaf_nodes": "max_leaf_nodes : int or None, default={default}\n"
    "    Maximum number of leaves of a tree; it then grows best first, by the decrease of the loss.",
    "min_impurity_decrease": "min_impurity_decrease : float, default={default}\n"
    "    Minimum decrease of the mean impurity, over all rows of the tree, by a split.",
    "leaf_cost": "leaf_cost : float, default={default}\n"
    r"    :math:`\lambda`, the cost of a leaf: a split must lower the sum of losses of its tree by more than this.",
    "ccp_alpha": "ccp_alpha : float, default={default}\n"
    "    Cost of a leaf in minimal cost-complexity pruning, in units of the mean impurity.",
}


class Share(Real):
    """A share above 0 and at most 1; the integer 1 is a number of rows or features, not a share."""

    def has_type(self, value: object) -> bool:
        return super().has_type(value) and not isinstance(value, numbers.Integral)


class RowsOrShare(AnyOf):
    """A number of rows or a share of them: 1 is too few rows, where 1.0 is all of them."""

    def hint(self, value: object) -> str:
        return (
            "the 'min_samples_split' parameter must be an int in the range [2, inf) or a float in the range (0.0, 1.0]"
        )


_SHARE = Share(0, 1, inclusive=(False, True))

GROWTH_DOMAINS: dict[str, Domain] = {
    **TREE_DOMAINS,
    "max_depth": NoneOr(Integer(1)),
    "min_samples_split": RowsOrShare(Integer(2), _SHARE),
    "min_samples_leaf": AnyOf(Integer(1), Real(0, 1, inclusive=False)),
    "min_weight_fraction_leaf": Real(0, 0.5),
    "max_features": NoneOr(AnyOf(Integer(1), _SHARE, Choice("sqrt", "log2"))),
    "max_leaf_nodes": NoneOr(Integer(2)),
    "min_impurity_decrease": Real(0),
    "leaf_cost": Real(0),
    "ccp_alpha": Real(0),
}


# ------------------------------------------------------------------------------------------------ criteria


def plain_criterion(criterion: str) -> str:
    """The criterion under its present name: Friedman's is the squared error of two means, the same splits."""
    return "squared_error" if criterion == "friedman_mse" else criterion


def warns_of_friedman_mse(init: Callable[Concatenate[E, P], None]) -> Callable[Concatenate[E, P], None]:
    """Decorate an ``__init__`` with the parameter `criterion`, whose value "friedman_mse" is outdated."""

    @functools.wraps(init)
    def warn(self: E, *args: P.args, **kwargs: P.kwargs) -> None:
        init(self, *args, **kwargs)
        criterion = getattr(self, "criterion", None)
        if isinstance(criterion, str) and criterion == "friedman_mse":
            warnings.warn(
                'criterion="friedman_mse" is an outdated name of "squared_error", whose splits are the same; '
                'write criterion="squared_error"',
                FutureWarning,
                stacklevel=2,
            )

    return cast("Callable[Concatenate[E, P], None]", warn)


def with_defaults(init: Init, **defaults: Any) -> Init:
    """The constructor `init` with other defaults of keyword arguments."""

    @functools.wraps(init)
    def changed(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **{**defaults, **kwargs})

    signature = inspect.signature(init)
    parameters = [p.replace(default=defaults.get(p.name, p.default)) for p in signature.parameters.values()]
    vars(changed)["__signature__"] = signature.replace(parameters=parameters)
    return cast("Init", changed)


# ------------------------------------------------------------------------------------------------ sizes


def min_rows(value: float, n: int, least: int) -> int:
    """A minimum number of rows, given as such or as a share of n."""
    return max(least, int(value) if isinstance(value, numbers.Integral) else math.ceil(value * n))


def n_candidate_features(asked: Any, p: int) -> int:
    """Number of the p features that are candidates at a node."""
    if asked is None:
        return p
    if asked == "sqrt":
        return max(1, int(math.sqrt(p)))
    if asked == "log2":
        return max(1, int(math.log2(p)))
    if isinstance(asked, numbers.Integral):
        return min(int(asked), p)
    return max(1, int(asked * p))


# ------------------------------------------------------------------------------------------------ constraints


def monotone_signs(
    asked: Any, p: int, names: np.ndarray | None, categorical: np.ndarray, owner: str, *, boosting: bool = False
) -> np.ndarray | None:
    """1 where the prediction must not decrease in a feature, -1 where it must not increase; None without any.

    Messages are for the class `owner`, in the words of trees or of `boosting`.
    """
    if asked is None:
        return None
    signs = _signs_by_name(asked, p, names, owner) if isinstance(asked, dict) else np.asarray(asked, np.float64)
    if signs.shape != (p,):
        shape = signs.shape if boosting else signs.size
        raise ParameterError(f"monotonic_cst has shape {shape} but the input data X has {p} features.")
    if not np.isin(signs, (-1, 0, 1)).all():
        domain = "an array-like" if boosting else "None or an array-like"
        raise ParameterError(
            f"monotonic_cst must be {domain} of -1, 0 or 1. Observed values: "
            f"{np.unique(signs).tolist()!r:.60}; expected -1, 0 or 1"
        )
    if (signs[categorical > 0] != 0).any():
        raise ParameterError(
            "monotonic_cst: Categorical features cannot have monotonic constraints: categories have no order to be "
            "monotone in; expected 0 for such columns"
        )
    return signs.astype(np.int8) if signs.any() else None


def _signs_by_name(asked: dict[Any, Any], p: int, names: np.ndarray | None, owner: str) -> np.ndarray:
    """The signs of all features from those of some, by their names or numbers."""
    named = [feature for feature in asked if isinstance(feature, str)]
    if named and names is None:
        raise ParameterError(
            f"{owner} was not fitted on data with feature names. Pass monotonic_cst as an integer array instead."
        )
    strange = sorted(set(named) - set([] if names is None else names.tolist()))
    if strange:
        shown = strange[:5] + ["..."] * (len(strange) > 5)
        raise ParameterError(f"monotonic_cst contains {len(strange)} unexpected feature names: {shown}.")
    signs = np.zeros(p)
    for feature, sign in asked.items():
        if not isinstance(sign, numbers.Real) or sign not in (-1, 0, 1):
            raise ParameterError(f"monotonic_cst[{feature!r}] must be either -1, 0 or 1. Got {sign!r}.")
        signs[_feature_number(feature, p, names, "monotonic_cst")] = sign
    return signs


def feature_groups(asked: Any, p: int, names: np.ndarray | None) -> np.ndarray | None:
    """Groups of features that may interact, (n_groups, p); features in none of the groups form one more."""
    if asked is None:
        return None
    groups = np.zeros((len(asked), p), np.uint8)
    for row, group in zip(groups, asked, strict=True):
        row[[_feature_number(feature, p, names, "interaction_cst") for feature in group]] = 1
    rest = (groups.sum(axis=0) == 0).astype(np.uint8)
    return np.vstack([groups, rest]) if rest.any() else groups


def _feature_number(feature: Any, p: int, names: np.ndarray | None, argument: str) -> int:
    """The number of a feature that is given by name or number."""
    if isinstance(feature, str):
        found = np.flatnonzero(names == feature) if names is not None else np.empty(0)
        if len(found) == 0:
            raise ParameterError(f"{argument} names {feature!r}, which X does not have")
        return int(found[0])
    if isinstance(feature, bool) or not isinstance(feature, int | np.integer) or not 0 <= feature < p:
        raise ParameterError(f"{argument}: {feature!r}; expected a name or a number from 0 to {p - 1}")
    return int(feature)
