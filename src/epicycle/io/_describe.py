"""Describe a model file without building the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from epicycle.core._certificate import Certificate
from epicycle.io._atomic import as_path
from epicycle.io._decoder import Decoder
from epicycle.io._files import model_format_errors, read_contents
from epicycle.io._json import Json
from epicycle.io._schema import children

#: Kinds whose values are shown as they are; they hold neither classes nor arrays.
_SIMPLE = frozenset(
    ["int", "float", "complex", "tuple", "set", "frozenset", "dict", "pairs", "slice", "range", "scalar"]
)
_LONGEST = 20


@dataclass(frozen=True)
class ArrayDescription:
    """One array of a model file: where it stands in the model, its type, shape and size."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True)
class ModelDescription:
    """Contents of a model file, as `describe` returns them.

    Attributes
    ----------
    path : str
        The file.
    class_name : str
        The class of the model, or the kind of value if it is none.
    parameters : dict
        Constructor parameters: plain values as they are, anything else in words.
    fitted : tuple of str
        Names of the fitted attributes.
    parts : dict
        Classes of the estimators inside, by the path that leads to each.
    certificates : dict
        Certificates of the fits in the file, by the path of the estimator.
    arrays : tuple of ArrayDescription
        The arrays, in the order of their names.
    versions : dict
        Versions of python, numpy, scipy, scikit-learn and epicycle that wrote the file.
    format_version : int
        Version of the file format.
    file_bytes : int
        Size of the file.
    """

    path: str
    class_name: str
    parameters: dict[str, Any]
    fitted: tuple[str, ...]
    parts: dict[str, str]
    certificates: dict[str, Certificate]
    arrays: tuple[ArrayDescription, ...]
    versions: dict[str, str]
    format_version: int
    file_bytes: int

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the model itself, or else of the last estimator inside that has one."""
        return self.certificates.get("model") or next(reversed(self.certificates.values()), None)


def describe(path: str | os.PathLike[str]) -> ModelDescription:
    """Tell what is in the model file `path` after checking all of it, importing and building nothing.

    A class that is not on the allow-list is shown, not refused: it is `load` that would build it.
    """
    location = as_path(path)
    with model_format_errors(location):
        contents = read_contents(location)
        parts: dict[str, str] = {}
        certificates: dict[str, Certificate] = {}
        arrays = []
        for place, node in _walk(contents.tree, "model"):
            if node["$"] == "array":
                name, shape = str(node["name"]), tuple(node["shape"])
                tensor = contents.header[name]
                arrays.append(ArrayDescription(name, node["dtype"], shape, tensor.end - tensor.begin))
            elif node.get("class") == "epicycle.Certificate":
                if place.endswith(".certificate_"):
                    certificates[place.removesuffix(".certificate_")] = Decoder({}).decode(node)
            elif node["$"] == "estimator" and place != "model":
                parts[place] = node["class"]
        root = contents.tree if isinstance(contents.tree, dict) else {"$": type(contents.tree).__name__}
        fields: Any = root if root["$"] == "estimator" else {"parameters": root.get("state", {}), "fitted": {}}
        return ModelDescription(
            path=str(location),
            class_name=str(root.get("class", root["$"])),
            parameters={name: _shown(node) for name, node in fields["parameters"].items()},
            fitted=tuple(fields["fitted"]),
            parts=parts,
            certificates=certificates,
            arrays=tuple(sorted(arrays, key=lambda array: array.name)),
            versions=contents.manifest.written_by,
            format_version=contents.manifest.version,
            file_bytes=contents.file_bytes,
        )


def _walk(node: Json, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All tagged nodes with their paths, the outer before the inner. The depth was checked before."""
    if isinstance(node, dict):
        yield place, node
    for step, child in children(node):
        if isinstance(child, list | dict):
            yield from _walk(child, place + step)


def _shown(node: Json) -> Any:
    """A parameter for display: its value if it is plain and short, otherwise words."""
    if not isinstance(node, list | dict):
        return node
    if not _SIMPLE.issuperset(str(inner["$"]) for _, inner in _walk(node, "")):
        return _in_words(node)
    value = Decoder({}).decode(node)
    return value if not hasattr(value, "__len__") or len(value) <= _LONGEST else _in_words(node)


def _in_words(node: Json) -> str:
    if isinstance(node, list):
        items = [_in_words(item) for item in node[:_LONGEST]] + ["..."] * (len(node) > _LONGEST)
        return f"[{', '.join(items)}]"
    if not isinstance(node, dict):
        return repr(node)
    match node["$"]:
        case "estimator" | "object":
            return str(node["class"]).rpartition(".")[2]
        case "array" | "objects":
            return f"array of shape {tuple(node['shape'])}"  # type: ignore[arg-type]
        case "dtype" | "type" | "function":
            return str(node["name"])
        case "tuple":
            return f"({_in_words(node['items'])[1:-1]})"
        case kind:
            return str(kind)
