"""Save a model, and load it again.

The first member of a file is its manifest: the format, the versions of the writer, and the checksums of the rest.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from epicycle.core._exceptions import DataFileError, EpicycleWarning, ModelFormatError, ParameterError
from epicycle.io import _container as container, _tensors as tensors
from epicycle.io._atomic import as_path, check_target, write_atomically
from epicycle.io._container import (
    FORMAT_NAME,
    FORMAT_VERSION,
    MANIFEST,
    MODEL,
    TENSORS,
    Member,
    file_kind,
    naming_members,
)
from epicycle.io._decoder import Decoder
from epicycle.io._encoder import Encoder
from epicycle.io._json import Json, dumps, loads
from epicycle.io._registry import class_named, function_named
from epicycle.io._schema import Survey, survey

_PACKAGES = {"epicycle": "epicycle", "numpy": "numpy", "scipy": "scipy", "scikit-learn": "sklearn"}


@dataclass(frozen=True)
class Manifest:
    """Format, versions of the writer, sizes and checksums of a file."""

    version: int
    written_by: dict[str, str]
    members: dict[str, tuple[int, str]]


def current_versions() -> dict[str, str]:
    """The versions of what this process would write and read with."""
    versions = {name: str(import_module(module).__version__) for name, module in _PACKAGES.items()}
    return {"python": platform.python_version(), **versions}


def write_manifest(members: Mapping[str, bytes]) -> bytes:
    """The manifest for the given members."""
    written_by: dict[str, Json] = dict(current_versions())
    entries: dict[str, Json] = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in members.items()
    }
    return dumps({"format": FORMAT_NAME, "version": FORMAT_VERSION, "written_by": written_by, "members": entries})


def read_manifest(content: bytes) -> Manifest:
    """Read a manifest; one of a later format is refused by its version alone."""
    manifest = loads(content, MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT_NAME:
        raise ModelFormatError(f"{MANIFEST} is not that of an epicycle model")
    version, written_by = manifest.get("version"), manifest.get("written_by")
    if type(version) is not int or version < 1:
        raise ModelFormatError(f"{MANIFEST} states the impossible format version {str(version)[:40]}")
    if version > FORMAT_VERSION:
        writer = written_by.get("epicycle") if isinstance(written_by, dict) else None
        raise ModelFormatError(
            f"written in format version {version} by epicycle {str(writer)[:40]}; "
            f"epicycle {current_versions()['epicycle']} reads versions up to {FORMAT_VERSION}: upgrade epicycle"
        )
    if manifest.keys() != {"format", "version", "written_by", "members"}:
        raise ModelFormatError(f"{MANIFEST} has unknown or missing fields: {str(sorted(manifest))[:200]}")
    if not isinstance(written_by, dict) or not {"python", *_PACKAGES} == written_by.keys():
        raise ModelFormatError(f"{MANIFEST} does not say which versions wrote the file")
    if not all(isinstance(text, str) and len(text) <= 100 for text in written_by.values()):
        raise ModelFormatError(f"{MANIFEST} states malformed versions")
    members = manifest["members"]
    if not isinstance(members, dict) or members.keys() != {MODEL, TENSORS}:
        raise ModelFormatError(f"{MANIFEST} lists other members than {MODEL} and {TENSORS}")
    return Manifest(
        version,
        {name: str(text) for name, text in written_by.items()},
        {name: _entry(name, entry) for name, entry in members.items()},
    )


def check_member(manifest: Manifest, name: str, content: bytes) -> None:
    """Hold a member against its size and checksum."""
    size, checksum = manifest.members[name]
    if len(content) != size or hashlib.sha256(content).hexdigest() != checksum:
        raise ModelFormatError(f"{name} is damaged: its checksum does not match")


def _entry(name: str, entry: Json) -> tuple[int, str]:
    if isinstance(entry, dict) and entry.keys() == {"bytes", "sha256"}:
        size, checksum = entry["bytes"], entry["sha256"]
        if type(size) is int and isinstance(checksum, str):
            return size, checksum
    raise ModelFormatError(f"{MANIFEST} has a malformed entry for {name}")


@dataclass(frozen=True)
class Contents:
    """A model file whose checksums, sizes and structure were checked; nothing is built yet."""

    manifest: Manifest
    tree: Json
    survey: Survey
    header: dict[str, tensors.Tensor]
    tensor_bytes: bytes
    file_bytes: int


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write `model` to a file that `load` reads; a crash at any moment leaves the old file or the new one.

    Parameters
    ----------
    model : object
        An estimator of epicycle, or a scikit-learn pipeline, column transformer, scaler, encoder, imputer or selector
        around it, fitted or not; also containers, numbers and arrays.
    path : str or Path
        The file, by custom with the extension ``.epi``. Its directory has to exist.
    """
    target = check_target(path)
    write_atomically(target, pack(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Read the model that `save` wrote to `path`. Nothing in the file is ever executed.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    object
        The model, in the state in which it was saved.

    Raises
    ------
    ModelFormatError
        The file is damaged, from a later release, names a class that is not on the allow-list, or is no model file.
    DataFileError
        There is no such file, or it cannot be read.
    """
    location = as_path(path)
    with model_format_errors(location):
        contents = read_contents(location)
        # All names are looked up before the first object is built: a file that names one off the list is refused whole.
        for name in contents.survey.class_names:
            class_named(name)
        for name in contents.survey.function_names:
            function_named(name)
        arrays = tensors.unpack(contents.tensor_bytes)
        model = Decoder(arrays).decode(contents.tree)
    _warn_of_other_sklearn(contents, location)
    return model


def pack(model: Any) -> list[bytes]:
    """The bytes of a model file, in pieces; the same model gives the same bytes."""
    encoder = Encoder()
    tree = encoder.encode(model)
    content = {MODEL: dumps(tree), TENSORS: tensors.pack(encoder.arrays)}
    for name, limit in ((MODEL, container.MAX_MODEL_BYTES), (TENSORS, container.MAX_ARRAYS_BYTES)):
        if len(content[name]) > limit:
            raise ParameterError(
                f"model is too large: {name} would have {len(content[name])} bytes, the limit is {limit}"
            )
    # The reader's own check: what can be saved can be loaded.
    try:
        survey(tree)
    except ModelFormatError as error:
        raise ParameterError(f"model cannot be stored: {error}") from None
    if encoder.left_out:
        warnings.warn(
            f"not stored, because a cache holds pickles: {', '.join(encoder.left_out)}", EpicycleWarning, stacklevel=3
        )
    ordered = {MANIFEST: write_manifest(content), **content}
    heads, tail = container.framing([Member(name, zlib.crc32(c), len(c)) for name, c in ordered.items()])
    return [piece for head, c in zip(heads, ordered.values(), strict=True) for piece in (head, c)] + [tail]


def read_contents(path: Path) -> Contents:
    """Read and check everything in a model file, without building the model."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise DataFileError("a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if foreign := file_kind(file):
                raise ModelFormatError(f"not an epicycle model: {foreign}")
            with naming_members(file):
                first, content = container.read_member(file, MANIFEST, size, container.MAX_MANIFEST_BYTES)
            manifest = read_manifest(content)
            with naming_members(file):
                second, model_bytes = container.read_member(file, MODEL, size, container.MAX_MODEL_BYTES)
                third, tensor_bytes = container.read_member(file, TENSORS, size, container.MAX_ARRAYS_BYTES)
                container.read_tail(file, [first, second, third], size)
    except FileNotFoundError as error:
        what = "no such file" if error.errno is not None else str(error)
        raise DataFileError(f"cannot read the model: {what}") from None
    except OSError as error:
        raise DataFileError(f"cannot read the model: {error.strerror or error}") from error
    check_member(manifest, MODEL, model_bytes)
    check_member(manifest, TENSORS, tensor_bytes)
    tree = loads(model_bytes, MODEL)
    found = survey(tree)
    header = tensors.read_header(tensor_bytes)
    if sorted(found.array_names) != sorted(header):
        odd = sorted(set(found.array_names) ^ set(header)) or "one is used twice"
        raise ModelFormatError(f"{MODEL} and {TENSORS} do not hold the same arrays: {str(odd)[:200]}")
    return Contents(manifest, tree, found, header, tensor_bytes, size)


@contextmanager
def model_format_errors(path: Path) -> Iterator[None]:
    """Name the file in every error, and let no other kind of error out: the caller handles one, whatever the damage."""
    try:
        yield
    except (ModelFormatError, DataFileError) as error:
        raise type(error)(f"{path}: {error}") from error.__cause__
    except Exception as error:
        raise ModelFormatError(f"{path}: the model cannot be built: {type(error).__name__}: {error}") from error


def _warn_of_other_sklearn(contents: Contents, path: Path) -> None:
    written, here = contents.manifest.written_by["scikit-learn"], current_versions()["scikit-learn"]
    if written != here and any(name.startswith("sklearn.") for name in contents.survey.class_names):
        warnings.warn(
            f"{path} holds scikit-learn objects written with scikit-learn {written} and is read with {here}; "
            "check their results, or save the model again",
            EpicycleWarning,
            stacklevel=3,
        )
