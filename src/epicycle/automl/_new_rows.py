"""A fitted model on rows with their targets: what it says about them, and which of two says it better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import bdtr, stdtr
from sklearn.base import is_classifier

from epicycle.automl._intervals import accelerated_interval
from epicycle.automl._tables import read_table, source_name
from epicycle.automl._targets import known_rows, target_values
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.select._scorers import responses_of
from epicycle.theory import test_bound

__all__ = ["Comparison", "NewRows", "compare_losses", "read_rows"]


@dataclass(frozen=True)
class NewRows:
    """Rows with a target: the table without rows whose target is missing, and where the rows stood."""

    table: pa.Table
    y: np.ndarray
    target: str
    rows: np.ndarray
    left_out: int


def read_rows(data: Any, model: Any, target: str | None = None, *, fitted: bool = True) -> NewRows:
    """The rows of a source that have the target of a model; of a fitted one they have its classes."""
    table = read_table(data)
    name = target or getattr(model, "target", None)
    if name is None:
        raise ParameterError("target: the model does not say which column it predicts; expected --target COLUMN")
    if name not in table.column_names:
        raise DataError(f"{source_name(data)}: has no column {name!r}, the target")
    classes = bool(is_classifier(model))
    known = known_rows(table[name], classes=classes)
    if not known.any():
        raise DataError(f"{source_name(data)}: no row has a {name}")
    if not known.all():
        table = table.filter(pa.array(known))
    y = target_values(table[name], classes=classes, name=name)
    if classes and fitted:
        labels = np.asarray(model.classes_)
        y = y if y.dtype.kind == labels.dtype.kind else y.astype(labels.dtype)
        if len(new := np.setdiff1d(y, labels)):
            raise DataError(f"{name!r}: has classes that the model does not know: {', '.join(map(str, new[:5]))}")
    return NewRows(table, y, name, np.flatnonzero(known), int((~known).sum()))


@dataclass(frozen=True)
class Comparison:
    """Two models on the same rows.

    Attributes
    ----------
    metric : str
        "error rate" of classifiers, "squared error" of regressors.
    first, second : float
        The mean loss of each.
    difference : float
        First less second: negative where the first is better.
    lower, upper : float
        Of the difference, at `level`.
    p_value : float
        Of a difference as large where both are equally good: McNemar's exact test, or Student's paired t.
    test : str
    only_first, only_second : int or None
        Rows that only the one got right, of classifiers.
    n : int
    level : float
    verdict : str
    """

    metric: str
    first: float
    second: float
    difference: float
    lower: float
    upper: float
    p_value: float
    test: str
    only_first: int | None
    only_second: int | None
    n: int
    level: float
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def row_losses(model: Any, rows: NewRows) -> tuple[str, np.ndarray, Mapping[str, np.ndarray]]:
    """The loss of every row: wrong or not, or the squared error."""
    said = responses_of(model, rows.table, getattr(model, "classes_", None))
    if is_classifier(model):
        return "error rate", (said["predict"] != rows.y).astype(np.float64), said
    return "squared error", (rows.y - said["predict"]) ** 2, said


def compare_losses(
    first: np.ndarray,
    second: np.ndarray,
    *,
    names: tuple[str, str] = ("A", "B"),
    metric: str,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Which losses are smaller, row by row.

    Errors by McNemar's exact test; the interval of their difference inverts the binomial tail of the rows on which the
    models differ, each of the two kinds of rows at half the risk, so that it holds for any number of rows. Other losses
    by Student's t for pairs, with the accelerated bootstrap for the interval.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    n, apart = len(a), a - b
    if n < 2:
        raise DataError(f"{n} row; expected at least 2 to compare models")
    only_a = only_b = None
    if metric == "error rate":
        only_a, only_b = int(np.sum(apart < 0)), int(np.sum(apart > 0))
        p, test = _mcnemar(only_a, only_b), "McNemar, exact"
        lower, upper = _difference_of_errors(only_a, only_b, n, level)
    else:
        p, test = _paired_t(apart), "Student's t for pairs"
        _, lower, upper = accelerated_interval(lambda c: float(c @ apart / c.sum()), n, level, seed)
    difference = float(apart.mean())
    if p < 1 - level and difference != 0:
        better, worse = (names[0], names[1]) if difference < 0 else (names[1], names[0])
        verdict = f"{better} is better than {worse}: its {metric} is smaller by {abs(difference):.4g} (p = {p:.2g})."
    else:
        verdict = f"{names[0]} and {names[1]} cannot be told apart on {n:,} rows (p = {p:.2g})."
    return Comparison(
        metric, float(a.mean()), float(b.mean()), difference, lower, upper, p, test, only_a, only_b, n, level, verdict
    )


def _mcnemar(a: int, b: int) -> float:
    """Two-sided, from the binomial distribution of one half."""
    if a + b == 0:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(a, b), a + b, 0.5)))


def _difference_of_errors(a: int, b: int, n: int, level: float) -> tuple[float, float]:
    """Bounds of P(only A wrong) - P(only B wrong): each of the two shares has an exact interval at half the risk."""
    half = 1 - (1 - level) / 2
    only_a_wrong, only_b_wrong = (test_bound(errors=k, n=n, level=half, sides=2) for k in (b, a))
    return only_a_wrong.lower - only_b_wrong.upper, only_a_wrong.upper - only_b_wrong.lower


def _paired_t(apart: np.ndarray) -> float:

    n, spread = len(apart), float(apart.std(ddof=1))
    if spread == 0:
        return 1.0 if apart[0] == 0 else 0.0
    t = float(apart.mean()) / (spread / math.sqrt(n))
    return float(2 * stdtr(n - 1, -abs(t)))
