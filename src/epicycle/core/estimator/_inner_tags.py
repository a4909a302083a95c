"""The tags of an estimator that was given as an argument of another."""

from __future__ import annotations

from typing import Any

from sklearn.utils import get_tags

from epicycle.core._exceptions import ParameterTypeError


def inner_tags(owner: Any, estimator: Any, name: str = "estimator") -> Any:
    """scikit-learn's tags of `estimator`, the argument `name` of `owner`; refused where it is no estimator.

    Tags are asked for in many places, and before `fit` has checked its arguments.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not hasattr(estimator, "__sklearn_tags__"):
        wanted = "an object, not a class" if isinstance(estimator, type) else "an instance of BaseEstimator"
        raise ParameterTypeError(f"{type(owner).__name__}: {name}={estimator!r:.60}; expected {wanted}")
    return get_tags(estimator)
