"""The tree in model.json: plain JSON values stand for themselves, everything else is an object tagged with ``"$"``.

`SCHEMA` lists every tag with its fields. `survey` holds a whole tree against it, without recursion and before anything
is built, so that the decoder may rely on the structure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from epicycle.core._exceptions import ModelFormatError
from epicycle.io._container import MAX_DEPTH, MAX_NODES
from epicycle.io._json import Json
from epicycle.io._tensors import is_shape

Node = dict[str, Json]


class Field(Enum):
    """Kind of value in a field of a tagged object."""

    NODE = "node"
    NODES = "nodes"
    FIELDS = "fields"
    PAIRS = "pairs"
    TEXT = "text"
    SHAPE = "shape"


#: Fields of every tag, "name:kind"; without a kind it is a node.
_TAGS = {
    "int": "hex:text",
    "float": "value:text",
    "complex": "real imag",
    "bytes": "base64:text",
    "tuple": "items:nodes",
    "set": "items:nodes",
    "frozenset": "items:nodes",
    "dict": "items:fields",
    "pairs": "items:pairs",
    "slice": "start stop step",
    "range": "start stop step",
    "pandas.NA": "",
    "scalar": "dtype:text hex:text",
    "array": "name:text dtype:text shape:shape order:text",
    "objects": "shape:shape items:nodes",
    "sparse": "format:text kind:text shape:shape data indices indptr",
    "dtype": "name:text",
    "type": "name:text",
    "function": "name:text",
    "seed_sequence": "entropy spawn_key pool_size n_children_spawned",
    "generator": "bit_generator:text state seed_sequence",
    "random_state": "bit_generator:text state",
    "estimator": "class:text parameters:fields fitted:fields requests",
    "object": "class:text state:fields",
}
SCHEMA: dict[str, dict[str, Field]] = {
    tag: {name: Field(kind or "node") for name, _, kind in (word.partition(":") for word in text.split())}
    for tag, text in _TAGS.items()
}


@dataclass
class Survey:
    """Classes, functions and arrays that a tree refers to."""

    array_names: list[str] = field(default_factory=list)
    class_names: list[str] = field(default_factory=list)
    function_names: list[str] = field(default_factory=list)


def survey(tree: Json) -> Survey:
    """Check every node of `tree` against `SCHEMA` and the limits."""
    found = Survey()
    # A stack of iterators in place of recursion: a hostile file cannot exhaust the interpreter's stack.
    levels = [iter([tree])]
    count = 0
    while levels:
        for node in levels[-1]:
            count += 1
            if count > MAX_NODES:
                raise ModelFormatError(f"the model holds more than {MAX_NODES} values")
            if isinstance(node, list | dict):
                if len(levels) > MAX_DEPTH:
                    raise ModelFormatError(f"the model is nested more than {MAX_DEPTH} levels deep")
                if isinstance(node, dict):
                    _check_tagged(node, found)
                levels.append(iter([child for _, child in children(node)]))
                break
            _check_plain(node)
        else:
            levels.pop()
    return found


def children(node: Json) -> Iterator[tuple[str, Json]]:
    """The nodes directly below a node that `survey` accepted, each with the step that leads to it."""
    if isinstance(node, list):
        for i, child in enumerate(node):
            yield f"[{i}]", child
    elif isinstance(node, dict):
        for key, kind in SCHEMA[str(node["$"])].items():
            value = node[key]
            if kind is Field.NODE:
                yield f".{key}", value
            elif kind is Field.NODES and isinstance(value, list):
                yield from children(value)
            elif kind is Field.FIELDS and isinstance(value, dict):
                for name, child in value.items():
                    yield (f"[{name!r}]" if node["$"] == "dict" else f".{name}"), child
            elif kind is Field.PAIRS and isinstance(value, list):
                for i, pair in enumerate(value):
                    if isinstance(pair, list):
                        yield f".key[{i}]", pair[0]
                        yield f".value[{i}]", pair[1]


def _check_plain(node: Json) -> None:
    if type(node) is int and not -(2**63) <= node < 2**63:
        raise ModelFormatError("the model holds a bare number beyond 64 bits")
    if type(node) is float and not math.isfinite(node):
        raise ModelFormatError("the model holds a bare number that is not finite")


def _check_tagged(node: Node, found: Survey) -> None:
    tag = node.get("$")
    if not isinstance(tag, str) or tag not in SCHEMA:
        raise ModelFormatError(f"the model holds a value of the unknown kind {str(tag)[:60]!r}")
    fields = SCHEMA[tag]
    if wrong := sorted((fields.keys() ^ node.keys()) - {"$"}):
        raise ModelFormatError(f"a value of kind {tag!r} has unknown or missing fields: {str(wrong)[:200]}")
    for key, kind in fields.items():
        if not _has_kind(node[key], kind):
            raise ModelFormatError(f"the field {key!r} of a value of kind {tag!r} is malformed: {str(node[key])[:60]}")
    if tag == "array":
        found.array_names.append(str(node["name"]))
    elif tag in ("estimator", "object"):
        found.class_names.append(str(node["class"]))
    elif tag == "function":
        found.function_names.append(str(node["name"]))


def _has_kind(value: Json, kind: Field) -> bool:
    match kind:
        case Field.NODE:
            return True
        case Field.NODES:
            return isinstance(value, list)
        case Field.FIELDS:
            return isinstance(value, dict)
        case Field.PAIRS:
            return isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
        case Field.TEXT:
            return isinstance(value, str)
        case Field.SHAPE:
            return is_shape(value)
