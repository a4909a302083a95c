"""JSON with bounds: nesting and number of values are known before anything is parsed."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

from epicycle.core._exceptions import ModelFormatError
from epicycle.io._container import MAX_JSON_DEPTH, MAX_NODES

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


def dumps(value: Json) -> bytes:
    """Compact UTF-8 text; floats in the shortest form that reads back to the same bits."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def loads(text: bytes, what: str) -> Json:
    """Parse `text`, the content of the member `what`; anything unusual is a ModelFormatError."""
    _check_structure(text, what)
    try:
        value: Json = json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{what} is not valid JSON: {error}") from error
    return value


def _check_structure(text: bytes, what: str) -> None:
    # Counted before parsing: the parser itself would build the values, and recurse, first.
    bare = _STRING.sub(b"", text)
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > 4 * MAX_NODES:
        raise ModelFormatError(f"{what} holds more than {MAX_NODES} values")
    depth = 0
    for bracket in _BRACKET.finditer(bare):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > MAX_JSON_DEPTH:
            raise ModelFormatError(f"{what} is nested more than {MAX_JSON_DEPTH} levels deep")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Readers differ in which of two equal keys counts: a file must mean one thing.
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object names the same key twice")
    return members


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is beyond the range of a float")
    return value
