"""Files of tables: compressed ones as streams of bytes, several that are one table, and arrays of JSON."""

from __future__ import annotations

import codecs
import glob
import io
import json
import lzma
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from epicycle.core._exceptions import DataFileError

#: Suffixes of compressed files; the one before it says what is inside.
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".xz", ".lzma", ".zip")
#: What reading a file that is damaged raises; zipfile says NotImplementedError of a compression that it does not know.
UNREADABLE = (OSError, pa.ArrowException, lzma.LZMAError, EOFError, zipfile.BadZipFile, NotImplementedError)


def open_bytes(path: Path) -> Any:
    """The content of a file as a stream of Arrow, decompressed where its suffix says so."""
    suffix = path.suffix.lower()
    if suffix in (".xz", ".lzma"):
        return pa.PythonFile(lzma.open(path, "rb"), mode="r")
    if suffix == ".zip":
        return pa.PythonFile(_only_member(path), mode="r")
    return pa.input_stream(path, compression="detect")


def _only_member(path: Path) -> Any:
    archive = zipfile.ZipFile(path)
    # Folders, and what macOS adds to every archive.
    names = [
        member.filename
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    if len(names) != 1:
        raise DataFileError(f"{path}: holds {len(names)} files; expected one")
    try:
        return archive.open(names[0])
    except RuntimeError as error:  # a password is needed
        raise DataFileError(f"{path}: {error}") from None


#: The first bytes of compressed content, and the name of the compression.
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zst", b"\xfd7zXZ": "xz", b"\x04\x22\x4d\x18": "lz4"}


def decompressed(stream: io.BufferedReader, size: int) -> io.BufferedReader:
    """A stream of bytes, as it is or decompressed where its first bytes are those of compressed content.

    `size` is that of the buffer, from which the beginning can be looked at.
    """
    kind = next((name for magic, name in _MAGIC.items() if stream.peek(8).startswith(magic)), None)
    if kind is None:
        return stream
    if kind == "xz":
        return io.BufferedReader(lzma.open(stream), size)
    # The stream has no position that Arrow could ask for.
    content = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), {"gz": "gzip", "zst": "zstd"}.get(kind, kind))
    return io.BufferedReader(_Readable(content), size)


class _Readable(io.RawIOBase):
    """A stream of Arrow as one of Python, which can be read in pieces of any size."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.stream.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


#: Suffixes of the tables of a folder.
TABLES = (
    *(".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc", ".arrows", ".json", ".jsonl", ".ndjson"),
    *(".xlsx", ".ods"),
)


def _of_folder(folder: Path) -> list[Path]:
    """The tables of a folder in the order of their names; hidden files and those of other kinds are passed over."""
    found = []
    for path in sorted(folder.iterdir()):
        suffixes = [suffix.lower() for suffix in path.suffixes]
        if suffixes and suffixes[-1] in COMPRESSED:
            suffixes.pop()
        if path.is_file() and not path.name.startswith((".", "_")) and suffixes and suffixes[-1] in TABLES:
            found.append(path)
    if not found:
        raise DataFileError(f"{folder}: is a directory without tables; expected files such as .csv or .parquet in it")
    return found


def several_files(source: Any) -> list[Path] | None:
    """The files of a list of paths, of a folder, or of a pattern such as ``data/*.csv``; None for other sources."""
    if isinstance(source, str | os.PathLike) and os.path.isdir(source):
        return _of_folder(Path(source))
    if isinstance(source, list | tuple):
        if not source or not all(isinstance(part, str | os.PathLike) for part in source):
            return None
        return [Path(part) for part in source]
    if not isinstance(source, str) or not glob.has_magic(source) or os.path.exists(source):
        return None
    found = sorted(glob.glob(source, recursive=True))
    if not found:
        raise DataFileError(f"{source}: no file has a name like this")
    return [Path(part) for part in found]


def is_json_array(head: bytes) -> bool:
    """Whether a text is one JSON array of objects, rather than an object in each line."""
    return re.match(rb"\s*\[\s*[{\]]", head.removeprefix(codecs.BOM_UTF8)) is not None


def json_array(content: bytes, name: str) -> pa.Table:
    """The objects of a JSON array as rows; what an object lacks is missing."""
    try:
        rows = json.loads(content.decode("utf-8-sig"))
    except ValueError as error:
        raise DataFileError(f"{name}: cannot be read: {error}") from None
    if not all(isinstance(row, dict) for row in rows):
        raise DataFileError(f"{name}: an array of JSON that does not hold objects alone; expected a table")
    names = list(dict.fromkeys(key for row in rows for key in row))
    return pa.table({key: pa.array([row.get(key) for row in rows]) for key in names})
