"""Training set against test set: rows that are in both, and columns whose distribution differs (drift).

Both compare the rows as they came. Levels and numbers of an encoder would not do: it is fitted to the training rows, so
that a level which only test rows have counts as missing there, which makes different rows equal and equal
distributions different.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import chdtrc, kolmogorov

from epicycle.automl._metrics import Metric
from epicycle.automl.checks._data_checks import DataIssue
from epicycle.automl.tables._columns import as_numbers, as_text, base_kind, decoded, form_of, sample_of
from epicycle.automl.tables._dates import as_dates

#: Probability of any false alarm about drift, over all columns.
_DRIFT_LEVEL = 0.01
#: Distance of two distributions below which drift is not reported, however significant: it hardly changes a score.
_MIN_DRIFT = 0.1
#: Rows of a level that are expected in either set at least, for the chi-squared approximation; rarer ones are counted
#: as one level.
_MIN_EXPECTED = 5.0


# ---------------------------------------------------------------------------------------------- duplicates


@dataclass(frozen=True)
class Duplicates:
    """Number of repeated training rows, and a mask of the test rows that are also training rows."""

    within: int
    across: np.ndarray


def duplicates(
    train: pa.Table, y_train: np.ndarray, test: pa.Table, y_test: np.ndarray, names: Sequence[str]
) -> tuple[Duplicates, list[DataIssue]]:
    """Find rows that are equal in the columns `names` and in the target."""
    n = len(y_train)
    keys = row_keys([_words(train[name], test[name]) for name in names], np.concatenate([y_train, y_test]))
    own, others = keys[:n], keys[n:]
    unique = np.unique(own)
    across = np.isin(others, unique)
    found = Duplicates(n - len(unique), across)
    issues = []
    if found.within:
        share = found.within / n
        text = f"{found.within:,} rows ({share:.1%}) repeat another row of the training set"
        issues.append(DataIssue("duplicate rows", "medium" if share > 0.01 else "low", text))
    if across.any() and across.mean() > 0.002:
        text = (
            f"{int(across.sum()):,} of {len(others):,} test rows are equal to a training row, target included: the "
            "score is also given without them"
        )
        issues.append(DataIssue(ACROSS, "high" if across.mean() > 0.02 else "medium", text))
    return found, issues


#: The kind of the issue about test rows that are training rows too.
ACROSS = "duplicates across the split"


def with_effect(issue: DataIssue, metric: Metric, score: float, without: float) -> DataIssue:
    """The issue about test rows that are training rows too, with what they do to the score."""
    if f"{score:.4g}" == f"{without:.4g}":
        effect = "does not change the score"
    elif (score > without) == metric.greater_is_better:
        effect = "makes the score look better"
    else:
        effect = "makes the score look worse"
    found = issue.text.partition(":")[0]
    text = f"{found}, which {effect}: {metric.label} {score:.4g} with them, {without:.4g} without"
    return replace(issue, text=text)


def row_keys(columns: Sequence[np.ndarray], y: np.ndarray) -> np.ndarray:
    """A number for each row, equal for equal rows and (but for one chance in 2^64) for these alone."""
    keys = np.full(len(y), 0x9E3779B97F4A7C15, dtype=np.uint64)
    with np.errstate(over="ignore"):
        # A 64-bit hash in the manner of Murmur's finalizer, column by column: no copy of the rows is made.
        for words in (*columns, np.unique(y, return_inverse=True)[1].astype(np.uint64)):
            keys = (keys ^ words) * np.uint64(0xFF51AFD7ED558CCD)
            keys ^= keys >> np.uint64(32)
    return keys


def _words(first: Any, second: Any) -> np.ndarray:
    """64 bits for each value of two columns, one after the other, that are equal for equal values alone."""
    pair = [decoded(column) for column in (first, second)]
    if all(pa.types.is_integer(column.type) or pa.types.is_boolean(column.type) for column in pair):
        whole = [column.cast(pa.int64(), safe=False) for column in pair]
        known = np.concatenate([_known(column) for column in whole])
        values = np.concatenate([column.fill_null(0).to_numpy() for column in whole]).view(np.uint64)
        return np.where(known, values, np.uint64(0x5BD1E9955BD1E995))
    if all(pa.types.is_primitive(column.type) and not pa.types.is_boolean(column.type) for column in pair):
        numbers = np.concatenate([as_numbers(column) for column in pair])
        # Adding 0.0 turns -0.0 into 0.0, and all NaN become one value: equal values have equal bits.
        return np.where(np.isnan(numbers), np.inf, numbers + 0.0).view(np.uint64)
    return (_codes(*pair) + 1).astype(np.uint64)


def _known(column: Any) -> np.ndarray:
    known: np.ndarray = column.is_valid().to_numpy()
    return known


def _codes(first: Any, second: Any) -> np.ndarray:
    """Numbers of the texts of two columns, one after the other; -1 where they are missing."""
    chunks = [chunk for column in (first, second) for chunk in _chunks(as_text(column))]
    coded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
    codes: np.ndarray = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _chunks(column: Any) -> list[Any]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


# ---------------------------------------------------------------------------------------------- drift


@dataclass(frozen=True)
class Drift:
    """Distance between the distributions of a column in two sets of rows, and its p-value."""

    column: str
    distance: float
    p_value: float


def drift_between(
    first: pa.Table, second: pa.Table, kinds: Mapping[str, str], seed: int = 0, rows: int = 20_000
) -> tuple[list[Drift], list[DataIssue]]:
    """Columns whose distribution differs between two sets of rows; `kinds` are those of the features.

    Numbers, dates and the lengths of texts are compared by the Kolmogorov-Smirnov test, levels and missing values by
    chi-squared; Holm's correction keeps the probability of any false alarm below 1% over all columns.
    """
    a, b = (sample_of(part.select(list(kinds)), rows, seed) for part in (first, second))
    found = [Drift(name, *_distance(a[name], b[name], kind)) for name, kind in kinds.items()]
    ranked = sorted(found, key=lambda d: d.p_value)
    drifted = []
    for i, one in enumerate(ranked):
        # Holm: the i-th smallest p-value is compared with the level over the number of those left.
        if one.p_value * (len(ranked) - i) > _DRIFT_LEVEL:
            break
        if one.distance >= _MIN_DRIFT:
            drifted.append(one)
    issues = []
    if drifted:
        listed = ", ".join(f"{d.column} ({d.distance:.2f})" for d in sorted(drifted, key=lambda d: -d.distance)[:6])
        more = f" and {len(drifted) - 6} more" if len(drifted) > 6 else ""
        issues.append(
            DataIssue(
                "drift",
                "medium",
                f"the test rows differ from the training rows in {listed}{more} (0: same distribution, 1: no overlap)",
                tuple(d.column for d in drifted),
            )
        )
    return ranked, issues


def _distance(first: Any, second: Any, kind: str) -> tuple[float, float]:
    """Distance and p-value of a column; a change in the share of missing values is drift too."""
    if kind == "category":
        codes = _codes(decoded(first), decoded(second))
        return _chi_squared(codes[: len(first)], codes[len(first) :])
    a, b = _numbers(first, kind), _numbers(second, kind)
    distance, p = _kolmogorov_smirnov(a, b)
    gap, p_gap = _chi_squared(np.isnan(a).astype(int), np.isnan(b).astype(int))
    if p_gap < p:
        distance, p = gap, p_gap
    return distance, min(1.0, 2 * p)  # the smaller of two p-values


def _numbers(column: Any, kind: str) -> np.ndarray:
    if base_kind(kind) == "number":
        return as_numbers(column, form_of(kind))
    if kind in ("text", "sequence"):
        return as_numbers(pc.utf8_length(as_text(column)))
    return as_numbers(as_dates(column, form_of(kind)).cast(pa.int64()))


def _kolmogorov_smirnov(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    a, b = np.sort(a[~np.isnan(a)]), np.sort(b[~np.isnan(b)])
    if len(a) < 5 or len(b) < 5:
        return 0.0, 1.0
    at = np.concatenate([a, b])
    below = np.searchsorted(a, at, side="right") / len(a) - np.searchsorted(b, at, side="right") / len(b)
    distance = float(np.abs(below).max())
    m = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    # Stephens' correction of the asymptotic distribution for small samples.
    return distance, float(kolmogorov((m + 0.12 + 0.11 / m) * distance))


def _chi_squared(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Total variation and p-value of the counts of levels, rare ones together.

    Which levels are rare follows from both sets together: it is the same however these rows were split.
    """
    codes = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
    size = int(codes.max()) + 1
    counts = np.stack([np.bincount(codes[: len(a)], minlength=size), np.bincount(codes[len(a) :], minlength=size)])
    totals = counts.sum(axis=0)
    counts = counts[:, np.argsort(-totals, kind="stable")]
    smaller = min(len(a), len(b)) / (len(a) + len(b))
    frequent = int((smaller * totals >= _MIN_EXPECTED).sum())
    if smaller * counts[:, frequent:].sum() < _MIN_EXPECTED:
        frequent -= 1  # the rare ones together are rare too: they join the next
    if frequent < 1:
        return 0.0, 1.0
    counts = np.column_stack([counts[:, :frequent], counts[:, frequent:].sum(axis=1)])
    shares = counts / counts.sum(axis=1, keepdims=True)
    expected = counts.sum(axis=0) * counts.sum(axis=1, keepdims=True) / counts.sum()
    chi = float(((counts - expected) ** 2 / expected).sum())
    return float(np.abs(shares[0] - shares[1]).sum() / 2), float(chdtrc(counts.shape[1] - 1, chi))
