"""Save a model, and load it again."""

from __future__ import annotations

import os
import stat
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epicycle.core._exceptions import DataFileError, EpicycleWarning, ModelFormatError, ParameterError
from epicycle.io import _container as container, _limits as limits, _tensors as tensors
from epicycle.io._atomic import as_path, check_target, write_atomically
from epicycle.io._container import MANIFEST, MODEL, TENSORS, Member
from epicycle.io._decoder import Decoder
from epicycle.io._encoder import Encoder
from epicycle.io._foreign import naming_strangers, what_is
from epicycle.io._json import Json, dumps, loads
from epicycle.io._manifest import Manifest, check_member, current_versions, read_manifest, write_manifest
from epicycle.io._registry import class_named, function_named
from epicycle.io._schema import Survey, survey

__all__ = ["Contents", "load", "pack", "read_contents", "save"]


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
    for name, limit in ((MODEL, limits.MAX_MODEL_BYTES), (TENSORS, limits.MAX_ARRAYS_BYTES)):
        if len(content[name]) > limit:
            raise ParameterError(
                f"model is too large: {name} would have {len(content[name])} bytes, the limit is {limit}"
            )
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
            if foreign := what_is(file):
                raise ModelFormatError(f"not an epicycle model: {foreign}")
            with naming_strangers(file):
                first, content = container.read_member(file, MANIFEST, size, limits.MAX_MANIFEST_BYTES)
            manifest = read_manifest(content)
            with naming_strangers(file):
                second, model_bytes = container.read_member(file, MODEL, size, limits.MAX_MODEL_BYTES)
                third, tensor_bytes = container.read_member(file, TENSORS, size, limits.MAX_ARRAYS_BYTES)
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
