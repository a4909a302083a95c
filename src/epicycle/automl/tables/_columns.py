"""Kinds of columns and of targets: by type, by values and, for identifiers, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epicycle.automl.tables._dates import form_of_numbers, form_of_texts
from epicycle.automl.tables._number_texts import as_plain, number_form, units_of
from epicycle.automl.tables._tables import EMBEDDED
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream

#: Kinds of columns that become features; "date" may be followed by a format of strptime, "number" by the form of texts.
FEATURES = ("number", "category", "date", "calendar", "text", "sequence")
KINDS = (*FEATURES, "drop", "target", "weight", "group", "order")

_IDENTIFIER = re.compile(
    r"(^|[_\W])(id|uuid|guid|index|key|rowid|row|nr|no|number|code)($|[_\W])|(?-i:[a-z]I[dD]$)", re.IGNORECASE
)
#: Names of columns whose whole numbers are names of things, with which nobody computes.
_NAMES_OF_THINGS = re.compile(
    r"(^|[_\W])(id|uuid|guid|zip|zip_?code|post_?code|postal|plz|fips|sku|isbn|iban|phone|area_?code)($|[_\W])"
    r"|(?-i:[a-z](I[dD]|Zip|PostalCode|ZipCode)$)",
    re.IGNORECASE,
)
#: Share of the texts of a column that have to parse as numbers, or as dates, for the column to be one.
_PARSED_SHARE = 0.95
#: Columns at least that may be readings of one kind.
_LEAST_ALIKE = 8
#: Levels of a category that trees split as sets.
MAX_TREE_LEVELS = 254


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


def base_kind(kind: str) -> str:
    """The kind without the form of its values: "date" of "date %d/%m/%Y"."""
    return kind.partition(" ")[0]


def form_of(kind: str) -> str:
    """The form of the values of a kind: "%d/%m/%Y" of "date %d/%m/%Y"."""
    return kind.partition(" ")[2]


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
    return _text(as_text(column), name)


_DATE = "expanded into days, year, month, day, weekday, hour and waves of the year, week and day, as far as they vary"
_CATEGORY = "levels: as sets for trees, one column each for linear models"
_MANY_LEVELS = "the most frequent of its {distinct:,} levels; and the mean of the target at each level, from other rows"
_NUMBERS = "used as a number: as it is for trees, scaled for linear models"
_WORDS = "words and runs of characters (tf-idf) for linear models, the leading factors of them for others"
_SEQUENCE = "runs of letters (tf-idf) for linear models, the leading factors of them for others"
_FORM_WORDS = {
    "comma": "text with decimal commas; ",
    "unit": "text with a unit, which is left out; ",
    "comma unit": "text with decimal commas and a unit, which is left out; ",
    "": "text that parses as numbers; ",
}
#: Letters of a sequence at least, on average, and different letters at most: nucleotides 4 to 15, amino acids 20 to 25.
_SEQUENCE_LENGTH, _ALPHABET = 20, 25


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
    distinct = len(np.unique(values))
    if n >= 20 and column.null_count == 0 and whole and distinct == n:
        steps = np.diff(values)
        # A counter of rows is an identifier whatever its name; other distinct integers only with a name like one.
        counted = bool((steps == 1).all() or (steps == -1).all())
        if counted or (_IDENTIFIER.search(name) and bool(values.max() - values.min() >= n - 1)):
            return ColumnKind("drop", "left out: an identifier, another number in each row", "is like an identifier")
    if (whole and pa.types.is_integer(column.type)) or (whole and column.null_count and distinct < n):
        if (form := form_of_numbers(values, name)) is not None:
            return ColumnKind(f"date {form}", f"whole numbers that are dates ({form}); {_DATE}")
        if _NAMES_OF_THINGS.search(name) and 1 < distinct <= 0.9 * len(values):
            return _category(distinct, prefix="numbers that name things; ")
    return ColumnKind("number", _NUMBERS)


def _category(distinct: int, warning: str = "", prefix: str = "") -> ColumnKind:
    many = f"{_MANY_LEVELS.format(distinct=distinct)}; " if distinct > MAX_TREE_LEVELS else ""
    return ColumnKind("category", f"{prefix}{many}{_CATEGORY}", warning)


def _text(column: Any, name: str) -> ColumnKind:
    known = column.drop_null()
    distinct = pc.count_distinct(known).as_py()
    codes = pc.any(pc.match_substring_regex(known, r"^\s*0\d")).as_py() or _NAMES_OF_THINGS.search(name)
    form, numbers = number_form(known, _PARSED_SHARE)
    if form is not None and not (codes and form == "" and pc.all(pc.match_substring_regex(known, r"^\d+$")).as_py()):
        if form == "truth":
            return _unless_constant(column, ColumnKind("number truth", "words for yes and no, used as 1 and 0"))
        treatment = _FORM_WORDS[form] + _NUMBERS
        kind, warning = f"number {form}".strip(), ""
        if "unit" in form and len(units := units_of(known)) > 1:
            listed = ", ".join(map(repr, units[:4]))
            return _category(distinct, f"mixes units ({listed}), which are not converted: bring them to one unit")
        if numbers < len(known):
            odd = known.filter(pc.is_null(as_plain(known, form)))[0].as_py()
            treatment += "; what is no number counts as missing"
            warning = f"mixes numbers with text such as {odd[:30]!r}, which counts as missing"
        return ColumnKind(kind, treatment, warning)
    if distinct > 1 and (dates := form_of_texts(known)) is not None:
        return ColumnKind(f"date {dates}", _DATE)
    if distinct <= 1:
        return _unless_constant(column, ColumnKind("category", _CATEGORY))
    if _is_sequence(known, distinct):
        return ColumnKind("sequence", _SEQUENCE)
    words = pc.mean(pc.add(pc.count_substring(known, " "), 1)).as_py()
    # Scripts without spaces between words: long texts, mostly of letters beyond Latin, Greek and Cyrillic.
    if words < 3 and pc.mean(pc.utf8_length(known)).as_py() >= 10:
        words += 0.3 * pc.mean(pc.count_substring_regex(known, "[฀-໿぀-鿿가-힣]")).as_py()
    # Nearly every row has its own text: words make it a text, otherwise it is an identifier.
    if distinct > 0.9 * len(known) and len(known) >= 20:
        if words >= 3:
            return ColumnKind("text", _WORDS)
        return ColumnKind("drop", "left out: an identifier, another text in each row", "is like an identifier")
    if distinct > 50 and words >= 5:
        return ColumnKind("text", _WORDS)
    mixed = numbers > 0.3 * len(known) and not codes
    warning = f"mixes numbers with text: {numbers} of {len(known)} values are numbers" if mixed else ""
    return _category(distinct, warning)


def _is_sequence(known: Any, distinct: int) -> bool:
    """Whether texts are runs of letters from a small alphabet, as of nucleotides or amino acids."""
    if distinct < 10 or pc.mean(pc.utf8_length(known)).as_py() < _SEQUENCE_LENGTH:
        return False
    if not pc.all(pc.match_substring_regex(known, r"^\s*[A-Za-z*-]+\s*$")).as_py():
        return False
    return len(set("".join(known.slice(0, 1000).to_pylist()).upper())) <= _ALPHABET + 2  # gaps and stops


def decoded(column: Any) -> Any:
    """A column of a dictionary, the categories of a frame, as a column of its values."""
    return pc.dictionary_decode(column) if pa.types.is_dictionary(column.type) else column


def as_numbers(column: Any, form: str = "") -> np.ndarray:
    """A column as float64; NaN where it is missing, infinite, or a text that is not a number of the form."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = as_plain(column, form)
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

            several = [part.strip() for part in asked.split(",")]
            if len(several) > 1 and all(part in names for part in several):
                raise DataError(
                    f"target={asked!r}: names {len(several)} columns; expected one (train_targets takes several)"
                )
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


#: Tasks that are none of `train`, and why.
_OTHER_TASKS = {
    "survival": "times to an event that some rows have not seen yet (censored rows) are no task of train; expected "
    "'auto', 'regression' or 'classification'",
    "multilabel": "each label is a target of its own; expected train_targets",
}


def task_of(column: Any, asked: str) -> str:
    """Task, "regression" or "classification", for a target of which some values are known."""
    if asked in _OTHER_TASKS:
        raise ParameterError(f"task={asked!r}: {_OTHER_TASKS[asked]}")
    if asked not in ("auto", "regression", "classification"):
        raise ParameterError(f"task={asked!r}; expected 'auto', 'regression' or 'classification'")
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        raise DataError("target: holds lists; task='multilabel' of train_targets (--task multilabel) learns each label")
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    if asked == "regression":
        if text or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            values = _target_numbers(column) if text else np.array([np.nan])
            if np.isnan(values).sum() > column.null_count:
                raise DataError(f"task='regression': the target holds values of type {kind}; expected numbers")
        return asked
    if asked == "classification":
        return asked
    if text and not pa.types.is_dictionary(kind):
        form, _ = number_form(column.drop_null(), _PARSED_SHARE)
        if form not in (None, "truth") and distinct_values(column) > MAX_INTEGER_CLASSES:
            return "regression"
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
        values = _target_numbers(column)
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
        known &= ~np.isnan(_target_numbers(column))
    return known


def _target_numbers(column: Any) -> np.ndarray:
    """Numbers of a target, as people write them where it is text."""
    column = decoded(column)
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    known = column.drop_null() if text else column
    form = number_form(known, 0.5)[0] if text and len(known) else None
    return as_numbers(column, "" if form in (None, "truth") else form)


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


def is_skewed(y: np.ndarray) -> bool:
    """Whether numbers that are not negative have a long tail to the right that a logarithm takes away."""
    if y.min() < 0 or len(np.unique(y)) < 20:
        return False
    skewness = [float(np.mean(((v - v.mean()) / (v.std() or 1.0)) ** 3)) for v in (y, np.log1p(y))]
    return skewness[0] > 1 and abs(skewness[1]) < 0.6 * skewness[0]


def is_count(y: np.ndarray) -> bool:
    """Whether numbers look like counts: whole, not negative, small, and spread to the right."""
    whole = bool((y >= 0).all() and (y == np.floor(y)).all())
    return (
        whole and float(y.mean()) < 1000 and len(np.unique(y)) < 0.5 * len(y) and float(y.mean()) >= float(np.median(y))
    )


def is_alike(table: pa.Table, kinds: Mapping[str, str]) -> bool:
    """Whether all features are plain numbers of one unit, such as pixels: most of them span nearly the same range."""
    names = [name for name, kind in kinds.items() if base_kind(kind) in FEATURES]
    if len(names) < _LEAST_ALIKE or any(kinds[name] != "number" for name in names):
        return False
    some = sample_of(table.select(names), 2_000)
    values = [as_numbers(some[name]) for name in names]
    if any(np.isnan(v).all() for v in values):
        return False
    spans = np.array([np.nanmax(v) - np.nanmin(v) for v in values])
    return bool(np.isfinite(spans).all() and np.median(spans) >= 0.5 * spans.max())
