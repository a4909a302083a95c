"""Say in words what a file is when it is not a model file."""

from __future__ import annotations

import zipfile
from typing import BinaryIO

from epicycle.io.container import MANIFEST, MEMBERS

__all__ = ["what_is"]

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
    """A description of a file that is not a model file, or None if it may be one. Leaves `file` at its start."""
    start = file.read(30 + len(MANIFEST))
    file.seek(0)
    if not start:
        return "the file is empty"
    for magic, name in _MAGIC:
        if start.startswith(magic):
            return name
    if not start.startswith(b"PK"):
        return f"it starts with {start[:8]!r}"
    names = _zip_names(file)
    file.seek(0)
    if strangers := [name for name in names if name not in MEMBERS]:
        pickles = [name for name in strangers if name.lower().endswith(_PICKLE_ENDINGS)]
        if start[30:] == MANIFEST.encode() and not pickles:
            return None  # perhaps of a later format: its manifest will say
        what = "a zip with a pickle inside, which was not opened" if pickles else "a zip of something else"
        return f"{what}: {', '.join(repr(name[:60]) for name in (pickles or strangers)[:5])}"
    return None


def _zip_names(file: BinaryIO) -> list[str]:
    """Names in the directory of a zip, for the message only; the strict reader decides."""
    file.seek(0, 2)
    if file.tell() > _MAX_LISTED:
        return []
    try:
        return zipfile.ZipFile(file).namelist()
    except Exception:
        return []
