"""Which instance attributes of an estimator go into a file, and which names a file may set."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from inspect import get_annotations
from types import CodeType, FunctionType
from typing import Any

from epicycle.core._exceptions import ModelFormatError

__all__ = ["REQUESTS", "check_fitted_name", "fitted_state"]

#: Where scikit-learn keeps metadata requests (`set_fit_request`); stored apart, because it refers back to its owner.
REQUESTS = "_metadata_request"
#: Callbacks and their contexts belong to a fit in progress, not to the model.
_TRANSIENT = ("_skl_callbacks", "_callback", "_parent_callback_ctx", "_sklearn_version", REQUESTS)
#: Set by functions of scikit-learn outside the classes.
_COMMON = frozenset({"n_features_in_", "feature_names_in_", "_sklearn_output_config"})
#: Where properties, class methods and scikit-learn's conditional methods keep their function.
_HOLDERS = ("fget", "__func__", "fn", "func")


def fitted_state(estimator: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Everything that the instance would keep in a copy of itself, beside its constructor parameters."""
    return {
        name: value
        for name, value in estimator.__getstate__().items()
        if name not in parameters and not name.startswith(_TRANSIENT)
    }


def check_fitted_name(cls: type, name: str) -> None:
    """Refuse names that are no fitted attributes of `cls`.

    One that shadows a method would change what the object does; one that the code of the class never mentions comes
    from another version of it, and leaving it out could change what the model predicts.
    """
    conventional = name.startswith("_") or name.endswith("_")
    if not conventional or name.startswith("__") or name not in _mentioned(cls):
        raise ModelFormatError(f"unknown attribute {name[:80]!r} of {cls.__name__}")
    if hasattr(cls, name) or name.startswith(_TRANSIENT):
        raise ModelFormatError(f"the attribute {name[:80]!r} of {cls.__name__} is not one that a file may set")


@lru_cache
def _mentioned(cls: type) -> frozenset[str]:
    """All names that the code of `cls` and its bases uses or declares."""
    names = set(_COMMON)
    for base in cls.__mro__:
        names.update(get_annotations(base))
        for member in vars(base).values():
            function = next((getattr(member, holder) for holder in _HOLDERS if hasattr(member, holder)), member)
            while isinstance(function, FunctionType):
                names.update(_names_in(function.__code__))
                function = vars(function).get("__wrapped__")
    return frozenset(names)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)
        elif isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from (item for item in constant if isinstance(item, str))
