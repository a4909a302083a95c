"""From the tree of model.json and its arrays back to objects. The tree was held against the schema before."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from epicycle.core._exceptions import ModelFormatError
from epicycle.io._container import MAX_INT_BITS
from epicycle.io._json import Json
from epicycle.io._registry import TYPES, class_named, function_named, parameter_names
from epicycle.io._state import REQUESTS, build_bit_generator, build_random_state, build_seed_sequence, check_fitted_name
from epicycle.io._tensors import as_dtype, check_content, from_storage, storage_of

_HEX_INT = re.compile(rf"-?0x[0-9a-f]{{1,{MAX_INT_BITS // 4}}}")
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Decoder:
    """Builds one model. Each array of the file is handed out once."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = arrays

    def decode(self, node: Json) -> Any:
        """The value that `node` stands for."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if isinstance(node, dict):
            return _DECODERS[node["$"]](self, node)  # type: ignore[index]
        return node

    def _fields(self, fields: dict[str, Json]) -> dict[str, Any]:
        return {name: self.decode(child) for name, child in fields.items()}

    def _pairs(self, node: dict[str, Any]) -> dict[Any, Any]:
        pairs = [(self.decode(key), self.decode(value)) for key, value in node["items"]]
        complete: dict[Any, Any] = _complete(dict(pairs), len(pairs))
        return complete

    def _bounds(self, node: dict[str, Any], cls: type) -> Any:
        return cls(*(self.decode(node[name]) for name in ("start", "stop", "step")))

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        name, order = node["name"], node["order"]
        if order not in ("C", "F"):
            raise ModelFormatError(f"the array {name[:200]!r} has the unknown order {order[:20]!r}")
        # Taken out: two attributes never share memory that one of them may write to.
        return from_storage(self._arrays.pop(name), node["dtype"], tuple(node["shape"]), order, name)

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        if math.prod(node["shape"]) != len(node["items"]):
            raise ModelFormatError(f"an object array of shape {node['shape']} holds {len(node['items'])} values")
        # One by one: np.array would make a matrix of a list of lists of one length.
        array = np.empty(len(node["items"]), dtype=object)
        for i, item in enumerate(node["items"]):
            array[i] = self.decode(item)
        return array.reshape(node["shape"])

    def _sparse(self, node: dict[str, Any]) -> Any:
        data, indices, indptr = (self.decode(node[name]) for name in ("data", "indices", "indptr"))
        shape, layout, kind = tuple(node["shape"]), node["format"], node["kind"]
        if layout not in ("csr", "csc") or kind not in ("array", "matrix") or len(shape) != 2:
            raise ModelFormatError(f"unknown sparse layout {layout[:20]!r}, {kind[:20]!r} with {len(shape)} axes")
        major, minor = shape if layout == "csr" else shape[::-1]
        _check_sparse(data, indices, indptr, major, minor)
        matrix = getattr(import_module("scipy.sparse"), f"{layout}_{kind}")(shape, dtype=data.dtype)
        # Set one by one: the constructor would narrow 64-bit indices.
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        return matrix

    def _estimator(self, node: dict[str, Any]) -> Any:
        cls, form = class_named(node["class"])
        if form is not None:
            raise ModelFormatError(f"{node['class']} is not stored as an estimator")
        if unknown := sorted(node["parameters"].keys() - parameter_names(cls)):
            raise ModelFormatError(f"unknown parameters of {node['class']}: {str(unknown)[:200]}")
        for name in node["fitted"]:
            check_fitted_name(cls, name)
            if name in node["parameters"]:
                raise ModelFormatError(f"{name!r} of {node['class']} is both a parameter and an attribute")
        parameters = self._fields(node["parameters"])
        if parameters.get("memory") is not None and node["class"] == "sklearn.pipeline.Pipeline":
            # A cache directory holds pickles, which the next fit would load.
            raise ModelFormatError("the file sets the cache directory of a Pipeline; model files never do")
        # Through the constructor, which only stores; fitted attributes go past properties and __setattr__.
        estimator = cls(**parameters)
        vars(estimator).update(self._fields(node["fitted"]))
        if node["requests"] is not None:
            vars(estimator)[REQUESTS] = _metadata_request(estimator, self.decode(node["requests"]))
        return estimator

    def _object(self, node: dict[str, Any]) -> Any:
        cls, form = class_named(node["class"])
        if form is None:
            raise ModelFormatError(f"{node['class']} is stored as an estimator, not as a plain object")
        state = self._fields(node["state"])
        try:
            return form.restore(cls, state)
        except Exception as error:
            raise ModelFormatError(f"the state of {node['class']} does not fit its class: {error}") from error


def _check_sparse(data: Any, indices: Any, indptr: Any, major: int, minor: int) -> None:
    """SciPy's compiled loops trust these; an index out of range would read foreign memory."""
    arrays = [part for part in (data, indices, indptr) if isinstance(part, np.ndarray) and part.ndim == 1]
    if (
        len(arrays) != 3
        or data.dtype.kind not in "biufc"
        or indices.dtype not in (np.int32, np.int64)
        or indptr.dtype != indices.dtype
        or len(indptr) != major + 1
        or len(indices) != len(data)
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or (indptr[1:] < indptr[:-1]).any()
        or (len(indices) > 0 and (indices.min() < 0 or indices.max() >= minor))
    ):
        raise ModelFormatError("a sparse matrix has inconsistent indices")


def _metadata_request(estimator: Any, requests: Any) -> Any:
    request = import_module("sklearn.utils.metadata_routing").MetadataRequest(owner=estimator)
    methods = {name: value for name, value in vars(request).items() if name != "owner"}
    if not isinstance(requests, dict):
        raise ModelFormatError("metadata requests are malformed")
    for method, parameters in requests.items():
        if method not in methods or not isinstance(parameters, dict):
            raise ModelFormatError(f"metadata requests name the unknown method {str(method)[:60]!r}")
        for name, alias in parameters.items():
            methods[method].add_request(param=name, alias=alias)
    return request


def _complete(collection: Any, n_items: int) -> Any:
    if len(collection) != n_items:
        raise ModelFormatError("a set or dictionary names the same key twice")
    return collection


def _int(_decoder: Decoder, node: dict[str, Any]) -> int:
    if not _HEX_INT.fullmatch(node["hex"]):
        raise ModelFormatError("an integer is malformed or too large")
    return int(node["hex"], 16)


def _float(_decoder: Decoder, node: dict[str, Any]) -> float:
    if node["value"] not in _FLOATS:
        raise ModelFormatError(f"unknown number {node['value'][:40]!r}")
    return _FLOATS[node["value"]]


def _complex(decoder: Decoder, node: dict[str, Any]) -> complex:
    real, imag = decoder.decode(node["real"]), decoder.decode(node["imag"])
    if type(real) is not float or type(imag) is not float:
        raise ModelFormatError("a complex number is malformed")
    return complex(real, imag)


def _scalar(_decoder: Decoder, node: dict[str, Any]) -> np.generic:
    dtype, content = as_dtype(node["dtype"]), bytes.fromhex(node["hex"])
    if len(content) != dtype.itemsize:
        raise ModelFormatError(f"a scalar of type {dtype} has {len(content)} bytes")
    check_content(np.frombuffer(content, storage_of(dtype)[0]), dtype, "scalar")
    scalar: np.generic = np.frombuffer(content, dtype)[0]
    return scalar


def _type(_decoder: Decoder, node: dict[str, Any]) -> type:
    if node["name"] not in TYPES:
        raise ModelFormatError(f"the file names {node['name'][:120]!r}, which is not a type that a model file may hold")
    return TYPES[node["name"]]


def _generator(decoder: Decoder, node: dict[str, Any]) -> np.random.Generator:
    seed = decoder.decode(node["seed_sequence"])
    if not isinstance(seed, np.random.SeedSequence):
        raise ModelFormatError("a random generator comes without its seed sequence")
    return np.random.Generator(build_bit_generator(node["bit_generator"], decoder.decode(node["state"]), seed))


def _seed_sequence(decoder: Decoder, node: dict[str, Any]) -> np.random.SeedSequence:
    return build_seed_sequence(
        *(decoder.decode(node[name]) for name in ("entropy", "spawn_key", "pool_size", "n_children_spawned"))
    )


_DECODERS: dict[str, Callable[[Decoder, dict[str, Any]], Any]] = {
    "int": _int,
    "float": _float,
    "complex": _complex,
    "bytes": lambda _decoder, node: base64.b64decode(node["base64"], validate=True),
    "tuple": lambda decoder, node: tuple(decoder.decode(node["items"])),
    "set": lambda decoder, node: _complete(set(decoder.decode(node["items"])), len(node["items"])),
    "frozenset": lambda decoder, node: _complete(frozenset(decoder.decode(node["items"])), len(node["items"])),
    "dict": lambda decoder, node: decoder._fields(node["items"]),
    "pairs": Decoder._pairs,
    "slice": lambda decoder, node: decoder._bounds(node, slice),
    "range": lambda decoder, node: decoder._bounds(node, range),
    "pandas.NA": lambda _decoder, _node: import_module("pandas").NA,
    "scalar": _scalar,
    "array": Decoder._array,
    "objects": Decoder._objects,
    "sparse": Decoder._sparse,
    "dtype": lambda _decoder, node: np.dtype(object) if node["name"] == "|O" else as_dtype(node["name"]),
    "type": _type,
    "function": lambda _decoder, node: function_named(node["name"]),
    "seed_sequence": _seed_sequence,
    "generator": _generator,
    "random_state": lambda decoder, node: build_random_state(node["bit_generator"], decoder.decode(node["state"])),
    "estimator": Decoder._estimator,
    "object": Decoder._object,
}
