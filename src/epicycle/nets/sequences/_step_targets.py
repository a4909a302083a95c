"""Targets for each step of each sequence, checked against the lengths of the sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._target import check_labels
from epicycle.nets.sequences._numbers import require_numbers


def _one_each(y: Any, lengths: Sequence[int], estimator_name: str) -> list[np.ndarray]:
    if isinstance(y, str | bytes | dict | set) or not hasattr(y, "__len__"):
        raise DataTypeError(
            f"y: {estimator_name} expects a list with an array for each sequence; got {type(y).__name__}"
        )
    if len(y) != len(lengths):
        raise DataError(
            f"y: Found input variables with inconsistent numbers of samples: [{len(lengths)}, {len(y)}], that is, X "
            f"has {len(lengths)} sequences and y has targets for {len(y)}"
        )
    found = []
    for i, (part, n) in enumerate(zip(y, lengths, strict=True)):
        values = np.asarray(part if not isinstance(part, str) else list(part))
        if values.ndim == 0 or len(values) != n:
            given = "one value" if values.ndim == 0 else f"{len(values)} values"
            raise DataError(f"y: {given} for sequence {i}; {estimator_name} expects one for each of its {n} steps")
        found.append(values)
    return found


def step_labels(y: Any, lengths: Sequence[int], estimator_name: str) -> list[np.ndarray]:
    """A label for each step; a text is a sequence of labels of one character."""
    found = _one_each(y, lengths, estimator_name)
    wide = next((i for i, values in enumerate(found) if values.ndim != 1), None)
    if wide is not None:
        raise DataError(f"y: the labels of sequence {wide} have the shape {found[wide].shape}; expected one dimension")
    kinds = {values.dtype.kind == "U" for values in found}
    if len(kinds) > 1:
        raise DataTypeError("y: Unknown label type: holds both strings and other objects; expected one kind")
    check_labels(np.concatenate(found), estimator_name)
    return found


def step_targets(y: Any, lengths: Sequence[int], estimator_name: str) -> tuple[list[np.ndarray], bool]:
    """(numbers of each step as float32 of shape (n_steps, n_targets), whether there was one for each)."""
    found = _one_each(y, lengths, estimator_name)
    vector = found[0].ndim == 1
    tables = []
    for i, values in enumerate(found):
        require_numbers(values, "y", estimator_name)
        table = values[:, None] if values.ndim == 1 else values
        width = 1 if vector else found[0].shape[1]
        if values.ndim != found[0].ndim or table.ndim != 2 or table.shape[1] != width or width == 0:
            raise DataError(f"y: targets of sequence {i} have the shape {values.shape}; expected that of the first one")
        with np.errstate(over="ignore"):
            table = table.astype(np.float32)
        if not np.isfinite(table).all():
            raise DataError(f"Input y contains NaN, infinity or a value too large for float32: sequence {i}")
        tables.append(table)
    return tables, vector
