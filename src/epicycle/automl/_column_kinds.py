"""What a column is, and what a model makes of it: by its type, its values and, for identifiers, its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epicycle.core._exceptions import DataError
from epicycle.core._random import stream

__all__ = ["FEATURES", "KINDS", "ColumnKind", "as_dates", "as_numbers", "as_text", "kind_of_column", "sample_of"]

#: Kinds of columns that become features; "date" may be followed by a format of strptime.
FEATURES = ("number", "category", "date")
KINDS = (*FEATURES, "drop", "target", "weight", "group", "order")

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_IDENTIFIER = re.compile(
    r"(^|[_\W])(id|uuid|guid|index|key|rowid|row|nr|no|number|code)($|[_\W])|[a-z]I[dD]$", re.IGNORECASE
)
_FORMATS = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S",
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d %b %Y",
    "%b %d %Y",
)  # fmt: skip
_SAMPLE = 50_000
_FEW_TEXTS = 0.95  # share of texts that have to read as numbers, or as dates


@dataclass(frozen=True)
class ColumnKind:
    """A kind of `KINDS`, what is done with the column in words, and what is odd about it."""

    kind: str
    treatment: str
    warning: str = ""


def sample_of(table: pa.Table, rows: int, seed: int = 0) -> pa.Table:
    """At most so many rows, drawn without replacement and in their order."""
    if table.num_rows <= rows:
        return table
    chosen = np.sort(stream(seed, "sample").choice(table.num_rows, rows, replace=False))
    return table.take(pa.array(chosen))


def kind_of_column(column: Any, name: str) -> ColumnKind:
    """The kind of a column of features, from all or a sample of its values."""
    kind = column.type
    n, known = len(column), len(column) - column.null_count
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return ColumnKind("drop", f"left out: values of type {kind}", "holds nested or binary values")
    if known == 0 or pa.types.is_null(kind):
        return ColumnKind("drop", "left out: all values are missing", "all values are missing")
    if pa.types.is_boolean(kind):
        return _unless_constant(column, ColumnKind("number", "used as 0 and 1"))
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind) and not pa.types.is_time(kind):
        return _unless_constant(column, ColumnKind("date", _DATE))
    if _is_number(kind):
        return _number(column, name, n)
    if pa.types.is_dictionary(kind):
        return _unless_constant(column, ColumnKind("category", _CATEGORY))
    return _text(as_text(column), name, n)


_DATE = "expanded into days, year, month, weekday and hour, as far as they vary"
_CATEGORY = "levels: as sets for trees, one column each for linear models"
_NUMBERS = "used as a number: as it is for trees, scaled for linear models"


def _is_number(kind: Any) -> bool:
    t = pa.types
    return bool(
        t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_duration(kind) or t.is_time(kind)
    )


def _unless_constant(column: Any, found: ColumnKind) -> ColumnKind:
    if pc.count_distinct(column, mode="only_valid").as_py() > 1 or column.null_count:
        return found
    return ColumnKind("drop", "left out: one value in all rows", "has the same value in all rows")


def _number(column: Any, name: str, n: int) -> ColumnKind:
    values = as_numbers(column)
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return ColumnKind("drop", "left out: no finite value", "has no finite value")
    if values.min() == values.max() and column.null_count == 0:
        return ColumnKind("drop", "left out: one value in all rows", "has the same value in all rows")
    whole = bool((values == np.floor(values)).all())
    if n >= 20 and column.null_count == 0 and whole and len(np.unique(values)) == n:
        steps = np.diff(values)
        counted = bool((steps == 1).all() or (steps == -1).all())
        if counted or (_IDENTIFIER.search(name) and bool(values.max() - values.min() >= n - 1)):
            return ColumnKind("drop", "left out: an identifier, another number in each row", "is like an identifier")
    return ColumnKind("number", _NUMBERS)


def _text(column: Any, name: str, n: int) -> ColumnKind:
    known = column.drop_null()
    numbers = pc.sum(pc.match_substring_regex(known, _NUMBER)).as_py() or 0
    if numbers == len(known):
        return ColumnKind("number", f"text that reads as numbers; {_NUMBERS}")
    if numbers >= _FEW_TEXTS * len(known):
        odd = known.filter(pc.invert(pc.match_substring_regex(known, _NUMBER)))[0].as_py()
        return ColumnKind(
            "number", f"{_NUMBERS}; what is no number counts as missing",
            f"mixes numbers with text such as {odd[:30]!r}, which counts as missing",
        )  # fmt: skip
    distinct = pc.count_distinct(known).as_py()
    if distinct > 1 and (form := _date_format(known)) is not None:
        return ColumnKind(f"date {form}", _DATE)
    if distinct <= 1:
        return _unless_constant(column, ColumnKind("category", _CATEGORY))
    words = pc.mean(pc.add(pc.count_substring(known, " "), 1)).as_py()
    if distinct > 0.9 * len(known) and len(known) >= 20:
        if words >= 3:
            return ColumnKind("drop", "left out: free text", "holds free text, which no model here reads")
        return ColumnKind("drop", "left out: an identifier, another text in each row", "is like an identifier")
    if distinct > 50 and words >= 5:
        return ColumnKind("drop", "left out: free text", "holds free text, which no model here reads")
    mixed = (
        f"mixes numbers with text: {numbers} of {len(known)} values are numbers" if numbers > 0.3 * len(known) else ""
    )
    if distinct > 254:
        return ColumnKind(
            "category", f"the most frequent of its {distinct}+ levels, the others as missing; {_CATEGORY}", mixed
        )
    return ColumnKind("category", _CATEGORY, mixed)


def _date_format(known: Any) -> str | None:
    """The format by which (nearly) all texts are dates; of several the one that reads most."""
    first = known[0].as_py()
    if not 8 <= len(first) <= 25 or not any(c.isdigit() for c in first):
        return None
    some = known.slice(0, 1000)
    counts = []
    for form in _FORMATS:
        parsed = pc.strptime(some, format=form, unit="us", error_is_null=True)
        counts.append(len(some) - parsed.null_count)
    best = int(np.argmax(counts))
    return _FORMATS[best] if counts[best] >= _FEW_TEXTS * len(some) else None


def as_numbers(column: Any) -> np.ndarray:
    """A column as float64; NaN where it is missing, infinite, or a text that is no number."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.match_substring_regex(text, _NUMBER), text, pa.scalar(None, text.type))
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int64() if _wide(kind) else pa.int32())
    elif not _is_number(kind) and not pa.types.is_null(kind):
        raise DataError(f"values of type {kind}; expected numbers")
    values = (
        column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if not isinstance(column, pa.ChunkedArray)
        else column.cast(pa.float64(), safe=False).to_numpy()
    )
    infinite = np.isinf(values)
    return np.where(infinite, np.nan, values) if infinite.any() else values


def _wide(kind: Any) -> bool:
    return not (pa.types.is_date32(kind) or pa.types.is_time32(kind))


def as_text(column: Any) -> Any:
    """A column as strings: whole numbers without a point, whatever type they have."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_floating(kind):
        values = as_numbers(column)
        if bool((np.isnan(values) | (values == np.floor(values))).all()):
            column = pa.array(np.where(np.isnan(values), 0, values).astype(np.int64), mask=np.isnan(values))
    return column.cast(pa.string())


def as_dates(column: Any, form: str) -> Any:
    """A column as timestamps without a zone; null where a text is not of the format."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        forms = (form,) if form else _FORMATS
        for one in forms:
            parsed = pc.strptime(column.cast(pa.string()), format=one, unit="us", error_is_null=True)
            if parsed.null_count < len(parsed) or one == forms[-1]:
                return parsed
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = pc.local_timestamp(column)
    if not pa.types.is_temporal(kind):
        raise DataError(f"values of type {kind}; expected dates")
    return column.cast(pa.timestamp("us"), safe=False)
