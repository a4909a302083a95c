"""Tables from files, standard input, data sets of scikit-learn or frames, as Arrow tables.

The first bytes of a text file are checked before it is read: encoding, delimiter, names of the columns.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import stat
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

from epicycle.automl.images._image_folder import image_files, image_table
from epicycle.automl.tables._databases import named_part, read_part, refuse_address
from epicycle.automl.tables._files import (
    COMPRESSED,
    UNREADABLE,
    decompressed,
    is_json_array,
    json_array,
    open_bytes,
    several_files,
)
from epicycle.core._exceptions import DataError, DataFileError, DataTypeError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.data._frames import is_frame

#: Bytes that are checked before a file is read.
HEAD_BYTES = 1 << 18
#: More columns than this are refused: a dense table of them is seldom what is wanted.
MAX_COLUMNS = 5_000
#: Texts that count as missing in text files.
_WORDS_FOR_NULL = "NA N/A n/a na #N/A NaN nan -NaN -nan NULL null None none ? <NA>"
NULLS = ("", *_WORDS_FOR_NULL.split())

_DELIMITERS = (",", ";", "\t", "|")


def check_text(head: bytes, name: str) -> None:
    """Refuse what is no text in UTF-8; `head` is the beginning of the file."""
    if not head.strip():
        raise DataFileError(f"{name}: the file is empty")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataFileError(f"{name}: the text is in UTF-16; expected UTF-8 (convert it: iconv -f UTF-16 -t UTF-8)")
    control = sum(head.count(byte) for byte in (b"\0", b"\x01", b"\x02", b"\x03", b"\x04", b"\x05", b"\x06"))
    if control:
        raise DataFileError(f"{name}: holds binary data, not text; expected CSV, JSON lines, Parquet or Arrow")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # an incomplete character at the end is no error
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise DataFileError(
            f"{name}: line {line} is not valid UTF-8 (byte 0x{head[error.start]:02x}); convert the file first, for "
            "example with iconv -f LATIN1 -t UTF-8"
        ) from None


def delimiter_of(head: bytes, name: str) -> str:
    """The delimiter: the character that splits most lines into the same number of fields, more than one."""
    text = head.decode("utf-8", errors="ignore").lstrip("\ufeff")
    lines = text.splitlines()
    if len(head) >= HEAD_BYTES:
        lines = lines[:-1] or lines
    if lines and len(lines[0]) >= HEAD_BYTES // 2:
        raise DataFileError(f"{name}: the first line is longer than {HEAD_BYTES // 2:,} characters; expected a table")
    best, best_key = ",", (0.0, 0)
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in _rows(lines[:200], delimiter) if row]
        if not widths:
            continue
        width, count = Counter(widths).most_common(1)[0]
        key = (count / len(widths) if width > 1 else 0.0, width)
        if key > best_key:
            best, best_key = delimiter, key
    if best_key[1] < 2:
        raise DataFileError(f"{name}: has one column only; expected columns separated by commas, semicolons, tabs or |")
    return best


def header_of(head: bytes, delimiter: str, name: str) -> list[str]:
    """Names of the columns, checked to be unique."""
    text = head.decode("utf-8", errors="ignore").lstrip("\ufeff")
    names = next((row for row in _rows(text.splitlines()[:50], delimiter) if row), [])
    names = [column.strip() for column in names]
    if len(names) > MAX_COLUMNS:
        raise DataFileError(
            f"{name}: {len(names):,} columns; expected at most {MAX_COLUMNS:,} (choose among them first, for example "
            "with FilterSelection, or put them into a sparse matrix and fit a linear model)"
        )
    check_names(names, name)
    return names


def check_names(names: list[str], name: str) -> None:
    """Check that every column has a name, and no two the same."""
    repeated = sorted(column for column, count in Counter(names).items() if count > 1 and column)
    if repeated:
        hint = " (without a line of names: --no-header, header=False)" if like_data(names) else ""
        raise DataFileError(
            f"{name}: several columns are named {', '.join(map(repr, repeated[:5]))}; expected one each{hint}"
        )
    if sum(not column for column in names) > 1:
        raise DataFileError(f"{name}: {sum(not column for column in names)} columns have no name")


def like_data(names: list[str]) -> bool:
    """Whether most names of columns are numbers: the first line is then a row, and no header."""
    return 2 * sum(re.fullmatch(r"[+-]?\d*\.?\d+([eE][+-]?\d+)?", name) is not None for name in names) > len(names)


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter))
    except csv.Error:
        return []


def parse_error(error: Exception, name: str) -> DataFileError:
    """The message of a parser as one sentence that names the file."""
    message = " ".join(str(error).split())
    if "UTF8" in message or "utf-8" in message.lower():
        return DataFileError(
            f"{name}: holds text that is not valid UTF-8; convert the file first, for example with iconv -f LATIN1 -t "
            "UTF-8"
        )
    message = message.removeprefix("CSV parse error: ").removeprefix("JSON parse error: ")
    return DataFileError(f"{name}: cannot be read: {message[:240]}")


def decimal_point_of(head: bytes, delimiter: str) -> str:
    """A comma where semicolons separate the columns and hardly any number has a point."""
    text = head.decode("utf-8", errors="ignore")
    comma, point = (len(re.findall(rf"\d{mark}\d", text)) for mark in (",", "[.]"))
    return "," if delimiter == ";" and comma > 10 * point else "."


def convert_options(
    types: dict[str, pa.DataType] | None = None, columns: list[str] | None = None, decimal_point: str = "."
) -> pa.csv.ConvertOptions:
    """Options of the conversion of text to values."""
    return pa.csv.ConvertOptions(
        null_values=list(NULLS),
        strings_can_be_null=True,
        column_types=types,
        include_columns=columns,
        decimal_point=decimal_point,
    )


#: Data sets that come with scikit-learn: the loader and the target.
EMBEDDED = {
    "breast_cancer": ("load_breast_cancer", "diagnosis"),
    "diabetes": ("load_diabetes", "progression"),
    "digits": ("load_digits", "digit"),
    "iris": ("load_iris", "species"),
    "wine": ("load_wine", "cultivar"),
}
_KINDS = {
    "CSV": (".csv", ".tsv", ".txt"),
    "Parquet": (".parquet", ".pq"),
    "Arrow": (".arrow", ".feather", ".ipc", ".arrows"),
    "JSON lines": (".json", ".jsonl", ".ndjson"),
}
_SUFFIXES = {suffix: kind for kind, suffixes in _KINDS.items() for suffix in suffixes}


def source_name(source: Any) -> str:
    """Name of a source in messages."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if os.fspath(source) == "-" else os.fspath(source)
    if isinstance(source, list | tuple):
        return f"{len(source)} files"
    return type(source).__name__


def read_table(source: Any, *, header: bool = True) -> pa.Table:
    """All rows of a source as an Arrow table.

    Parameters
    ----------
    source : str, path, list of paths or frame
        A CSV, Parquet, Arrow / Feather or JSON file (text may be compressed: .gz, .bz2, .xz, .zip, .zst), several of
        them as a list, a folder or a pattern such as ``"data/*.csv"``, a spreadsheet (``"file.xlsx::sheet"``, also
        .ods), a table or query of SQLite or DuckDB (``"file.db::table"``, ``"file.db::SELECT ..."``), ``"-"`` for
        standard input, the name of a data set that comes with scikit-learn (``"iris"``), or a frame of pandas, polars
        or Arrow. Spreadsheets and DuckDB need a driver (``pip install 'epicycle[files]'``). A folder of images, or of
        folders of images, has a column for each pixel, and "folder".
    header : bool, default=True
        Whether the first line of a CSV file names the columns; otherwise they are called x0, x1, ...

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
    refuse_address(source)
    if isinstance(source, str) and source in EMBEDDED and not Path(source).exists():
        return embedded(source)
    if (named := named_part(source)) is not None:
        return checked(read_part(*named, header=header), source_name(source))
    if (files := image_files(source)) is not None:
        return image_table(files, source)
    if (files := several_files(source)) is not None:
        return _joined([read_table(file, header=header) for file in files], files)
    if not isinstance(source, str | os.PathLike):
        return as_table(source)
    name = source_name(source)
    if os.fspath(source) == "-":
        try:
            content = decompressed(stdin(), HEAD_BYTES).read()
        except UNREADABLE as error:
            raise parse_error(error, name) from None
        head = content[:HEAD_BYTES]
        table = _parsed(pa.py_buffer(content), kind_of_content(head, name), head, name, header)
    else:
        path = Path(source)
        kind = kind_of_file(path)
        head = head_of(path)
        if kind in ("CSV", "JSON lines"):
            check_text(head, name)
        # Parsed columns and the buffers of the parser take up to one and a half times the file.
        require_memory(
            1.5 * path.stat().st_size, f"reading {name}", "take a part of the rows, or fit from ep.scan(...)"
        )
        table = _parsed(path, kind, head, name, header)
    return checked(table, name)


def stdin() -> io.BufferedReader:
    """Standard input as bytes, of which the beginning can be looked at."""
    raw: Any = sys.stdin.buffer
    return io.BufferedReader(raw, HEAD_BYTES)


def _joined(tables: list[pa.Table], files: list[Path]) -> pa.Table:
    """Several tables of the same columns as one."""
    names = tables[0].column_names
    for table, file in zip(tables, files, strict=True):
        if set(table.column_names) != set(names):
            odd = sorted(set(table.column_names) ^ set(names))
            raise DataFileError(f"{file}: other columns than {files[0]}: {', '.join(map(repr, odd[:5]))}")
    try:
        return pa.concat_tables([table.select(names) for table in tables], promote_options="permissive")
    except pa.ArrowException as error:
        raise parse_error(error, f"{len(files)} files") from None


def checked(table: pa.Table, name: str) -> pa.Table:
    """The table with stripped column names, checked to have rows and unique names."""
    names = [str(column).strip() for column in table.column_names]
    if len(names) > MAX_COLUMNS:
        raise DataFileError(f"{name}: {len(names):,} columns; expected at most {MAX_COLUMNS:,}")
    check_names(names, name)
    if table.num_rows == 0:
        raise DataFileError(f"{name}: has a header and no rows")
    return table.rename_columns(names)


def kind_of_file(path: Path) -> str:
    """CSV, Parquet, Arrow or JSON lines by the suffix of a file, which is checked to be readable."""
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
    if suffixes and suffixes[-1] in COMPRESSED:
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
    return "JSON lines" if head.lstrip().startswith(b"{") or is_json_array(head) else "CSV"


def head_of(path: Path) -> bytes:
    """The first bytes of a file, decompressed where necessary."""
    try:
        with open_bytes(path) as stream:
            return bytes(stream.read(HEAD_BYTES))
    except UNREADABLE as error:
        if isinstance(error, DataError):
            raise
        raise DataFileError(f"{path}: {getattr(error, 'strerror', None) or ' '.join(str(error).split())}") from None


def csv_options(head: bytes, name: str, header: bool = True) -> tuple[pa.csv.ParseOptions, list[str] | None]:
    """Parse options with the delimiter, and the names of the columns where the file has none; both are checked."""
    delimiter = delimiter_of(head, name)
    names = None
    if header:
        header_of(head, delimiter, name)
    else:
        text = head.decode("utf-8", errors="ignore").lstrip("\ufeff")
        first = next((row for row in _rows(text.splitlines()[:50], delimiter) if row), [])
        names = [f"x{j}" for j in range(len(first))]
    return pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True), names


def _parsed(source: Any, kind: str, head: bytes, name: str, header: bool) -> pa.Table:
    try:
        if kind == "Parquet":
            return pa.parquet.read_table(source)
        if kind == "Arrow":
            return _arrow(source)
        with open_bytes(source) if isinstance(source, Path) else pa.input_stream(source) as stream:
            if kind == "JSON lines":
                return json_array(stream.read(), name) if is_json_array(head) else pa.json.read_json(stream)
            options, names = csv_options(head, name, header)
            convert = convert_options(decimal_point=decimal_point_of(head, options.delimiter))
            read = pa.csv.ReadOptions(column_names=names)
            return pa.csv.read_csv(stream, read_options=read, parse_options=options, convert_options=convert)
    except UNREADABLE as error:
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
        # Names of classes rather than codes, as they would be in a file.
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
        except (pa.ArrowException, TypeError):  # objects of several types, or numbers in another order of bytes
            values = np.asarray(series.to_numpy())
            columns[str(name)] = _array_column(values, 0) if values.dtype.kind in "biufM" else _as_texts(values)
    return pa.table(columns)


def _array_column(values: np.ndarray, j: int) -> pa.Array:
    if values.dtype.kind in "biufUM":
        if values.dtype.kind == "f" and values.dtype.itemsize > 8:
            values = values.astype(np.float64)  # Arrow has no longer ones
        return pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
    if values.dtype.kind == "c":
        raise DataTypeError("Complex data not supported: X is complex")
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError):
        if any(isinstance(v, dict | list | tuple) for v in values):
            raise DataTypeError(f"X: column {j}: argument must be a string or a number") from None
        return _as_texts(values)


def _as_texts(values: np.ndarray) -> pa.Array:
    return pa.array([None if v is None or v != v else str(v) for v in values])
