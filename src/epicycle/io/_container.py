"""The zip around a model: stored members in a fixed order, and not one byte that is not expected.

A general zip reader trusts a directory at the end of the file, which may disagree with what stands before each member;
that disagreement is what archive attacks are made of. A model file has only one layout for given members, so the
reader computes the layout and compares: overlaps, duplicates, hidden members, comments and bombs have no room.
Other zip tools read these files as usual.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from epicycle.core._exceptions import ModelFormatError

# Bounds on what a file may claim. Writer and reader share them: what can be saved can be loaded.

#: The format this release writes, and the highest that it reads.
FORMAT_NAME: Final = "epicycle model"
FORMAT_VERSION: Final = 1

MAX_MANIFEST_BYTES: Final = 64 * 1024
MAX_MODEL_BYTES: Final = 256 * 1024**2
MAX_ARRAYS_BYTES: Final = 64 * 1024**3
MAX_HEADER_BYTES: Final = 64 * 1024**2

#: Levels of brackets in any JSON text; a node of the tree takes at most three.
MAX_JSON_DEPTH: Final = 200
MAX_DEPTH: Final = 64
MAX_NODES: Final = 8_000_000

MAX_DIMENSIONS: Final = 32
MAX_LENGTH: Final = 2**48
MAX_INT_BITS: Final = 4096
MAX_BYTES_LITERAL: Final = 16 * 1024**2


MANIFEST = "manifest.json"
MODEL = "model.json"
TENSORS = "arrays.safetensors"
#: Names and order of the members. The manifest is first in every version of the format: any release can read it.
MEMBERS = (MANIFEST, MODEL, TENSORS)

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_EXTRA64 = struct.Struct("<2H2Q")
_EXTRA64_OFFSET = struct.Struct("<2H3Q")

_FULL = 0xFFFFFFFF
#: Sizes from here on go into the 64-bit fields.
_LIMIT_32 = _FULL - 1
_DATE = 0x21  # 1 January 1980: the same model gives the same bytes on any day
_MODE = 0o100644 << 16


@dataclass(frozen=True)
class Member:
    """One stored member: what its headers have to say."""

    name: str
    crc: int
    size: int

    @property
    def is_large(self) -> bool:
        return self.size > _LIMIT_32

    def local_header(self) -> bytes:
        extra = _EXTRA64.pack(1, 16, self.size, self.size) if self.is_large else b""
        size = _FULL if self.is_large else self.size
        version = 45 if self.is_large else 20
        name = self.name.encode()
        fixed = _LOCAL.pack(b"PK\x03\x04", version, 0, 0, 0, _DATE, self.crc, size, size, len(name), len(extra))
        return fixed + name + extra

    def central_header(self, offset: int) -> bytes:
        large = self.is_large or offset > _LIMIT_32
        extra = _EXTRA64_OFFSET.pack(1, 24, self.size, self.size, offset) if large else b""
        size, start = (_FULL, _FULL) if large else (self.size, offset)
        version = 45 if large else 20
        name = self.name.encode()
        # fmt: off
        fixed = _CENTRAL.pack(b"PK\x01\x02", 3 << 8 | version, version, 0, 0, 0, _DATE, self.crc, size, size,
                              len(name), len(extra), 0, 0, 0, _MODE, start)
        # fmt: on
        return fixed + name + extra


def framing(members: Sequence[Member]) -> tuple[list[bytes], bytes]:
    """Bytes before each member and after the last: all of the file that is not content."""
    heads, directory, position = [], b"", 0
    for member in members:
        heads.append(member.local_header())
        directory += member.central_header(position)
        position += len(heads[-1]) + member.size
    n, start, size = len(members), position, len(directory)
    end64 = b""
    if start > _LIMIT_32:
        end64 = _END64.pack(b"PK\x06\x06", 44, 3 << 8 | 45, 45, 0, 0, n, n, size, start)
        end64 += _LOCATOR64.pack(b"PK\x06\x07", 0, start + size, 1)
    shown_start = _FULL if end64 else start
    return heads, directory + end64 + _END.pack(b"PK\x05\x06", 0, 0, n, n, size, shown_start, 0)


def read_member(file: BinaryIO, name: str, file_size: int, max_size: int) -> tuple[Member, bytes]:
    """Read the member that starts here, which has to be `name`, and check it against its own header."""
    start = file.tell()
    fixed = file.read(_LOCAL.size)
    if len(fixed) < _LOCAL.size or fixed[:4] != b"PK\x03\x04":
        raise ModelFormatError(f"no member {name} at byte {start}: the file is cut short or not a model file")
    *_, crc, size, _, name_length, extra_length = _LOCAL.unpack(fixed)
    rest = file.read(name_length + extra_length)
    found = rest[:name_length].decode("ascii", "backslashreplace")
    if found != name:
        raise ModelFormatError(f"expected the member {name} at byte {start}, found {found[:80]!r}")
    if size == _FULL and len(rest) == name_length + _EXTRA64.size:  # a member of more than 4 GiB
        size = _EXTRA64.unpack(rest[name_length:])[2]
    member = Member(name, crc, size)
    if fixed + rest != member.local_header():
        raise ModelFormatError(
            f"the header of {name} is not one that epicycle writes: compressed, encrypted or damaged"
        )
    if size > max_size:
        raise ModelFormatError(f"{name} claims {size} bytes; the limit is {max_size}")
    if size > file_size - file.tell():
        raise ModelFormatError(f"{name} claims {size} bytes, but only {file_size - file.tell()} follow: cut short")
    content = file.read(size)
    if len(content) != size or zlib.crc32(content) != crc:
        raise ModelFormatError(f"{name} is damaged: its CRC does not match")
    return member, content


def read_tail(file: BinaryIO, members: Sequence[Member], file_size: int) -> None:
    """Check that nothing but the one possible directory follows the members."""
    # Compared as bytes: nothing in the directory is ever interpreted.
    _, tail = framing(members)
    left = file_size - file.tell()
    if left != len(tail) or file.read(len(tail) + 1) != tail:
        raise ModelFormatError(
            f"what follows the last member is not its directory ({left} bytes where {len(tail)} belong): "
            "the file is cut short, was appended to, or holds other members"
        )


_JOBLIB = "(a compressed pickle of joblib?); it was not opened"
#: First bytes of other files, and what these are.
_MAGIC = (
    ((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle, which could run any code; it was not opened"),
    ((b"\x1f\x8b",), f"a gzip file {_JOBLIB}"),
    ((b"\x78\x9c", b"\x78\x01", b"\x78\x5e", b"\x78\xda"), f"a zlib stream {_JOBLIB}"),
    ((b"BZh",), f"a bzip2 file {_JOBLIB}"),
    ((b"\xfd7zXZ",), f"an xz file {_JOBLIB}"),
    ((b"\x93NUMPY",), "a NumPy array file"),
    ((b"\x89HDF",), "an HDF5 file"),
    ((b"PAR1",), "a Parquet file"),
)
_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".pth", ".pt")
_MAX_LISTED = 64 * 1024**2


def file_kind(file: BinaryIO) -> str | None:
    """A description of a file that is not a zip, or None for a zip. Leaves `file` at its start."""
    start = file.read(8)
    file.seek(0)
    if not start:
        return "the file is empty"
    if start.startswith(b"PK"):
        return None
    return next((name for magic, name in _MAGIC if start.startswith(magic)), f"it starts with {start!r}")


@contextmanager
def naming_members(file: BinaryIO) -> Iterator[None]:
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
