"""Rows of JSON as a table: the columns that a model reads, and what each takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl.tables._columns import base_kind
from epicycle.automl.tables._table_encoder import is_feature
from epicycle.automl.tables._table_model import TableModel
from epicycle.core._exceptions import DataError

#: Levels of a category that the schema lists as examples.
_LISTED_LEVELS = 50
_INT64 = 2**63


class RowError(DataError):
    """A value that does not fit the schema.

    Attributes
    ----------
    field : str or None
    row : int or None
    """

    def __init__(self, message: str, *, field: str | None = None, row: int | None = None) -> None:
        super().__init__(message)
        self.field, self.row = field, row


@dataclass(frozen=True)
class Field:
    """A column that the model reads.

    json_type : type of its values in JSON, besides null.
    levels : the levels that the model knows, of a category with few.
    typical : the median of a number.
    """

    name: str
    kind: str
    json_type: str
    arrow_type: pa.DataType
    convert: Callable[[Any], Any]
    levels: tuple[str, ...] = ()
    typical: float | None = None

    def schema(self) -> dict[str, Any]:
        """Its part of the JSON schema."""
        found: dict[str, Any] = {"type": [self.json_type, "null"]}
        if pa.types.is_timestamp(self.arrow_type):
            found["format"] = "date-time"
        if self.levels:
            found["examples"] = list(self.levels)
        elif self.typical is not None:
            found["examples"] = [self.typical]
        return found


class RowSchema:
    """The columns of a model, from its encoder.

    Parameters
    ----------
    model : TableModel
        Fitted.
    """

    def __init__(self, model: TableModel) -> None:
        encoder = model.encoder_
        medians = {
            name: float(m) for (name, part), m in zip(encoder._numbers_, encoder.median_, strict=True) if not part
        }
        self.fields = [
            _field(name, kind, encoder.types_[name], encoder.levels_.get(name), medians.get(name))
            for name, kind in encoder.columns_.items()
            if is_feature(kind)
        ]
        self.names = [field.name for field in self.fields]
        self._known = frozenset(self.names)

    def json_schema(self, max_rows: int) -> dict[str, Any]:
        """Schema of a request, for clients and for people."""
        row = {
            "type": "object",
            "properties": {field.name: field.schema() for field in self.fields},
            "required": self.names,
            "additionalProperties": False,
        }
        listed = {"type": "array", "minItems": len(self.names), "maxItems": len(self.names)}
        rows = {"type": "array", "minItems": 1, "maxItems": max_rows, "items": {"anyOf": [row, listed]}}
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Rows to predict",
            "description": "Objects by the names of the columns, or lists in their order; null is a missing value.",
            "type": "object",
            "properties": {"rows": rows},
            "required": ["rows"],
            "additionalProperties": False,
        }

    def table(self, rows: Sequence[Any]) -> pa.Table:
        """The rows as a table; the first value that does not fit is named by its row and field."""
        columns: list[list[Any]] = [[] for _ in self.fields]
        for i, row in enumerate(rows):
            values = self._in_order(row, i)
            for field, column, value in zip(self.fields, columns, values, strict=True):
                try:
                    column.append(None if value is None else field.convert(value))
                except (ValueError, OverflowError, TypeError) as error:
                    raise RowError(f"rows[{i}], field {field.name!r}: {error}", field=field.name, row=i) from None
        arrays = [pa.array(column, type=f.arrow_type) for f, column in zip(self.fields, columns, strict=True)]
        return pa.table(dict(zip(self.names, arrays, strict=True)))

    def typical_row(self) -> pa.Table:
        """Medians of the numbers, and nothing known of the other columns."""
        return self.table([{field.name: field.typical for field in self.fields}])

    def _in_order(self, row: Any, i: int) -> Sequence[Any]:
        if isinstance(row, dict):
            if len(row) == len(self.names) and row.keys() == self._known:
                return [row[name] for name in self.names]
            if unknown := sorted(row.keys() - self._known):
                name = unknown[0]
                raise RowError(f"rows[{i}]: unknown field {name!r:.80}", field=name[:80], row=i)
            name = next(name for name in self.names if name not in row)
            raise RowError(f"rows[{i}]: field {name!r} is missing; null stands for an unknown value", field=name, row=i)
        if not isinstance(row, list):
            raise RowError(f"rows[{i}]: {_said(row)}; expected an object or a list", row=i)
        if len(row) != len(self.names):
            raise RowError(f"rows[{i}]: {len(row)} values; expected {len(self.names)}, one for each column", row=i)
        return row


def _field(name: str, kind: str, type_name: str, levels: np.ndarray | None, median: float | None) -> Field:
    """The values that a column takes, by the kind that it is read as and the type that it had in training."""
    make = partial(Field, name, kind)
    shown = () if levels is None or len(levels) > _LISTED_LEVELS else tuple(map(str, levels))
    if type_name == "bool":
        return make("boolean", pa.bool_(), _boolean)
    if type_name.startswith(("timestamp", "date")):
        return make("string", pa.timestamp("us"), _moment)
    if type_name.startswith(("int", "uint")) and kind == "category":
        return make("integer", pa.int64(), _integer, shown)
    if type_name.startswith(("int", "uint", "float", "double", "halffloat", "decimal")):
        found = median if base_kind(kind) == "number" else None
        return make("number", pa.float64(), _number, (), found)
    return make("string", pa.string(), _text, shown)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{_said(value)}; expected a number or null")
    found = float(value)
    if not math.isfinite(found):
        raise ValueError("is infinite; expected a finite number or null")
    return found


def _integer(value: Any) -> int:
    found = _number(value)
    if not found.is_integer():
        raise ValueError(f"{_said(value)}; expected a whole number or null")
    number = int(value)
    if not -_INT64 <= number < _INT64:
        raise ValueError("is too large; expected a whole number of 64 bits or null")
    return number


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{_said(value)}; expected true, false or null")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{_said(value)}; expected a string or null")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair; expected text in Unicode") from None
    return value


def _moment(value: Any) -> datetime:
    if not isinstance(value, str):
        raise TypeError(f"{_said(value)}; expected a date such as '2024-05-01T12:30:00', or null")
    try:
        found = datetime.fromisoformat(value)
        return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ValueError(f"{value!r:.40} is no date; expected one such as '2024-05-01T12:30:00', or null") from None


def _said(value: Any) -> str:
    """The type of a value in the words of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return f"the number {value!r:.30}"
    if isinstance(value, str):
        return f"the string {value!r:.30}"
    return "a list" if isinstance(value, list) else "an object"
