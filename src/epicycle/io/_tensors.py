"""The member that holds the arrays: safetensors, with its header checked before anything is allocated.

Types that safetensors does not know (complex numbers, dates, text) are stored as types that it does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors.numpy

from epicycle.core._exceptions import ModelFormatError
from epicycle.io._container import MAX_DIMENSIONS, MAX_HEADER_BYTES, MAX_LENGTH, TENSORS
from epicycle.io._json import Json, loads

_NUMERIC = frozenset(
    ["|b1", "|i1", "|u1"]
    + [f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8)]
    + ["<f2", "<f4", "<f8", "<c8", "<c16"]
)
_TIME = re.compile(r"<[Mm]8(\[[1-9]?[0-9]{0,5}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")
_TEXT = re.compile(r"(<U|\|S)[1-9][0-9]{0,5}")
_LAST_CODE_POINT = 0x10FFFF


def dtype_text(dtype: np.dtype[Any]) -> str | None:
    """The little-endian name of `dtype`, or None where a model file cannot hold it."""
    text = dtype.newbyteorder("<").str if dtype.kind in "biufcmMUS" else ""
    return text if text in _NUMERIC or _TIME.fullmatch(text) or _TEXT.fullmatch(text) else None


def as_dtype(text: str) -> np.dtype[Any]:
    """The dtype that `dtype_text` named."""
    if text in _NUMERIC or _TIME.fullmatch(text) or _TEXT.fullmatch(text):
        return np.dtype(text)
    raise ModelFormatError(f"unknown array type {text[:40]!r}")


def storage_of(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype under which an array is stored, and the axis that is added at its end to make room."""
    match dtype.kind:
        case "c":
            return np.dtype(f"<f{dtype.itemsize // 2}"), (2,)
        case "m" | "M":
            return np.dtype("<i8"), ()
        case "U":
            return np.dtype("<u4"), (dtype.itemsize // 4,)
        case "S":
            return np.dtype("|u1"), (dtype.itemsize,)
        case _:
            return dtype, ()


def check_content(stored: np.ndarray, dtype: np.dtype[Any], name: str) -> None:
    """Refuse bit patterns that no value of `dtype` has: other code trusts NumPy never to hold them."""
    if dtype.kind == "b" and stored.size and stored.view(np.uint8).max() > 1:
        raise ModelFormatError(f"the boolean array {name!r} holds bytes other than 0 and 1")
    if dtype.kind == "U" and stored.size and stored.max() > _LAST_CODE_POINT:
        raise ModelFormatError(f"the text array {name!r} holds a number that is no character")


_DTYPES = {
    "BOOL": np.dtype("|b1"),
    "U8": np.dtype("|u1"),
    "I8": np.dtype("|i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}


@dataclass(frozen=True)
class Tensor:
    """One entry of the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """All arrays, already in storage form, as the content of the member."""
    return safetensors.numpy.save(dict(arrays))


def unpack(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of a member whose header was read with `read_header`, each in memory of its own."""
    return safetensors.numpy.load(content)


def read_header(content: bytes) -> dict[str, Tensor]:
    """Names, types, shapes and places of the arrays: every byte after the header belongs to exactly one of them."""
    if len(content) < 8:
        raise ModelFormatError(f"{TENSORS} is too short to hold a header")
    header_length = int.from_bytes(content[:8], "little")
    if header_length > min(MAX_HEADER_BYTES, len(content) - 8):
        raise ModelFormatError(f"{TENSORS} claims a header of {header_length} bytes, in a member of {len(content)}")
    entries = loads(content[8 : 8 + header_length], f"the header of {TENSORS}")
    if not isinstance(entries, dict):
        raise ModelFormatError(f"the header of {TENSORS} is not a JSON object")
    header = {name: _entry(name, entry) for name, entry in entries.items()}
    position = 0
    for name, tensor in sorted(header.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin != position:
            raise ModelFormatError(f"the array {name[:200]!r} starts at byte {tensor.begin}, expected {position}")
        position = tensor.end
    if position != len(content) - 8 - header_length:
        raise ModelFormatError(f"the arrays end at byte {position} of {len(content) - 8 - header_length}")
    return header


def _entry(name: str, entry: Json) -> Tensor:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFormatError(f"the header entry of the array {name[:200]!r} is malformed")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise ModelFormatError(f"the array {name[:200]!r} has the unknown type {str(kind)[:40]!r}")
    if not is_shape(shape):
        raise ModelFormatError(f"the array {name[:200]!r} has an impossible shape: {str(shape)[:80]}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(offset) is int for offset in offsets):
        raise ModelFormatError(f"the array {name[:200]!r} has malformed offsets: {str(offsets)[:80]}")
    tensor = Tensor(_DTYPES[kind], tuple(shape), *offsets)  # type: ignore[arg-type]
    n_bytes = math.prod(tensor.shape) * tensor.dtype.itemsize
    found = tensor.end - tensor.begin
    if found != n_bytes:
        raise ModelFormatError(
            f"the array {name[:200]!r} of shape {tensor.shape} has {found} bytes, expected {n_bytes}"
        )
    return tensor


def is_shape(value: object) -> bool:
    """Whether a JSON value is a list of lengths that an array can have."""
    return (
        isinstance(value, list)
        and len(value) <= MAX_DIMENSIONS
        and all(type(length) is int and 0 <= length <= MAX_LENGTH for length in value)
    )


def to_storage(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """`array` in row-major order as safetensors can hold it, where `dtype` is its little-endian type."""
    stored, added = storage_of(dtype)
    array = np.asarray(array, dtype=dtype, order="C")
    if not added:
        return array.view(stored)
    return array.reshape(*array.shape, 1).view(stored)


def from_storage(stored: np.ndarray, dtype_name: str, shape: tuple[int, ...], order: str, name: str) -> np.ndarray:
    """The array that `to_storage` was given, after checking that the file's two accounts of it agree."""
    dtype = as_dtype(dtype_name)
    expected, added = storage_of(dtype)
    if stored.dtype != expected or stored.shape != shape + added:
        raise ModelFormatError(
            f"the array {name[:200]!r} is described as {dtype_name} of shape {shape} "
            f"but stored as {stored.dtype} of shape {stored.shape}"
        )
    check_content(stored, dtype, name)
    array = stored.view(dtype).reshape(shape)
    return np.array(array, order="F") if order == "F" else array
