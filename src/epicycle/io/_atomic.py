"""Write a file so that a crash at any moment leaves either the old content or the new, never half of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from epicycle.core._exceptions import DataFileError, ParameterTypeError


def as_path(path: object) -> Path:
    """`path` as a Path, or an error that names the argument."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise ParameterTypeError(f"path must be a str or pathlib.Path, got {type(path).__name__}: {path!r:.80}")
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise ParameterTypeError(f"path must name a file, got {os.fspath(path)!r:.80}")
    return Path(path)


def check_target(path: object) -> Path:
    """The target of `path` (links followed), after checking that a file can be written there."""
    target = Path(os.path.realpath(as_path(path)))
    folder = target.parent
    if target.is_dir():
        raise DataFileError(f"path is a directory, expected a file to write: {target}")
    if target.exists() and not target.is_file():
        raise DataFileError(f"path is not a regular file: {target}")
    if not folder.is_dir():
        what = "is not a directory" if folder.exists() else "does not exist"
        raise DataFileError(f"cannot write {target}: the directory {folder} {what}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataFileError(f"cannot write {target}: no permission to create files in {folder}")
    return target


def write_atomically(target: Path, chunks: Iterable[bytes]) -> None:
    """Write `chunks` beside `target`, force them to the disk, and put them in its place in one step."""
    # os.open with 0o666 lets the umask decide, as for any file; mkstemp would leave it readable by its owner alone.
    temporary = target.parent / f".epicycle-{secrets.token_hex(8)}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        raise DataFileError(f"cannot write {target}: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            # The rename must not reach the disk before the content does.
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and not isinstance(error, DataFileError):  # an error of what makes the chunks
            raise DataFileError(f"cannot write {target}: {error.strerror or error}") from error
        raise
    _sync_directory(target.parent)


def _sync_directory(folder: Path) -> None:
    """Make the rename itself durable. Some file systems cannot sync a directory; the file is complete even so."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
