"""Which array types a model file holds, and how those that safetensors does not know are laid out in those it does."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from epicycle.core._exceptions import ModelFormatError

__all__ = ["as_dtype", "check_content", "dtype_text", "storage_of"]

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
