"""Dates and times in texts and numbers: which form a column has, and its values as timestamps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epicycle.core._exceptions import DataError

#: Formats of strptime: those of months, which mean the first day, then the common ones first.
_FORMATS = (
    "%Y-%m",
    "%Y/%m",
    "%m/%Y",
    "%b %Y",
    "%B %Y",
    "%b-%Y",
    "%b-%y",
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y.%m.%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d.%m.%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %B %Y",
    "%b %d %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%a, %d %b %Y",
    "%a, %d %b %Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
    "%Y%m%dT%H%M%S",
)
#: Forms that strptime does not know, by the pattern of their texts: the week of ISO 8601, quarters, times of the day.
_PATTERNS = {
    "week": re.compile(r"(\d{4})-?W(\d{2})(?:-?([1-7]))?"),
    "quarter": re.compile(r"(\d{4})[ -]?Q([1-4])|Q([1-4])[ -]?(\d{4})"),
    "clock": re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?"),
}
#: Forms of whole numbers: 20240131, and seconds and milliseconds since 1970.
_UNITS = {"seconds": 1_000_000, "milliseconds": 1_000}
#: A time with a fraction of the second, a zone, or both.
_SECONDS = (
    r"^(?P<whole>.*:\d{2}:\d{2})(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?:Z| ?(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})| (?:GMT|UTC|Z))?$"
)
#: Names of columns whose whole numbers may be dates.
_NAMED = re.compile(r"date|time|epoch|day|month|(^|[_\W])(dt|ts|at|on)$|created|updated|stamp", re.IGNORECASE)
#: Share of the texts of a column that have to parse for the column to be dates.
_PARSED_SHARE = 0.95
_ROWS = 1000


def form_of_texts(known: Any) -> str | None:
    """The form in which (nearly) all texts are dates; of several the one that parses most."""
    first = known[0].as_py()
    if not 4 <= len(first) <= 35 or not any(c.isdigit() for c in first):
        return None
    some = known.slice(0, _ROWS)
    # The lengths of the first text rule most formats out, each of which would cost a pass.
    forms = [*_PATTERNS, *(_FORMATS if len(first) >= 6 else ())]
    whole_years = pc.match_substring_regex(some, r"\d{4}")  # else "3/4/20" would be of the year 20
    counts = [
        pc.sum(pc.and_(pc.is_valid(_from_texts(some, form)), whole_years if "%Y" in form else True)).as_py() or 0
        for form in forms
    ]
    best = int(np.argmax(counts))
    return forms[best] if counts[best] >= _PARSED_SHARE * len(some) else None


def form_of_numbers(values: np.ndarray, name: str) -> str | None:
    """The form in which whole numbers of a column with the name of a date are dates."""
    if not _NAMED.search(name) or len(values) == 0 or not (values == np.floor(values)).all():
        return None
    low, high = float(values.min()), float(values.max())
    if low >= 1900_01_01 and high <= 2100_12_31:
        month, day = values // 100 % 100, values % 100
        return "digits" if bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all()) else None
    # Between 1973 and 2100: smaller numbers count days, minutes or anything else.
    for form, unit in _UNITS.items():
        scale = 1_000_000 // unit
        if 1e8 * scale <= low and high <= 4.1e9 * scale and high > low:
            return form
    return None


def as_dates(column: Any, form: str) -> Any:
    """Texts, numbers or temporal values as timestamps without a zone; null where a value is not of the form.

    Without a form texts are read by the first that fits any of them. A time with a zone becomes that of Greenwich.
    """
    column = pc.dictionary_decode(column) if pa.types.is_dictionary(column.type) else column
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
        if form == "digits" or form in _UNITS:
            return _from_numbers(_whole(texts), form)
        forms = (form,) if form else _FORMATS
        for one in forms:
            parsed = _from_texts(texts, one)
            if parsed.null_count < len(parsed) or one == forms[-1]:
                return parsed
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = pc.local_timestamp(column)
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        if pa.types.is_time(kind):
            column = column.cast(pa.time64("us")).cast(pa.int64())
        return column.cast(pa.timestamp("us"), safe=False)
    if form == "digits" or form in _UNITS:
        return _from_numbers(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), form)
    raise DataError(f"values of type {kind}; expected dates")


def _whole(texts: Any) -> np.ndarray:
    fits = pc.match_substring_regex(texts, r"^\d{1,15}$")
    numbers = pc.if_else(fits, texts, pa.scalar(None, pa.string())).cast(pa.float64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _from_numbers(values: np.ndarray, form: str) -> Any:
    """Whole numbers as timestamps; null for what is no date."""
    known = np.isfinite(values)
    whole = np.where(known, values, 0).astype(np.int64)
    if form in _UNITS:
        return pa.array(whole * _UNITS[form], pa.int64(), mask=~known).cast(pa.timestamp("us"))
    year, month, day = whole // 10_000, whole // 100 % 100, whole % 100
    known &= (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (day >= 1)
    year, month = np.where(known, year, 1970), np.where(known, month, 1)
    first = (year - 1970).astype("M8[Y]").astype("M8[M]") + (month - 1)
    date = first.astype("M8[D]") + (np.where(known, day, 1) - 1)
    known &= date.astype("M8[M]") == first  # the 31st of April is no date
    return pa.array(date.astype("M8[us]"), mask=~known)


def _from_texts(text: Any, form: str) -> Any:
    """Texts of the form as timestamps; where it ends with seconds, their fraction and a zone may follow."""
    if form in _PATTERNS:
        return _from_pattern(text, form)
    if "%d" not in form:
        return pc.strptime(
            pc.binary_join_element_wise("1 ", text, ""), format=f"%d {form}", unit="us", error_is_null=True
        )
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


def _from_pattern(text: Any, form: str) -> Any:
    """Weeks, quarters and times of the day: each different text is read once."""
    codes = (text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text).dictionary_encode()
    levels = pa.array([_moment(level, form) for level in codes.dictionary.to_pylist()], pa.timestamp("us"))
    return levels.take(codes.indices)


def _moment(text: str, form: str) -> Any:
    found = _PATTERNS[form].fullmatch(text)
    if found is None:
        return None
    parts = [int(part) if part else 0 for part in found.groups()]
    if form == "clock":
        return np.datetime64("1970-01-01T00:00:00") + np.timedelta64(
            parts[0] * 3600 + parts[1] * 60 + parts[2], "s"
        ).astype("m8[us]")
    if form == "quarter":
        year, quarter = (parts[0], parts[1]) if parts[0] else (parts[3], parts[2])
        return np.datetime64(f"{year:04d}-{3 * quarter - 2:02d}-01", "us")
    year, week, day = parts
    if not 1 <= week <= 53:
        return None
    # The first week is that of January 4th; weeks begin on Mondays, and 1970-01-01 was a Thursday.
    fourth = np.datetime64(f"{year:04d}-01-04", "D")
    monday = fourth - (fourth.astype(np.int64) + 3) % 7
    return (monday + 7 * (week - 1) + max(day, 1) - 1).astype("M8[us]")
