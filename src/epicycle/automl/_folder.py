"""A folder of results that is there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from epicycle.core._exceptions import DataFileError

__all__ = ["check_folder", "write_folder"]


def check_folder(directory: str | os.PathLike[str]) -> Path:
    """Where the results go, after checking that they can be written there."""
    target = Path(directory).expanduser().absolute()
    if target.exists() and not target.is_dir():
        raise DataFileError(f"out: {target} is a file; expected a directory, or a name for a new one")
    parent = target.parent
    if not parent.is_dir():
        raise DataFileError(f"out: the directory {parent} does not exist")
    place = target if target.exists() else parent
    if not os.access(place, os.W_OK | os.X_OK):
        raise DataFileError(f"out: no permission to write in {place}")
    return target


def write_folder(directory: str | os.PathLike[str], files: Mapping[str, Callable[[Path], None]]) -> Path:
    """Write all files into a folder beside the target, then put them in their place.

    A new folder appears with all of its files. In a folder that is there already each file is replaced as a whole, and
    other files stay. Whatever goes wrong before leaves nothing behind.
    """
    target = check_folder(directory)
    temporary = target.parent / f".epicycle-{secrets.token_hex(8)}.tmp"
    try:
        temporary.mkdir()
        for name, write in files.items():
            write(temporary / name)
        if target.exists():
            for name in files:
                os.replace(temporary / name, target / name)
            temporary.rmdir()
        else:
            os.rename(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            shutil.rmtree(temporary)
        if isinstance(error, OSError) and not isinstance(error, DataFileError):
            raise DataFileError(f"cannot write {target}: {error.strerror or error}") from error
        raise
    return target
