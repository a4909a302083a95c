"""Blocks of rows of a source, in constant memory, with the columns and types that a model was fitted to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

from epicycle.automl.images._image_folder import image_files, image_table, shape_of
from epicycle.automl.tables._databases import named_part, read_part, refuse_address
from epicycle.automl.tables._files import (
    UNREADABLE,
    decompressed,
    is_json_array,
    json_array,
    open_bytes,
    several_files,
)
from epicycle.automl.tables._tables import (
    EMBEDDED,
    HEAD_BYTES,
    as_table,
    check_text,
    checked,
    convert_options,
    csv_options,
    decimal_point_of,
    embedded,
    head_of,
    kind_of_content,
    kind_of_file,
    parse_error,
    source_name,
    stdin,
)
from epicycle.core._exceptions import DataError, DataFileError

_BLOCK_BYTES = 4 << 20
_BLOCK_ROWS, _BLOCK_IMAGES = 65_536, 1024


def blocks_of(source: Any, types: Mapping[str, str], *, header: bool = True) -> Iterator[pa.Table]:
    """Blocks of rows in order; `types` names the columns and their types at the fit, `header` is as for `read_table`.

    Every column has to be there. Text files are parsed by these types, so that a text in a column of numbers is an
    error that names the column.
    """
    name = source_name(source)
    if isinstance(source, str) and source in EMBEDDED and not Path(source).exists():
        yield _selected(embedded(source), types, name)
        return
    refuse_address(source)
    if (named := named_part(source)) is not None:
        yield _selected(checked(read_part(*named, header=header), name), types, name)
        return
    if (images := image_files(source)) is not None:
        for first in range(0, len(images), _BLOCK_IMAGES):
            some = images[first : first + _BLOCK_IMAGES]
            yield _selected(image_table(some, source, shape_of(types)), types, name)
        return
    if (files := several_files(source)) is not None:
        for file in files:
            yield from blocks_of(file, types, header=header)
        return
    if not isinstance(source, str | os.PathLike):
        yield _selected(as_table(source), types, name)
        return
    try:
        if os.fspath(source) == "-":
            yield from _from_stdin(types, header)
        else:
            path = Path(source)
            kind = kind_of_file(path)
            if kind in ("CSV", "JSON lines"):
                head = head_of(path)
                check_text(head, name)
                with open_bytes(path) as stream:
                    yield from _from_text(stream, kind, head, types, name, header)
            else:
                yield from _from_file(path, kind, types, name)
    except UNREADABLE as error:
        if isinstance(error, DataError | BrokenPipeError):
            raise
        raise parse_error(error, name) from None


def _from_stdin(types: Mapping[str, str], header: bool) -> Iterator[pa.Table]:
    raw = decompressed(stdin(), HEAD_BYTES)
    head = raw.peek(HEAD_BYTES)[:HEAD_BYTES]
    kind = kind_of_content(head, "standard input")
    if kind in ("CSV", "JSON lines"):
        with pa.PythonFile(raw, mode="r") as stream:
            yield from _from_text(stream, kind, head, types, "standard input", header)
        return
    content = pa.py_buffer(raw.read())  # the index of these formats is at the end
    yield from _from_file(content, kind, types, "standard input")


def _from_text(
    stream: Any, kind: str, head: bytes, types: Mapping[str, str], name: str, header: bool
) -> Iterator[pa.Table]:
    if kind == "JSON lines" and is_json_array(head):
        yield _selected(json_array(stream.read(), name), types, name)
        return
    if kind == "JSON lines":
        yield from (_selected(block, types, name) for block in _json_blocks(stream))
        return
    options, given = csv_options(head, name, header)
    # The first lines give the columns; their types follow from what the model was fitted to.
    # Only complete lines: the last one may be cut by the size of the head.
    whole = head if len(head) < HEAD_BYTES else head[: head.rfind(b"\n") + 1]
    point = decimal_point_of(head, options.delimiter)
    convert = convert_options(decimal_point=point)
    read = pa.csv.ReadOptions(column_names=given)
    first = pa.csv.read_csv(pa.BufferReader(whole), read_options=read, parse_options=options, convert_options=convert)
    names = [column.strip() for column in first.column_names]
    _check_columns(names, types, name)
    raw = dict(zip(names, first.column_names, strict=True))
    wanted = {raw[column]: _read_as(types[column], first.schema.field(raw[column]).type) for column in types}
    # Blocks of constant size: memory does not depend on the number of rows.
    reader = pa.csv.open_csv(
        stream,
        read_options=pa.csv.ReadOptions(block_size=_BLOCK_BYTES, column_names=given),
        parse_options=options,
        convert_options=convert_options(wanted, list(wanted), point),
    )
    with reader:
        for batch in reader:
            yield pa.Table.from_batches([batch]).rename_columns(list(types))


def _read_as(known: str, found: Any) -> Any:
    """The type as which a column of a text file is parsed."""
    if known == "bool" or "values=bool" in known:
        return pa.bool_()
    if "string" in known:
        return pa.string()
    if known.startswith(("timestamp", "date", "time")) or "values=date" in known or "values=timestamp" in known:
        return found if pa.types.is_temporal(found) else pa.string()
    return pa.float64()


def _json_blocks(stream: Any) -> Iterator[pa.Table]:
    """Blocks of whole lines."""
    rest = b""
    while piece := bytes(stream.read(_BLOCK_BYTES)):
        content = rest + piece
        end = content.rfind(b"\n") + 1
        rest = content[end:]
        if content[:end].strip():
            yield pa.json.read_json(pa.BufferReader(content[:end]))
    if rest.strip():
        yield pa.json.read_json(pa.BufferReader(rest))


def _from_file(source: Any, kind: str, types: Mapping[str, str], name: str) -> Iterator[pa.Table]:
    if kind == "Parquet":
        with pa.parquet.ParquetFile(source, pre_buffer=False) as file:
            _check_columns(file.schema_arrow.names, types, name)
            for batch in file.iter_batches(batch_size=_BLOCK_ROWS, columns=list(types)):
                yield pa.Table.from_batches([batch]).select(list(types))
        return
    with pa.memory_map(os.fspath(source)) if isinstance(source, Path) else pa.BufferReader(source) as file:
        try:
            reader = pa.ipc.open_file(file)
            batches: Any = (reader.get_batch(i) for i in range(reader.num_record_batches))
        except pa.ArrowInvalid:  # the streaming form
            file.seek(0)
            batches = pa.ipc.open_stream(file)
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for start in range(0, max(table.num_rows, 1), _BLOCK_ROWS):
                yield _selected(table.slice(start, _BLOCK_ROWS), types, name)


def _selected(table: pa.Table, types: Mapping[str, str], name: str) -> pa.Table:
    _check_columns(table.column_names, types, name)
    return table.select(list(types))


def _check_columns(names: list[str], types: Mapping[str, str], name: str) -> None:
    gone = [column for column in types if column not in names]
    if gone:
        more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
        raise DataFileError(
            f"{name}: has no column {', '.join(map(repr, gone[:5]))}{more}, which the model was fitted to"
        )
