"""Tables as rows of standard normal codes, and back.

A column with the distribution function F becomes z = Phi^-1(u), u uniform between F(x-) and F(x): a value that
many rows have (a level of a category, a missing entry, a whole number) is an interval of u, in which the place of each
row is drawn. So every column is standard normal, whatever its tails and its atoms, and what is left to a model is how
the columns depend on each other. The way back is the quantile function, x = F^-1(Phi(z)).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtr, ndtri

from epicycle.automl.tables._columns import as_numbers, as_text, base_kind, decoded, form_of, kind_of_column
from epicycle.automl.tables._dates import as_dates

#: A number is an atom where it has at least this share of the rows, and at least so many of them.
_ATOM_SHARE, _ATOM_ROWS = 0.005, 3
#: Knots of the quantile function of the other numbers, evenly spread over normal scores.
_KNOTS = 256
#: Texts of which most rows have one of their own are not drawn again: each would be a copy.
_OWN_TEXTS = 0.5
#: Numbers with so few different values are levels of a category.
_FEW_VALUES = 8
#: Decimal places that numbers are rounded to where all have so few.
_DECIMALS = 6
#: Codes end here: beyond lies one row in a billion.
_FARTHEST = 6.0


@dataclass
class ColumnCode:
    """The distribution of a column, and how its values are written.

    name : of the column.
    kind : "number", "date" or "category"; "counter" for numbers of rows, which begin anew.
    missing : share of the rows without a value.
    levels, bounds : the levels of a category, and the ends 0 = c_0 < c_1 < ... = 1 of their intervals.
    u, x : knots of the quantile function of numbers and dates; atoms are levels of x with two knots.
    offset, step : whole numbers are offset + step k, and k is what the knots hold; step 0 where they are not whole.
    decimals : of numbers that are not whole; -1 where they have all digits.
    form : the format of strptime of dates that are texts or whole numbers.
    """

    name: str
    kind: str
    missing: float = 0.0
    levels: list[str] = field(default_factory=list)
    bounds: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0]))
    u: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0]))
    x: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0]))
    offset: int = 0
    step: int = 0
    decimals: int = -1
    form: str = ""

    # ------------------------------------------------------------------------------------------- to codes

    def encode(self, column: Any, rng: np.random.Generator) -> np.ndarray:
        """Standard normal codes of the rows of a column."""
        place = rng.random(len(column))  # within an interval
        if self.kind == "counter":
            return np.asarray(ndtri(np.clip(place, 1e-9, 1 - 1e-9)))
        if self.kind == "category":
            codes = self.codes(column)
            known = codes >= 0
            low, high = self.bounds[:-1][codes], self.bounds[1:][codes]
            u = low + place * (high - low)
        else:
            values = self.values(column)
            known = ~np.isnan(values)
            values = np.where(known, values, self.x[0])
            # Of an atom, whose knots have one x, the interval; of others one place: both ends are the same.
            low = _interpolated(values, self.x, self.u, "left")
            high = _interpolated(values, self.x, self.u, "right")
            u = low + place * (high - low)
        u = np.where(known, self.missing + (1 - self.missing) * u, place * self.missing)
        return np.asarray(np.clip(ndtri(np.clip(u, 1e-12, 1 - 1e-12)), -_FARTHEST, _FARTHEST))

    def codes(self, column: Any) -> np.ndarray:
        """The numbers of the levels of a category; -1 where an entry is missing or unknown."""
        at = {level: k for k, level in enumerate(self.levels)}
        return np.array([at.get(value, -1) for value in as_text(column).to_pylist()], dtype=np.int64)

    def values(self, column: Any) -> np.ndarray:
        """Numbers of the rows, in the units of the knots; NaN where they are missing."""
        column = decoded(column)
        whole = _whole_of(column, self.form)
        if whole is None or not self.step:
            return as_numbers(column)
        values, known = whole
        return np.where(known, (values - self.offset) // self.step, np.nan)

    # ------------------------------------------------------------------------------------------- and back

    def decode(self, u: np.ndarray, kind: Any) -> Any:
        """Values of the Arrow type `kind` at the places u between 0 and 1."""
        known = u >= self.missing if self.missing else np.ones(len(u), dtype=bool)
        inside = np.clip((u - self.missing) / (1 - self.missing), 0, 1) if self.missing < 1 else u
        if self.kind == "counter":
            return pa.array(self.offset + self.step * np.arange(len(u))).cast(kind)
        if self.kind == "category":
            codes = np.searchsorted(self.bounds[1:-1], inside, side="right")
            return self.of_levels(np.where(known, codes, -1), kind)
        return self._written(np.interp(inside, self.u, self.x), known, kind)

    def of_levels(self, codes: np.ndarray, kind: Any) -> Any:
        """Levels by their numbers, missing where the number is -1."""
        if pa.types.is_null(kind):
            return pa.nulls(len(codes))
        texts = [self.levels[k] if k >= 0 else None for k in codes.tolist()]
        column = pa.array(texts, pa.string())
        if pa.types.is_dictionary(kind):
            return column.cast(kind.value_type).dictionary_encode().cast(kind)
        return column.cast(kind)

    def _written(self, values: np.ndarray, known: np.ndarray, kind: Any) -> Any:
        """Numbers in the units, the rounding and the type of the column."""
        if not self.step:
            if self.decimals >= 0:
                values = np.round(values, self.decimals).clip(self.x[0], self.x[-1])
            return pa.array(values, mask=~known).cast(kind, safe=False)
        whole = self.offset + self.step * np.rint(values).astype(np.int64)
        if self.form:
            dates = (
                pa.array(whole, pa.int64(), mask=~known).cast(pa.timestamp("us")).cast(pa.timestamp("s"), safe=False)
            )
            return pc.strftime(dates, format="%Y%m%d" if self.form == "digits" else self.form).cast(kind)
        narrow = pa.types.is_date32(kind) or pa.types.is_time32(kind)
        column = pa.array(whole, pa.int64(), mask=~known)
        return column.cast(pa.int32()).cast(kind) if narrow else column.cast(kind)


def _interpolated(values: np.ndarray, x: np.ndarray, u: np.ndarray, side: str) -> np.ndarray:
    """The distribution function of knots (u, x) at values: its limit from the left, or its value."""
    steps = np.flatnonzero(np.diff(x) > 0)
    ends = np.concatenate([steps, [len(x) - 1]]) if side == "right" else np.concatenate([[0], steps + 1])
    found: np.ndarray = np.interp(values, x[ends], u[ends])
    return found


def code_of_column(column: Any, name: str) -> ColumnCode | str:
    """The code of a column, or why it cannot be drawn again."""
    column = decoded(column)
    kind, n = column.type, len(column)
    known = column.drop_null()
    if len(known) == 0:
        return ColumnCode(name, "category", missing=1.0, levels=[""])
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return f"values of type {kind}"
    found = kind_of_column(column, name)
    form = form_of(found.kind) if base_kind(found.kind) in ("date", "calendar") else ""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if text and not ("%" in form or form == "digits"):
        return _category(column, name) if pc.count_distinct(known).as_py() <= _OWN_TEXTS * len(known) else (
            "another text in most rows, and each that is drawn would be a copy"
        )  # fmt: skip
    if pa.types.is_boolean(kind):
        return _category(column, name)
    if not text and form not in ("digits",):
        form = ""
    whole = _whole_of(column, form)
    if whole is not None and found.kind == "drop" and "identifier" in found.treatment:
        values = whole[0]
        steps = np.unique(np.diff(values))
        return ColumnCode(name, "counter", offset=int(values.min()), step=int(steps[0]) if len(steps) == 1 else 1)
    temporal = bool(form) or pa.types.is_temporal(kind)
    if whole is not None and not temporal and len(np.unique(as_numbers(known))) <= _FEW_VALUES:
        return _category(column, name)
    if whole is None:
        values = as_numbers(column)
        there = ~np.isnan(values)
        if not there.any():
            return "no finite value"
        code = ColumnCode(name, "number", decimals=_decimals(values[there]))
    else:
        numbers, there = whole
        offset = int(numbers[there].min())
        step = int(np.gcd.reduce(numbers[there] - offset)) or 1
        code = ColumnCode(name, "date" if temporal else "number", offset=offset, step=step, form=form)
        values = (numbers - offset) // step * 1.0
    code.missing = 1 - float(there.sum()) / n
    code.u, code.x = _knots(np.sort(values[there]))
    return code


def _category(column: Any, name: str) -> ColumnCode:
    counts = as_text(column).drop_null().value_counts()
    pairs = sorted(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))
    shares = np.array([count for _, count in pairs], dtype=np.float64)
    bounds = np.concatenate([[0.0], np.cumsum(shares) / shares.sum()])
    bounds[-1] = 1.0
    missing = 1 - float(shares.sum()) / len(column)
    return ColumnCode(name, "category", missing=missing, levels=[level for level, _ in pairs], bounds=bounds)


def _whole_of(column: Any, form: str) -> tuple[np.ndarray, np.ndarray] | None:
    """(whole numbers, mask of those that are there) of a column of whole numbers, dates or times; None of others."""
    if form:
        column = as_dates(column, form)
    kind = column.type
    if pa.types.is_floating(kind):
        values = as_numbers(column)
        known = ~np.isnan(values)
        fits = known.any() and np.abs(values[known]).max() < 2**53 and (values[known] == np.floor(values[known])).all()
        return (np.where(known, values, 0).astype(np.int64), known) if fits else None
    if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)) or pa.types.is_uint64(kind):
        return None
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    known = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), dtype=bool)
    return pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), known


def _decimals(values: np.ndarray) -> int:
    """Decimal places of the numbers; -1 where they are many."""
    return next((d for d in range(_DECIMALS + 1) if bool((np.round(values, d) == values).all())), -1)


def _knots(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(u, x) of the quantile function of sorted numbers: all atoms, and quantiles of what lies between them."""
    n = len(values)
    distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
    atom = counts >= max(_ATOM_ROWS, _ATOM_SHARE * n)
    # A number that is no atom stands for itself alone: its place is the middle of its step.
    u = np.concatenate([first[atom], first[atom] + counts[atom], (first + counts / 2)[~atom]]) / n
    x = np.concatenate([distinct[atom], distinct[atom], distinct[~atom]])
    kept = np.ones(len(u), dtype=bool)
    rare = np.flatnonzero(np.arange(len(u)) >= 2 * atom.sum())
    if len(rare) > _KNOTS:
        wanted = np.searchsorted(u[rare], ndtr(np.linspace(-4, 4, _KNOTS))).clip(0, len(rare) - 1)
        kept[rare] = False
        kept[rare[np.unique(np.concatenate([[0], wanted, [len(rare) - 1]]))]] = True
    u, x = u[kept], x[kept]
    order = np.lexsort((u, x))
    u, x = u[order], x[order]
    if u[0] > 0:
        u, x = np.concatenate([[0.0], u]), np.concatenate([x[:1], x])
    if u[-1] < 1:
        u, x = np.concatenate([u, [1.0]]), np.concatenate([x, x[-1:]])
    return u, x
