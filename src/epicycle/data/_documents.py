"""Documents from lists, arrays, columns of frames, files and iterators, in batches."""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from epicycle.core._exceptions import DataError, DataFileError, DataTypeError, ParameterError, ParameterTypeError
from epicycle.data._scan import Scan

BATCH = 4096  # documents
_BATCH_CHARACTERS = 1 << 24
_OPENERS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


class Lines:
    """The lines of files as documents, read anew on each pass. Made by :func:`read_lines`.

    Attributes
    ----------
    paths : tuple of Path
    encoding, errors : str
    """

    def __init__(self, paths: tuple[Path, ...], encoding: str, errors: str) -> None:
        self.paths, self.encoding, self.errors = paths, encoding, errors

    def __iter__(self) -> Iterator[str]:
        for path in self.paths:
            opener = _OPENERS.get(path.suffix, open)
            with opener(path, "rt", encoding=self.encoding, errors=self.errors, newline="\n") as file:
                for line in file:
                    yield line.rstrip("\r\n")

    def __repr__(self) -> str:
        files = self.paths[0].name if len(self.paths) == 1 else f"{len(self.paths)} files"
        return f"Lines({files})"


def read_lines(paths: Any, *, encoding: str = "utf-8", errors: str = "strict") -> Lines:
    r"""Files of any size as documents, one to a line, for `fit` and `transform` of text.

    Parameters
    ----------
    paths : str, path, or iterable of them
        Files, or patterns such as ``"part-*.txt"`` (in the order of names); ``.gz``, ``.xz`` and ``.bz2`` are unpacked.
    encoding : str, default="utf-8"
        How characters are written in the files.
    errors : {"strict", "ignore", "replace"}, default="strict"
        What happens to bytes that are no characters.

    Returns
    -------
    Lines
        An object that can be iterated as often as needed; it holds no text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from epicycle import CountVectorizer
    >>> from epicycle.text import read_lines
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "documents.txt"
    >>> _ = path.write_text("one fish\ntwo fish\n")
    >>> CountVectorizer().fit(read_lines(path)).get_feature_names_out()
    array(['fish', 'one', 'two'], dtype=object)
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(given, Iterable):
        raise ParameterTypeError(f"paths={paths!r}: expected a path, a pattern or a list of them")
    if errors not in ("strict", "ignore", "replace"):
        raise ParameterError(f"errors={errors!r}: expected one of 'strict', 'ignore' or 'replace'")
    files: list[Path] = []
    for item in given:
        if not isinstance(item, str | os.PathLike):
            raise ParameterTypeError(f"paths: expected paths, got {type(item).__name__}")
        path = Path(item).expanduser()
        found = [path] if path.is_file() else [Path(f) for f in sorted(glob.glob(str(path))) if Path(f).is_file()]
        if not found:
            raise DataFileError(f"paths: {path} does not exist, or matches no file")
        files += found
    if not files:
        raise DataFileError("paths: an empty list of files")
    return Lines(tuple(files), encoding, errors)


class Documents:
    """The documents that a user gave: an iterable that may be read once or more often."""

    def __init__(self, given: Any) -> None:
        self.source = _as_iterable(given)
        self.once = iter(self.source) is self.source

    def batches(self) -> Iterator[list[Any]]:
        """Lists of documents; how they are cut depends on the documents alone."""
        batch: list[Any] = []
        characters = 0
        for document in self.source:
            batch.append(document)
            characters += len(document) if isinstance(document, str | bytes) else 0
            if len(batch) >= BATCH or characters >= _BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
        if batch:
            yield batch


def _as_iterable(given: Any) -> Iterable[Any]:
    if isinstance(given, str | bytes):
        raise DataError(
            "Iterable over raw text documents expected, string object received. Put a single document into a list."
        )
    if isinstance(given, Scan):
        return _ScannedColumn(given)
    if nw.dependencies.is_into_dataframe(given):
        frame = nw.from_native(given, eager_only=True)
        if len(frame.columns) != 1:
            raise DataError(f"documents: a frame of {len(frame.columns)} columns; expected one column of text")
        return list(frame[frame.columns[0]].to_list())
    if nw.dependencies.is_into_series(given):
        return list(nw.from_native(given, series_only=True).to_list())
    if type(given).__module__.startswith("pyarrow"):
        return given.to_pylist()  # type: ignore[no-any-return]
    if isinstance(given, np.ndarray) and given.ndim != 1:
        raise DataError(f"documents: an array of shape {given.shape}; expected one dimension")
    if not isinstance(given, Iterable):
        raise DataTypeError(f"documents: {type(given).__name__}; expected an iterable of str or bytes")
    return given


class _ScannedColumn:
    """The text of the one column of a scan."""

    def __init__(self, scan: Scan) -> None:
        if len(scan.columns) != 1 or set(scan.columns) != set(scan.text_columns):
            raise DataError(
                f"documents: a scan of the columns {list(scan.columns)}; expected one column of text, "
                'as in ep.scan(paths, columns=["text"])'
            )
        self.scan = scan

    def __iter__(self) -> Iterator[Any]:
        for table in self.scan.tables:
            for chunk in table.chunks(self.scan.columns, BATCH, frozenset(), frozenset(self.scan.columns)):
                yield from chunk.column(0).to_pylist()
