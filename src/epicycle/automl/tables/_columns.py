"""Kinds of columns and of targets: by type, by values and, for identifiers, by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epicycle.automl.tables._tables import EMBEDDED
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream

#: Kinds of columns that become features; "date" may be followed by a format of strptime.
FEATURES = ("number", "category", "date")
KINDS = (*FEATURES, "drop", "target", "weight", "group", "order")

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_IDENTIFIER = re.compile(
    r"(^|[_\W])(id|uuid|guid|index|key|rowid|row|nr|no|number|code)($|[_\W])|[a-z]I[dD]$", re.IGNORECASE
)
_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d %b %Y",
    "%b %d %Y",
)
#: A time with a fraction of the second, a zone, or both.
_SECONDS = (
    r"^(?P<whole>.*:\d{2}:\d{2})(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2}))?$"
)
#: Share of the texts of a column that have to parse as numbers, or as dates, for the column to be one.
_PARSED_SHARE = 0.95


@dataclass(frozen=True)
class ColumnKind:
    """A kind of `KINDS`, how the column is encoded in words, and a warning."""

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
    return _text(as_text(column))


#: The treatment of text that no model uses; it tells rows apart even so.
FREE_TEXT = "left out: free text"
_DATE = "expanded into days, year, month, weekday and hour, as far as they vary"
_CATEGORY = "levels: as sets for trees, one column each for linear models"
_NUMBERS = "used as a number: as it is for trees, scaled for linear models"


def _is_number(kind: Any) -> bool:
    t = pa.types
    return bool(
        t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_duration(kind) or t.is_time(kind)
    )


def _unless_constant(column: Any, found: ColumnKind) -> ColumnKind:
    if distinct_values(column) > 1 or column.null_count:
        return found
    return ColumnKind("drop", "left out: one value in all rows", "has the same value in all rows")


def distinct_values(column: Any) -> int:
    """Number of different values; 0 of a type whose values cannot be compared."""
    column = decoded(column)
    if pa.types.is_nested(column.type):
        return 0
    try:
        return int(pc.count_distinct(column, mode="only_valid").as_py())
    except pa.ArrowException:
        return 0


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
        # A counter of rows is an identifier whatever its name; other distinct integers only with a name like one.
        counted = bool((steps == 1).all() or (steps == -1).all())
        if counted or (_IDENTIFIER.search(name) and bool(values.max() - values.min() >= n - 1)):
            return ColumnKind("drop", "left out: an identifier, another number in each row", "is like an identifier")
    return ColumnKind("number", _NUMBERS)


def _text(column: Any) -> ColumnKind:
    known = column.drop_null()
    numbers = pc.sum(pc.match_substring_regex(known, _NUMBER)).as_py() or 0
    if numbers == len(known):
        return ColumnKind("number", f"text that parses as numbers; {_NUMBERS}")
    if numbers >= _PARSED_SHARE * len(known):
        odd = known.filter(pc.invert(pc.match_substring_regex(known, _NUMBER)))[0].as_py()
        return ColumnKind(
            "number",
            f"{_NUMBERS}; what is no number counts as missing",
            f"mixes numbers with text such as {odd[:30]!r}, which counts as missing",
        )
    distinct = pc.count_distinct(known).as_py()
    if distinct > 1 and (form := _date_format(known)) is not None:
        return ColumnKind(f"date {form}", _DATE)
    if distinct <= 1:
        return _unless_constant(column, ColumnKind("category", _CATEGORY))
    words = pc.mean(pc.add(pc.count_substring(known, " "), 1)).as_py()
    # Nearly every row has its own text: words make it free text, otherwise it is an identifier.
    if distinct > 0.9 * len(known) and len(known) >= 20:
        if words >= 3:
            return ColumnKind("drop", FREE_TEXT, "holds free text, which no model here uses")
        return ColumnKind("drop", "left out: an identifier, another text in each row", "is like an identifier")
    if distinct > 50 and words >= 5:
        return ColumnKind("drop", FREE_TEXT, "holds free text, which no model here uses")
    mixed = (
        f"mixes numbers with text: {numbers} of {len(known)} values are numbers" if numbers > 0.3 * len(known) else ""
    )
    if distinct > 254:
        return ColumnKind(
            "category", f"the most frequent of its {distinct}+ levels, the others as missing; {_CATEGORY}", mixed
        )
    return ColumnKind("category", _CATEGORY, mixed)


def _date_format(known: Any) -> str | None:
    """The format by which (nearly) all texts are dates; of several the one that parses most."""
    first = known[0].as_py()
    if not 8 <= len(first) <= 35 or not any(c.isdigit() for c in first):
        return None
    some = known.slice(0, 1000)
    counts = [len(some) - _parsed_dates(some, form).null_count for form in _FORMATS]
    best = int(np.argmax(counts))
    return _FORMATS[best] if counts[best] >= _PARSED_SHARE * len(some) else None


def _parsed_dates(text: Any, form: str) -> Any:
    """Texts of the format as timestamps; where it ends with seconds, their fraction and a zone may follow.

    A time with a zone becomes that of Greenwich, as the reader of JSON lines makes it.
    """
    if not form.endswith("%S"):
        return pc.strptime(text, format=form, unit="us", error_is_null=True)
    parts = pc.extract_regex(text, _SECONDS)  # null where there is neither fraction nor zone
    whole, fraction, sign, hours, minutes = (
        pc.struct_field(parts, name) for name in ("whole", "fraction", "sign", "hours", "minutes")
    )
    parsed = pc.strptime(pc.coalesce(whole, text), format=form, unit="us", error_is_null=True)

    def number(digits: Any) -> Any:
        return pc.if_else(pc.equal(pc.fill_null(digits, ""), ""), "0", digits).cast(pa.int64())

    microseconds = number(pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(fraction, ""), 6, "0"), 0, 6))
    offset = pc.multiply(pc.add(pc.multiply(number(hours), 60), number(minutes)), 60_000_000)
    shift = pc.if_else(pc.equal(pc.fill_null(sign, ""), "-"), offset, pc.negate(offset))
    return pc.add(parsed, pc.add(microseconds, shift).cast(pa.duration("us")))


def decoded(column: Any) -> Any:
    """A column of a dictionary, the categories of a frame, as a column of its values."""
    return pc.dictionary_decode(column) if pa.types.is_dictionary(column.type) else column


def as_numbers(column: Any) -> np.ndarray:
    """A column as float64; NaN where it is missing, infinite, or a text that is not a number."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.match_substring_regex(text, _NUMBER), text, pa.scalar(None, text.type))
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_temporal(kind):
        narrow = pa.types.is_date32(kind) or pa.types.is_time32(kind)
        column = column.cast(pa.int32() if narrow else pa.int64())
    elif not _is_number(kind) and not pa.types.is_null(kind):
        raise DataError(f"values of type {kind}; expected numbers")
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.isinf(values)
    return np.where(infinite, np.nan, values) if infinite.any() else values


def as_text(column: Any) -> Any:
    """A column as strings: whole numbers without a point, whatever type they have."""
    column = decoded(column)
    if pa.types.is_floating(column.type):
        values = as_numbers(column)
        if bool((np.isnan(values) | (values == np.floor(values))).all()):
            column = pa.array(np.where(np.isnan(values), 0, values).astype(np.int64), mask=np.isnan(values))
    return column.cast(pa.string())


def as_dates(column: Any, form: str) -> Any:
    """A column as timestamps without a zone; null where a text is not of the format."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        forms = (form,) if form else _FORMATS
        for one in forms:
            parsed = _parsed_dates(column.cast(pa.string()), one)
            if parsed.null_count < len(parsed) or one == forms[-1]:
                return parsed
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = pc.local_timestamp(column)
    if not pa.types.is_temporal(kind):
        raise DataError(f"values of type {kind}; expected dates")
    return column.cast(pa.timestamp("us"), safe=False)


#: Integers with at most so many distinct values are classes, unless the task is given.
MAX_INTEGER_CLASSES = 10
#: A target with more classes than this is refused: it is a number or an identifier.
MAX_CLASSES = 200

_USUAL = ("target", "y", "label", "class", "outcome", "response")


def choose_target(table: pa.Table, asked: str | None, source: Any) -> tuple[str, str]:
    """The column to predict, and why it is that one."""
    names = table.column_names
    if asked is not None:
        if asked not in names:
            from difflib import get_close_matches

            close = get_close_matches(asked, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(map(repr, names[:12]))}"
            raise DataError(f"target={asked!r}: the table has no such column{hint}")
        return asked, "as requested"
    if isinstance(source, str) and source in EMBEDDED and EMBEDDED[source][1] in names:
        return EMBEDDED[source][1], "of this data set"
    for usual in _USUAL:
        for name in names:
            if name.lower() == usual:
                return name, "by its name; --target chooses another"
    return names[-1], "the last column; --target chooses another"


def task_of(column: Any, asked: str) -> str:
    """Task, "regression" or "classification", for a target of which some values are known."""
    if asked not in ("auto", "regression", "classification"):
        raise ParameterError(f"task={asked!r}; expected 'auto', 'regression' or 'classification'")
    kind = column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    if asked == "regression":
        if text or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            values = as_numbers(column) if text else np.array([np.nan])
            if np.isnan(values).sum() > column.null_count:
                raise DataError(f"task='regression': the target holds values of type {kind}; expected numbers")
        return asked
    if asked == "classification":
        return asked
    if text or pa.types.is_boolean(kind):
        return "classification"
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"target: values of type {kind}; expected numbers, text or booleans")
    values = as_numbers(column)
    values = values[~np.isnan(values)]
    whole = bool((values == np.floor(values)).all())
    return "classification" if whole and len(np.unique(values)) <= MAX_INTEGER_CLASSES else "regression"


def target_values(column: Any, *, classes: bool, name: str) -> np.ndarray:
    """The target as an array: numbers, or labels as text, booleans or integers; none may be missing."""
    column = decoded(column)
    if column.null_count:
        raise DataError(f"target {name!r}: {column.null_count} values are missing; leave these rows out")
    if not classes:
        values = as_numbers(column)
        if np.isnan(values).any():
            raise DataError(f"target {name!r}: {int(np.isnan(values).sum())} values are no finite numbers")
        return np.ascontiguousarray(values)
    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(column.to_pylist(), dtype=bool)
    if pa.types.is_integer(kind):
        values64: np.ndarray = column.cast(pa.int64()).to_numpy()
        return values64
    if pa.types.is_floating(kind):
        values = as_numbers(column)
        if (values == np.floor(values)).all():
            return values.astype(np.int64)
    return np.asarray(as_text(column).to_pylist(), dtype=str)


def known_rows(column: Any, *, classes: bool) -> np.ndarray:
    """Mask of the rows that have a target."""
    column = decoded(column)
    known = np.asarray(pc.is_valid(column).to_pylist(), dtype=bool) if column.null_count else np.ones(len(column), bool)
    if not classes and known.any():
        known &= ~np.isnan(as_numbers(column))
    return known


def check_varies(y: np.ndarray, name: str, *, classes: bool) -> None:
    """Refuse a target that is constant, has too many classes, or has too few rows."""
    if len(y) < 10:
        raise DataError(
            f"target {name!r}: {len(y)} row{'s' if len(y) != 1 else ''} with a target; expected at least 10"
        )
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 1:
        raise DataError(f"target {name!r}: is {values[0]!s:.40} in all rows; there is nothing to predict")
    if classes and len(values) > min(MAX_CLASSES, len(y) / 2):
        raise DataError(
            f"target {name!r}: {len(values)} different values in {len(y)} rows are too many for classes; for numbers "
            "set task='regression' (--task regression)"
        )
    if classes and counts.max() == len(y) - 1:
        raise DataError(
            f"target {name!r}: all rows but one are {values[counts.argmax()]!s:.40}; there is nothing to learn"
        )


def is_count(y: np.ndarray) -> bool:
    """Whether numbers look like counts: whole, not negative, small, and spread to the right."""
    whole = bool((y >= 0).all() and (y == np.floor(y)).all())
    return (
        whole and float(y.mean()) < 1000 and len(np.unique(y)) < 0.5 * len(y) and float(y.mean()) >= float(np.median(y))
    )
