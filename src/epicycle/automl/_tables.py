"""Tables in: a file, standard input, a data set that comes with scikit-learn, or a frame; as one Arrow table."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

from epicycle.automl._text_files import (
    HEAD_BYTES,
    MAX_COLUMNS,
    check_names,
    check_text,
    convert_options,
    decimal_point_of,
    delimiter_of,
    header_of,
    parse_error,
)
from epicycle.core._exceptions import DataError, DataFileError, DataTypeError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.data._frames import is_frame

__all__ = ["EMBEDDED", "as_table", "embedded", "kind_of_content", "kind_of_file", "read_table", "source_name"]

#: Data sets that come with scikit-learn: the loader, and what is to be predicted.
EMBEDDED = {
    "breast_cancer": ("load_breast_cancer", "diagnosis"),
    "diabetes": ("load_diabetes", "progression"),
    "digits": ("load_digits", "digit"),
    "iris": ("load_iris", "species"),
    "wine": ("load_wine", "cultivar"),
}
_SUFFIXES = {
    ".csv": "CSV", ".tsv": "CSV", ".txt": "CSV", ".parquet": "Parquet", ".pq": "Parquet", ".arrow": "Arrow",
    ".feather": "Arrow", ".ipc": "Arrow", ".arrows": "Arrow", ".json": "JSON lines", ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
}  # fmt: skip
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")


def source_name(source: Any) -> str:
    """What to call a source in messages."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if os.fspath(source) == "-" else os.fspath(source)
    return type(source).__name__


def read_table(source: Any) -> pa.Table:
    """All rows of a source as an Arrow table.

    Parameters
    ----------
    source : str, path or frame
        A CSV, Parquet, Arrow / Feather or JSON lines file (text may be compressed), ``"-"`` for standard input, the
        name of a data set that comes with scikit-learn (``"iris"``), or a frame of pandas, polars or Arrow.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> from epicycle.automl import read_table
    >>> table = read_table("iris")
    >>> table.num_rows, table.column_names[-1]
    (150, 'species')
    """
    if isinstance(source, str) and source in EMBEDDED and not Path(source).exists():
        return embedded(source)
    if not isinstance(source, str | os.PathLike):
        return as_table(source)
    name = source_name(source)
    if os.fspath(source) == "-":
        content = sys.stdin.buffer.read()
        table = _parsed(pa.py_buffer(content), kind_of_content(content[:HEAD_BYTES], name), content[:HEAD_BYTES], name)
    else:
        path = Path(source)
        kind = kind_of_file(path)
        head = head_of(path)
        if kind in ("CSV", "JSON lines"):
            check_text(head, name)
        require_memory(
            1.5 * path.stat().st_size, f"reading {name}", "take a part of the rows, or fit from ep.scan(...)"
        )
        table = _parsed(path, kind, head, name)
    return checked(table, name)


def checked(table: pa.Table, name: str) -> pa.Table:
    """The table, if it has rows, and columns with names of their own."""
    names = [str(column).strip() for column in table.column_names]
    if len(names) > MAX_COLUMNS:
        raise DataFileError(f"{name}: {len(names):,} columns; expected at most {MAX_COLUMNS:,}")
    check_names(names, name)
    if table.num_rows == 0:
        raise DataFileError(f"{name}: has a header and no rows")
    return table.rename_columns(names)


def kind_of_file(path: Path) -> str:
    """CSV, Parquet, Arrow or JSON lines, by the end of the name; the file exists and can be read."""
    name = os.fspath(path)
    try:
        status = path.stat()
    except FileNotFoundError:
        known = ", ".join(EMBEDDED)
        raise DataFileError(f"{name}: no such file (and no data set of that name; there are {known})") from None
    except OSError as error:
        raise DataFileError(f"{name}: {error.strerror}") from None
    if path.is_dir():
        raise DataFileError(f"{name}: is a directory; expected a file")
    if not os.access(path, os.R_OK):
        raise DataFileError(f"{name}: no permission to read it")
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise DataFileError(f"{name}: the file is empty")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    kind = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    return kind or kind_of_content(head_of(path), name)


def kind_of_content(head: bytes, name: str) -> str:
    """The kind of a table by its first bytes."""
    if head.startswith(b"PAR1"):
        return "Parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "Arrow"
    check_text(head, name)
    return "JSON lines" if head.lstrip().startswith(b"{") else "CSV"


def head_of(path: Path) -> bytes:
    """The first bytes of a file, unpacked where it is compressed."""
    try:
        with pa.input_stream(path, compression="detect") as stream:
            return bytes(stream.read(HEAD_BYTES))
    except (OSError, pa.ArrowException) as error:
        raise DataFileError(f"{path}: {getattr(error, 'strerror', None) or ' '.join(str(error).split())}") from None


def csv_options(head: bytes, name: str) -> pa.csv.ParseOptions:
    """The delimiter; names and number of columns are checked on the way."""
    delimiter = delimiter_of(head, name)
    header_of(head, delimiter, name)
    return pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)


def _parsed(source: Any, kind: str, head: bytes, name: str) -> pa.Table:
    try:
        if kind == "Parquet":
            return pa.parquet.read_table(source)
        if kind == "Arrow":
            return _arrow(source)
        with pa.input_stream(source, compression="detect" if isinstance(source, Path) else None) as stream:
            if kind == "JSON lines":
                return pa.json.read_json(stream)
            options = csv_options(head, name)
            convert = convert_options(decimal_point=decimal_point_of(head, options.delimiter))
            return pa.csv.read_csv(stream, parse_options=options, convert_options=convert)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, DataError):
            raise
        raise parse_error(error, name) from None


def _arrow(source: Any) -> pa.Table:
    with pa.memory_map(os.fspath(source)) if isinstance(source, Path) else pa.BufferReader(source) as file:
        try:
            return pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid:  # the streaming form
            file.seek(0)
            return pa.ipc.open_stream(file).read_all()


def embedded(name: str) -> pa.Table:
    """A data set that comes with scikit-learn, its target as the last column."""
    from sklearn import datasets

    if name not in EMBEDDED:
        raise ParameterError(f"{name!r}: no data set of that name; there are {', '.join(EMBEDDED)}")
    loader, target = EMBEDDED[name]
    options = {"scaled": False} if name == "diabetes" else {}
    bunch = getattr(datasets, loader)(**options)
    y = bunch.target
    if name in ("iris", "breast_cancer", "wine"):
        y = np.asarray(bunch.target_names)[y].astype(str)
    columns = {str(column).replace(" (cm)", ""): bunch.data[:, j] for j, column in enumerate(bunch.feature_names)}
    if name == "diabetes":
        columns["sex"] = np.where(columns["sex"] == columns["sex"].min(), "A", "B")
    return pa.table({**columns, target: y})


def as_table(X: Any) -> pa.Table:
    """A frame, or an array whose columns are called x0, x1, ..., as an Arrow table."""
    if isinstance(X, pa.Table):
        return X
    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise DataError(f"Expected 2D array, got {X.ndim}D array instead: reshape your data")
        return pa.table({f"x{j}": _array_column(X[:, j], j) for j in range(X.shape[1])})
    if not is_frame(X):
        raise DataTypeError(
            f"data: {type(X).__name__}; expected a path, a frame of pandas, polars or Arrow, or an array"
        )
    frame = nw.from_native(X, eager_only=True)
    columns = {}
    for name in frame.columns:
        series = frame.get_column(name)
        try:
            columns[str(name)] = series.to_arrow()
        except (pa.ArrowException, TypeError):  # objects of several types
            columns[str(name)] = pa.array([None if v is None or v != v else str(v) for v in series.to_list()])
    return pa.table(columns)


def _array_column(values: np.ndarray, j: int) -> pa.Array:
    if values.dtype.kind in "biufUM":
        return pa.array(values)
    if values.dtype.kind == "c":
        raise DataTypeError("Complex data not supported: X is complex")
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError):
        if any(isinstance(v, dict | list | tuple) for v in values):
            raise DataTypeError(f"X: column {j}: argument must be a string or a number") from None
        return pa.array([None if v is None or v != v else str(v) for v in values])
