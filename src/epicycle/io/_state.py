"""States of objects in a file: attributes of estimators, and random generators.

A file may set fitted attributes only. States of NumPy's generators are checked field by field: their C code trusts
positions and flags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from inspect import get_annotations
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from epicycle.core._exceptions import ModelFormatError

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
    # Names of the code, not a list: every class is covered, and a renamed attribute is noticed.
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


def _integer(bound: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and 0 <= value < bound


def _words(dtype: str, length: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, np.ndarray) and value.dtype == np.dtype(dtype) and value.shape == (length,)


_WORD = {"has_uint32": _integer(2), "uinteger": _integer(2**32)}
_PCG = {"state": {"state": _integer(2**128), "inc": _integer(2**128)}, **_WORD}

#: The fields of each state beside its name, with the test that each has to pass.
BIT_GENERATORS: dict[str, tuple[type[np.random.BitGenerator], dict[str, Any]]] = {
    "MT19937": (np.random.MT19937, {"state": {"key": _words("<u4", 624), "pos": _integer(625)}}),
    "PCG64": (np.random.PCG64, _PCG),
    "PCG64DXSM": (np.random.PCG64DXSM, _PCG),
    "Philox": (
        np.random.Philox,
        {
            "state": {"counter": _words("<u8", 4), "key": _words("<u8", 2)},
            "buffer": _words("<u8", 4),
            "buffer_pos": _integer(5),
            **_WORD,
        },
    ),
    "SFC64": (np.random.SFC64, {"state": {"state": _words("<u8", 4)}, **_WORD}),
}
_GAUSS = {"has_gauss": _integer(2), "gauss": lambda value: type(value) is float}
_MAX_POOL = 64  # words; NumPy's own default is 4, and each costs quadratic time to mix


def build_bit_generator(name: str, state: object, seed: np.random.SeedSequence | None) -> np.random.BitGenerator:
    """A bit generator in the given state; that of a RandomState, without a seed sequence, may hold a Gaussian too."""
    if name not in BIT_GENERATORS:
        raise ModelFormatError(f"unknown bit generator {name[:40]!r}")
    cls, fields = BIT_GENERATORS[name]
    _check(state, {"bit_generator": lambda value: value == name, **fields}, name)
    # Any seed will do, since the state that follows replaces it; without one NumPy would ask the system.
    generator = cls(0 if seed is None else seed)
    generator.state = state  # type: ignore[assignment]
    return generator


def build_random_state(name: str, state: object) -> np.random.RandomState:
    """A RandomState, which keeps a Gaussian that was drawn in advance beside the state of its bit generator."""
    if not isinstance(state, dict) or not _GAUSS.keys() <= state.keys():
        raise ModelFormatError("the state of a RandomState is malformed")
    own = {key: value for key, value in state.items() if key not in _GAUSS}
    _check({key: state[key] for key in _GAUSS}, _GAUSS, "RandomState")
    random_state = np.random.RandomState(build_bit_generator(name, own, None))
    random_state.set_state({"bit_generator": name, **state})
    return random_state


def build_seed_sequence(
    entropy: object, spawn_key: object, pool_size: object, n_children_spawned: object
) -> np.random.SeedSequence:
    """A seed sequence with all that decides what it spawns next."""
    words = entropy if isinstance(entropy, list | tuple) else [entropy]
    if isinstance(entropy, np.ndarray):
        words = [0] if entropy.dtype.kind in "iu" and (entropy >= 0).all() else [-1]
    counts = (pool_size, n_children_spawned)
    keys = spawn_key if isinstance(spawn_key, tuple) else (-1,)
    if not all(type(n) is int and n >= 0 for n in (*words, *keys, *counts)) or not 4 <= pool_size <= _MAX_POOL:  # type: ignore[operator]
        raise ModelFormatError("the state of a SeedSequence is malformed")
    return np.random.SeedSequence(
        entropy,  # type: ignore[arg-type]
        spawn_key=keys,
        pool_size=pool_size,  # type: ignore[arg-type]
        n_children_spawned=n_children_spawned,  # type: ignore[arg-type]
    )


def _check(value: object, fields: dict[str, Any], what: str) -> None:
    if not isinstance(value, dict) or value.keys() != fields.keys():
        raise ModelFormatError(f"the state of {what} has unknown or missing fields")
    for key, test in fields.items():
        if isinstance(test, dict):
            _check(value[key], test, what)
        elif not test(value[key]):
            raise ModelFormatError(f"the field {key!r} in the state of {what} is out of its range")
