"""Groups of rows by a column: periods of dates, ranges of numbers, or names."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl.tables._columns import as_numbers, as_text, decoded
from epicycle.automl.tables._dates import as_dates, form_of_texts
from epicycle.core._exceptions import DataError

MOST = 24  # groups
_YEARS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Periods:
    """Groups of rows in their order."""

    labels: list[str]
    group: np.ndarray  # of every row; -1 where the value is missing
    in_time: bool  # whether the groups follow each other, at equal distances


def periods_of(column: Any, name: str) -> Periods:
    """The finest groups of which there are at most `MOST`; those between the first and the last are all there."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind) and not pa.types.is_time(kind):
        return _of_dates(as_dates(column, ""), name)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _of_numbers(as_numbers(column), name)
    texts = as_text(column)
    known = texts.drop_null()
    if len(known) and (form := form_of_texts(known)) is not None:
        return _of_dates(as_dates(texts, form), name)
    return _of_names(texts, name)


def _of_dates(stamps: Any, name: str) -> Periods:
    values = np.asarray(stamps.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False), dtype="datetime64[us]")
    known = ~np.isnat(values)
    _require_some(known, name)
    for unit in ("D", "M"):
        at = values.astype(f"datetime64[{unit}]")
        first, last = at[known].min(), at[known].max()
        if int((last - first).astype(np.int64)) < MOST:
            group = np.where(known, (at - first).astype(np.int64), -1)
            return Periods([str(label) for label in np.arange(first, last + 1)], group, True)
    years = values.astype("datetime64[Y]").astype(np.int64) + 1970
    return _of_steps(np.where(known, years, 0), known, _YEARS)


def _of_numbers(values: np.ndarray, name: str) -> Periods:
    known = np.isfinite(values)
    _require_some(known, name)
    if bool((values[known] == np.floor(values[known])).all()) and np.ptp(values[known]) < MOST * _YEARS[-1]:
        return _of_steps(np.where(known, values, 0.0).astype(np.int64), known, _YEARS)
    edges = np.unique(np.quantile(values[known], np.linspace(0, 1, MOST // 2 + 1)))  # equal numbers of rows
    if len(edges) < 2:
        return Periods([f"{edges[0]:.4g}"], np.where(known, 0, -1), True)
    group = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return Periods([f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges)], np.where(known, group, -1), True)


def _of_steps(whole: np.ndarray, known: np.ndarray, steps: tuple[int, ...]) -> Periods:
    """Groups of whole numbers, of so many each as there have to be."""
    low, high = int(whole[known].min()), int(whole[known].max())
    step = next((s for s in steps if high // s - low // s < MOST), steps[-1])
    first, last = low // step, high // step
    labels = [str(k * step) if step == 1 else f"{k * step}-{k * step + step - 1}" for k in range(first, last + 1)]
    return Periods(labels, np.where(known, whole // step - first, -1), True)


def _of_names(texts: Any, name: str) -> Periods:
    values = np.asarray(texts.to_pylist(), dtype=object)
    known = np.array([value is not None for value in values], dtype=bool)
    _require_some(known, name)
    labels, group = np.unique(values[known].astype(str), return_inverse=True)
    if len(labels) > MOST:
        raise DataError(
            f"time: column {name!r} holds {len(labels):,} different texts; expected dates, numbers, or at most {MOST} "
            "names of groups"
        )
    whole = np.full(len(values), -1)
    whole[known] = group
    return Periods([str(label) for label in labels], whole, False)


def _require_some(known: np.ndarray, name: str) -> None:
    if not known.any():
        raise DataError(f"time: column {name!r} has no value")
