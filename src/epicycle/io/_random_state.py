"""States of NumPy's random generators, checked field by field: their C code trusts positions and flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle.core._exceptions import ModelFormatError

__all__ = ["BIT_GENERATORS", "build_bit_generator", "build_seed_sequence"]


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
_MAX_POOL = 64


def build_bit_generator(name: str, state: object, seed: np.random.SeedSequence | None) -> np.random.BitGenerator:
    """A bit generator in the given state; that of a RandomState, without a seed sequence, may hold a Gaussian too."""
    if name not in BIT_GENERATORS:
        raise ModelFormatError(f"unknown bit generator {name[:40]!r}")
    cls, fields = BIT_GENERATORS[name]
    _check(state, {"bit_generator": lambda value: value == name, **fields}, name)
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
