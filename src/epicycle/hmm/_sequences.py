"""Sequences as rows of one table, each sequence in one piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._target import as_weight


@dataclass(frozen=True)
class Sequences:
    """Rows X of all sequences; sequence s is rows offsets[s] to offsets[s + 1].

    weight : how often each sequence counts, or None for once.
    order : where the rows stood in the table that the user gave, or None if they stand as they did.
    """

    X: np.ndarray
    offsets: np.ndarray
    weight: np.ndarray | None = None
    order: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @property
    def row_weight(self) -> np.ndarray | None:
        return None if self.weight is None else np.repeat(self.weight, self.lengths)

    @property
    def total_weight(self) -> float:
        return float(len(self.X) if self.weight is None else self.weight @ self.lengths)

    def as_given(self, values: np.ndarray) -> np.ndarray:
        """Results of rows, in the order in which the user gave the rows."""
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out


def joined(X: Any, lengths: Any) -> tuple[Any, Any]:
    """A list of tables as one table and their lengths; anything else as it is."""
    if not isinstance(X, list | tuple) or not len(X) or np.ndim(X[0]) != 2:
        return X, lengths
    if lengths is not None:
        raise DataError("lengths: X is a list of sequences, which have their lengths; expected None")
    counts = [len(part) for part in X]
    if all(hasattr(part, "columns") and hasattr(part, "iloc") for part in X):
        import pandas as pd

        return pd.concat(list(X), ignore_index=True), counts
    widths = {np.shape(part)[1] if np.ndim(part) == 2 else None for part in X}
    if len(widths) > 1 or None in widths:
        raise DataError("X: a list of sequences with different numbers of columns; expected tables of the same columns")
    return np.concatenate([np.asarray(part) for part in X]), counts


def as_sequences(X: np.ndarray, lengths: Any, groups: Any, weight: Any = None) -> Sequences:
    """The rows cut into sequences: by their lengths, or by a label for each row."""
    n, order = len(X), None
    if lengths is not None and groups is not None:
        raise DataError("groups: lengths are given too; expected one of them")
    if groups is not None:
        labels = np.asarray(groups)
        if labels.shape != (n,):
            raise DataError(f"groups: shape {labels.shape}; expected a label for each of the {n} rows")
        _, first, code = np.unique(labels, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # sequences in the order in which they first appear
        code = rank[code.ravel()]
        counts = np.bincount(code)
        if (np.diff(code) < 0).any():
            order = np.argsort(code, kind="stable")
            X = X[order]
    else:
        counts = np.array([n]) if lengths is None else _checked_lengths(lengths, n)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    if weight is not None and np.shape(weight) != (len(counts),):
        raise DataError(f"sequence_weight: shape {np.shape(weight)}; expected ({len(counts)},), one for each sequence")
    v = as_weight(weight, len(counts))
    return Sequences(np.ascontiguousarray(X, dtype=np.float64), offsets, v, order)


def _checked_lengths(lengths: Any, n: int) -> np.ndarray:
    counts = np.atleast_1d(np.asarray(lengths))
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise DataTypeError(
            f"lengths: {counts.dtype} of shape {counts.shape}; expected integers, one for each sequence"
        )
    if (counts < 1).any() or counts.sum() != n:
        raise DataError(
            f"lengths: sum {counts.sum()}, least {counts.min()}; expected the {n} rows of X, and none below 1"
        )
    return counts
