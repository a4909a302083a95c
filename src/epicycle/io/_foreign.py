"""Say in words what a file is when it is not a model file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from epicycle.core._exceptions import ModelFormatError
from epicycle.io._container import MEMBERS

__all__ = ["naming_strangers", "what_is"]

_MAGIC = (
    (b"\x80\x02", "a pickle, which could run any code when loaded; it was not opened"),
    (b"\x80\x03", "a pickle, which could run any code when loaded; it was not opened"),
    (b"\x80\x04", "a pickle, which could run any code when loaded; it was not opened"),
    (b"\x80\x05", "a pickle, which could run any code when loaded; it was not opened"),
    (b"\x1f\x8b", "a gzip file (a compressed pickle of joblib?); it was not opened"),
    (b"\x78\x9c", "a zlib stream (a compressed pickle of joblib?); it was not opened"),
    (b"\x78\x01", "a zlib stream (a compressed pickle of joblib?); it was not opened"),
    (b"\x78\x5e", "a zlib stream (a compressed pickle of joblib?); it was not opened"),
    (b"\x78\xda", "a zlib stream (a compressed pickle of joblib?); it was not opened"),
    (b"BZh", "a bzip2 file (a compressed pickle of joblib?); it was not opened"),
    (b"\xfd7zXZ", "an xz file (a compressed pickle of joblib?); it was not opened"),
    (b"\x93NUMPY", "a NumPy array file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"PAR1", "a Parquet file"),
)
_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".pth", ".pt")
_MAX_LISTED = 64 * 1024**2


def what_is(file: BinaryIO) -> str | None:
    """A description of a file that is not a zip, or None for a zip. Leaves `file` at its start."""
    start = file.read(8)
    file.seek(0)
    if not start:
        return "the file is empty"
    if start.startswith(b"PK"):
        return None
    return next((name for magic, name in _MAGIC if start.startswith(magic)), f"it starts with {start!r}")


@contextmanager
def naming_strangers(file: BinaryIO) -> Iterator[None]:
    """Add to an error of the strict reader which other members the zip holds, pickles first."""
    try:
        yield
    except ModelFormatError as error:
        strangers = [name for name in _zip_names(file) if name not in MEMBERS]
        pickles = [name for name in strangers if name.lower().endswith(_PICKLE_ENDINGS)]
        if not strangers:
            raise
        what = "a zip with a pickle inside, which was not opened" if pickles else "a zip of something else"
        listed = ", ".join(repr(name[:60]) for name in (pickles or strangers)[:5])
        raise ModelFormatError(f"{what}: {listed}; {error}") from None


def _zip_names(file: BinaryIO) -> list[str]:
    """Names in the directory of a zip that was already refused, for the message only."""
    if file.seek(0, 2) > _MAX_LISTED:
        return []
    try:
        return zipfile.ZipFile(file).namelist()
    except Exception:
        return []
