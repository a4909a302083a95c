"""Tables of databases and of spreadsheets: ``file.db::table``, ``file.db::SELECT ...``, ``file.xlsx::sheet``."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa

from epicycle.core._exceptions import DataError, DataFileError

#: Suffixes by what reads them.
SQLITE = (".db", ".sqlite", ".sqlite3", ".db3")
DUCKDB = (".duckdb", ".ddb")
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_QUERY = re.compile(r"\s*(select|with|values|from)\b", re.IGNORECASE)


def named_part(source: Any) -> tuple[Path, str] | None:
    """The file of a database or spreadsheet, and the table, query or sheet asked for; None for other sources."""
    if not isinstance(source, str | os.PathLike):
        return None
    name, _, part = os.fspath(source).partition("::")
    if part == "" and os.fspath(source) != name:
        raise DataFileError(f"{source}: expected the name of a table or a query behind ::")
    suffix = Path(name).suffix.lower()
    if suffix in (*SQLITE, *DUCKDB, *SHEETS):
        return Path(name), part.strip()
    if part and Path(name).exists() and not Path(os.fspath(source)).exists():
        known = ", ".join((*SQLITE, *DUCKDB, *SHEETS))
        raise DataFileError(f"{source}: only {known} have tables behind ::")
    return None


def read_part(path: Path, part: str, *, header: bool = True) -> pa.Table:
    """A table, the result of a query, or a sheet."""
    if not path.is_file():
        raise DataFileError(f"{path}: no such file")
    suffix = path.suffix.lower()
    if suffix in SHEETS:
        return _sheet(path, part, header)
    return _sqlite(path, part) if suffix in SQLITE else _duckdb(path, part)


def _sqlite(path: Path, part: str) -> pa.Table:
    try:
        # Read-only: no query can change the file.
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
            names = [row[0] for row in connection.execute(query)]
            cursor = connection.execute(_query_of(path, part, names))
            if cursor.description is None:
                raise DataFileError(f"{path}: the query gives no rows; expected SELECT")
            columns = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise DataFileError(f"{path}: {error}") from None
    return columns_of(columns, rows, os.fspath(path))


def _duckdb(path: Path, part: str) -> pa.Table:
    try:
        import duckdb
    except ImportError:
        raise DataFileError(
            f"{path}: reading DuckDB needs its driver: pip install 'epicycle[files]' (or duckdb)"
        ) from None
    try:
        with duckdb.connect(os.fspath(path), read_only=True) as connection:
            names = [
                row[0] for row in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
            ]
            result = connection.sql(_query_of(path, part, names))
            # The name of the method changed with the versions of the driver.
            read = getattr(result, "to_arrow_table", None) or result.fetch_arrow_table
            table: pa.Table = read()
    except duckdb.Error as error:
        raise DataFileError(f"{path}: {' '.join(str(error).split())}") from None
    return table


def _query_of(path: Path, part: str, names: list[str]) -> str:
    """The query for a table; a query as it is."""
    if not part and len(names) == 1:
        part = names[0]
    if part in names:
        return 'SELECT * FROM "' + part.replace('"', '""') + '"'
    if part and _QUERY.match(part):
        return part
    listed = ", ".join(sorted(names)[:12]) or "none"
    asked = f"no table {part!r}" if part else "several tables, or none"
    raise DataFileError(f"{path}: {asked}; expected {path.name}::TABLE or a query SELECT ...; its tables: {listed}")


def _sheet(path: Path, part: str, header: bool) -> pa.Table:
    try:
        import python_calamine
    except ImportError:
        raise DataFileError(
            f"{path}: reading spreadsheets needs their driver: pip install 'epicycle[files]' (or python-calamine); or "
            "save the sheet as CSV"
        ) from None
    try:
        book = python_calamine.CalamineWorkbook.from_path(os.fspath(path))
        names = book.sheet_names
        if part and part not in names:
            raise DataFileError(f"{path}: no sheet {part!r}; its sheets: {', '.join(names[:12])}")
        cells = book.get_sheet_by_name(part or names[0]).to_python(skip_empty_area=True)
    except (python_calamine.CalamineError, OSError, IndexError) as error:
        raise DataFileError(f"{path}: cannot be read: {' '.join(str(error).split()) or 'no sheet'}") from None
    rows: list[list[Any]] = [[None if cell == "" else cell for cell in row] for row in cells]
    rows = [row for row in rows if any(cell is not None for cell in row)]
    if len(rows) < 1 + header:
        raise DataFileError(f"{path}: the sheet has no rows")
    columns = [str(cell).strip() if cell is not None else "" for cell in rows[0]] if header else []
    if not header:
        columns = [f"x{j}" for j in range(len(rows[0]))]
    kept = [j for j, name in enumerate(columns) if name or any(row[j] is not None for row in rows[header:])]
    return columns_of([columns[j] for j in kept], [[row[j] for j in kept] for row in rows[header:]], os.fspath(path))


def columns_of(names: list[str], rows: list[Any], source: str) -> pa.Table:
    """Rows of Python values as a table: a column of values of several types is text, whole numbers are integers."""
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise DataFileError(f"{source}: several columns are named {', '.join(map(repr, twice[:5]))}")
    values = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.table({name: _column(list(column)) for name, column in zip(names, values, strict=True)})


def _column(values: list[Any]) -> pa.Array:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, float) and value.is_integer() and abs(value) < 2**53 for value in known):
        values = [None if value is None else int(value) for value in values]
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def refuse_address(source: Any) -> None:
    """Refuse what names a place of a network rather than a file."""
    found = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+)://", os.fspath(source)) if isinstance(source, str) else None
    if found is not None:
        raise DataError(
            f"{source}: is an address of a network ({found[1]}); expected a file on this machine. Download it first, "
            "for example with curl -LO, and give its path"
        )
