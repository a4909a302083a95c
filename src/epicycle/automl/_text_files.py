"""A first look at a text file before anything is read: is it text, in UTF-8, and what stands between its columns?"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter

import pyarrow as pa
import pyarrow.csv

from epicycle.core._exceptions import DataFileError

__all__ = [
    "HEAD_BYTES",
    "MAX_COLUMNS",
    "NULLS",
    "check_text",
    "decimal_point_of",
    "delimiter_of",
    "header_of",
    "parse_error",
]

#: Bytes that are looked at before a file is read.
HEAD_BYTES = 1 << 18
#: More columns than this are not a table to be modelled as it is.
MAX_COLUMNS = 5_000
#: What counts as missing in text files.
NULLS = (
    "",
    "NA",
    "N/A",
    "n/a",
    "na",
    "#N/A",
    "NaN",
    "nan",
    "-NaN",
    "-nan",
    "NULL",
    "null",
    "None",
    "none",
    "?",
    "<NA>",
)

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
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a character cut off at the end is no error
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise DataFileError(
            f"{name}: line {line} is not valid UTF-8 (byte 0x{head[error.start]:02x}); convert the file first, for "
            "example with iconv -f LATIN1 -t UTF-8"
        ) from None


def delimiter_of(head: bytes, name: str) -> str:
    """What separates the columns: the sign that divides most lines into the same number of fields, more than one."""
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
        raise DataFileError(f"{name}: has one column only; expected columns divided by commas, semicolons, tabs or |")
    return best


def header_of(head: bytes, delimiter: str, name: str) -> list[str]:
    """Names of the columns, each of them once."""
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
    """Every column has a name, and no two the same."""
    repeated = sorted(column for column, count in Counter(names).items() if count > 1 and column)
    if repeated:
        raise DataFileError(
            f"{name}: several columns are named {', '.join(map(repr, repeated[:5]))}; expected one each"
        )
    if sum(not column for column in names) > 1:
        raise DataFileError(f"{name}: {sum(not column for column in names)} columns have no name")


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter))
    except csv.Error:
        return []


def parse_error(error: Exception, name: str) -> DataFileError:
    """What the parser said, in one sentence that names the file."""
    said = " ".join(str(error).split())
    if "UTF8" in said or "utf-8" in said.lower():
        return DataFileError(
            f"{name}: holds text that is not valid UTF-8; convert the file first, for example with iconv -f LATIN1 -t "
            "UTF-8"
        )
    said = said.removeprefix("CSV parse error: ").removeprefix("JSON parse error: ")
    return DataFileError(f"{name}: cannot be read: {said[:240]}")


def decimal_point_of(head: bytes, delimiter: str) -> str:
    """A comma where semicolons divide the columns and no number has a point."""
    text = head.decode("utf-8", errors="ignore")
    comma, point = (len(re.findall(rf"\d{mark}\d", text)) for mark in (",", "[.]"))
    return "," if delimiter == ";" and comma > 10 * point else "."


def convert_options(
    types: dict[str, pa.DataType] | None = None, columns: list[str] | None = None, decimal_point: str = "."
) -> pa.csv.ConvertOptions:
    """How text becomes values."""
    return pa.csv.ConvertOptions(
        null_values=list(NULLS), strings_can_be_null=True, column_types=types, include_columns=columns,
        decimal_point=decimal_point,
    )  # fmt: skip
