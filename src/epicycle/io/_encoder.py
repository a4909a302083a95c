"""From objects to the tree of model.json and the arrays beside it."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.io._container import MAX_BYTES_LITERAL, MAX_DEPTH, MAX_INT_BITS
from epicycle.io._json import Json, dumps
from epicycle.io._registry import TYPES, class_named, name_of_class, name_of_function
from epicycle.io._schema import Node
from epicycle.io._state import BIT_GENERATORS, REQUESTS, check_fitted_name, fitted_state
from epicycle.io._tensors import dtype_text, to_storage

_TYPE_NAMES = {cls: name for name, cls in TYPES.items()}


class Encoder:
    """Encodes one model; collects its arrays, in storage form, under the paths that lead to them."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.left_out: list[str] = []
        self._open: list[int] = []

    def encode(self, value: Any, path: str = "model") -> Json:
        """The node for `value`; `path` says where it stands, for messages and array names."""
        plain = _PLAIN.get(type(value))
        if plain is not None:
            return plain(value, path)
        # Only values that are being encoded: the same array at two places is stored twice, which a tree can hold.
        if id(value) in self._open:
            raise ParameterError(f"{path} contains itself; a model file holds trees only")
        if len(self._open) >= MAX_DEPTH:
            raise ParameterError(f"{path} is nested more than {MAX_DEPTH} levels deep")
        self._open.append(id(value))
        node = self._encode_composite(value, path)
        self._open.pop()
        return node

    def _encode_composite(self, value: Any, path: str) -> Json:
        method = _COMPOSITE.get(type(value))
        if method is not None:
            return method(self, value, path)
        if isinstance(value, np.dtype):
            return {"$": "dtype", "name": "|O" if value.kind == "O" else _dtype(value, path)}
        if isinstance(value, np.generic):
            return _scalar(value, path)
        if isinstance(value, type):
            return _type(value, path)
        if (name := name_of_class(type(value))) is not None:
            return self._object(value, name, path)
        if callable(value) and (name := name_of_function(value)) is not None:
            return {"$": "function", "name": name}
        if type(value).__module__.startswith("scipy.sparse"):
            return self._sparse(value, path)
        if type(value).__name__ == "NAType" and type(value).__module__.startswith("pandas."):
            return {"$": "pandas.NA"}
        raise _unsupported(value, path)

    def _items(self, values: Iterable[Any], path: str) -> list[Json]:
        return [self.encode(value, f"{path}[{i}]") for i, value in enumerate(values)]

    def _fields(self, values: dict[str, Any], path: str) -> dict[str, Json]:
        for name in values:
            if type(name) is not str:
                raise ParameterTypeError(f"the state of {path} has a name that is not a str: {name!r:.80}")
            _text(name, path)
        return {name: self.encode(value, f"{path}.{name}") for name, value in values.items()}

    def _dict(self, value: dict[Any, Any], path: str) -> Json:
        # JSON has keys of text only; other keys become values of their own, so that 1 and "1" stay apart.
        if all(type(key) is str for key in value):
            for key in value:
                _text(key, path)
            return {"$": "dict", "items": {key: self.encode(item, f"{path}[{key!r}]") for key, item in value.items()}}
        pairs: list[Json] = [
            [self.encode(key, f"{path}.key[{i}]"), self.encode(item, f"{path}.value[{i}]")]
            for i, (key, item) in enumerate(value.items())
        ]
        return {"$": "pairs", "items": pairs}

    def _set(self, value: set[Any] | frozenset[Any], path: str) -> Json:
        # Sorted by content, so that the same set gives the same bytes in every process.
        return {"$": type(value).__name__, "items": sorted(self._items(value, path), key=dumps)}

    def _bounds(self, value: slice | range, path: str) -> Json:
        bounds = {name: getattr(value, name) for name in ("start", "stop", "step")}
        return {"$": type(value).__name__, **self._fields(bounds, path)}

    def _array(self, array: np.ndarray, path: str) -> Json:
        shape: list[Json] = [int(length) for length in array.shape]
        if array.dtype.kind == "O":
            return {"$": "objects", "shape": shape, "items": self._items(array.ravel().tolist(), path)}
        text = _dtype(array.dtype, path)
        # The order is kept: BLAS rounds differently in the other one, and predictions would change their last bits.
        column_major = array.flags.f_contiguous and not array.flags.c_contiguous
        # Paths can coincide (an attribute "a.b" and an attribute b of a): names of arrays must not.
        name = path
        while name in self.arrays:
            name += "'"
        self.arrays[name] = to_storage(array, np.dtype(text))
        return {"$": "array", "name": name, "dtype": text, "shape": shape, "order": "F" if column_major else "C"}

    def _sparse(self, matrix: Any, path: str) -> Json:
        kind = {"csr_array": "array", "csc_array": "array", "csr_matrix": "matrix", "csc_matrix": "matrix"}
        if type(matrix).__name__ not in kind or matrix.ndim != 2 or matrix.dtype.kind not in "biufc":
            raise _unsupported(matrix, path, "a model file holds sparse matrices as CSR or CSC")
        parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
        shape: list[Json] = [int(length) for length in matrix.shape]
        return {
            "$": "sparse",
            "format": matrix.format,
            "kind": kind[type(matrix).__name__],
            "shape": shape,
            **self._fields(parts, path),
        }

    def _object(self, value: Any, name: str, path: str) -> Json:
        _, form = class_named(name)
        if form is not None:
            return {"$": "object", "class": name, "state": self._fields(form.state(value), path)}
        parameters = value.get_params(deep=False)
        # A cache folder holds pickles, and belongs to this machine.
        if name == "sklearn.pipeline.Pipeline" and parameters["memory"] is not None:
            self.left_out.append(f"{path}.memory")
            parameters["memory"] = None
        fitted = fitted_state(value, parameters)
        for attribute in fitted:
            # What the reader would refuse is refused now, while the model is still in memory.
            try:
                check_fitted_name(type(value), attribute)
            except ValueError as error:
                raise ParameterError(f"cannot store {path}: {error}") from None
        return {
            "$": "estimator",
            "class": name,
            "parameters": self._fields(parameters, path),
            "fitted": self._fields(fitted, path),
            "requests": self.encode(_requests(value), f"{path}.{REQUESTS}"),
        }

    def _seed_sequence(self, value: np.random.SeedSequence, path: str) -> Json:
        fields = {name: getattr(value, name) for name in ("entropy", "spawn_key", "pool_size", "n_children_spawned")}
        return {"$": "seed_sequence", **self._fields(fields, path)}

    def _generator(self, value: np.random.Generator, path: str) -> Json:
        name = _bit_generator(value.bit_generator, path)
        fields = {"state": value.bit_generator.state, "seed_sequence": value.bit_generator.seed_seq}
        return {"$": "generator", "bit_generator": name, **self._fields(fields, path)}

    def _random_state(self, value: np.random.RandomState, path: str) -> Json:
        state = value.get_state(legacy=False)
        name = _bit_generator(value._bit_generator, path)
        return {"$": "random_state", "bit_generator": name, "state": self.encode(state, f"{path}.state")}

    def _complex(self, value: complex, path: str) -> Json:
        return {"$": "complex", "real": _float(value.real, path), "imag": _float(value.imag, path)}


def _int(value: int, path: str) -> Json:
    if -(2**63) <= value < 2**63:  # beyond, other JSON readers would round to a float
        return value
    if value.bit_length() > MAX_INT_BITS:
        raise ParameterError(f"{path} is an integer of {value.bit_length()} bits; a model file holds {MAX_INT_BITS}")
    return {"$": "int", "hex": hex(value)}


def _float(value: float, _path: str) -> Json:
    # JSON has no nan and no infinity.
    return value if math.isfinite(value) else {"$": "float", "value": repr(value)}


def _text(value: str, path: str) -> Json:
    try:
        value.encode()  # lone surrogates have no UTF-8
    except UnicodeEncodeError:
        raise ParameterError(f"{path} holds text that is not valid Unicode: {value!r:.80}") from None
    return value


def _bytes(value: bytes, path: str) -> Json:
    if len(value) > MAX_BYTES_LITERAL:
        raise ParameterError(f"{path} holds {len(value)} bytes; the limit is {MAX_BYTES_LITERAL}: use a uint8 array")
    return {"$": "bytes", "base64": base64.b64encode(value).decode()}


def _scalar(value: np.generic, path: str) -> Node:
    array = np.asarray(value)
    text = _dtype(array.dtype, path)
    return {"$": "scalar", "dtype": text, "hex": array.astype(text).tobytes().hex()}


def _dtype(dtype: np.dtype[Any], path: str) -> str:
    text = dtype_text(dtype)
    if text is None:
        raise ParameterTypeError(f"{path} has the NumPy type {dtype}, which a model file cannot hold")
    return text


def _type(value: type, path: str) -> Node:
    if value not in _TYPE_NAMES:
        raise _unsupported(value, path)
    return {"$": "type", "name": _TYPE_NAMES[value]}


def _bit_generator(value: Any, path: str) -> str:
    name = type(value).__name__
    if name not in BIT_GENERATORS or type(value) is not BIT_GENERATORS[name][0]:
        raise _unsupported(value, path)
    return name


def _requests(estimator: Any) -> dict[str, dict[str, Any]] | None:
    """Metadata requests that were set on this instance, by method."""
    request = vars(estimator).get(REQUESTS)
    if request is None:
        return None
    methods = {name: value for name, value in vars(request).items() if name != "owner"}
    return {name: dict(value.requests) for name, value in methods.items() if value.requests}


def _unsupported(value: Any, path: str, hint: str = "") -> ParameterTypeError:
    named = value if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")) else type(value)
    what = f"{getattr(named, '__module__', '?')}.{getattr(named, '__qualname__', named)}"
    hint = hint or (
        "it may hold epicycle's estimators, scikit-learn's pipelines, column transformers, scalers, encoders, imputers "
        "and selectors, numbers, text, NumPy arrays and containers of these"
    )
    return ParameterTypeError(f"a model file cannot hold {what}, found at {path}; {hint}")


#: Values without parts, by exact type: a subclass may mean something else.
_PLAIN: dict[type, Callable[[Any, str], Json]] = {
    type(None): lambda _value, _path: None,
    bool: lambda value, _path: value,
    int: _int,
    float: _float,
    str: _text,
    bytes: _bytes,
}
_COMPOSITE: dict[type, Callable[[Encoder, Any, str], Json]] = {
    complex: Encoder._complex,
    list: Encoder._items,
    tuple: lambda encoder, value, path: {"$": "tuple", "items": encoder._items(value, path)},
    dict: Encoder._dict,
    set: Encoder._set,
    frozenset: Encoder._set,
    slice: Encoder._bounds,
    range: Encoder._bounds,
    np.ndarray: Encoder._array,
    np.memmap: Encoder._array,
    np.random.SeedSequence: Encoder._seed_sequence,
    np.random.Generator: Encoder._generator,
    np.random.RandomState: Encoder._random_state,
}
