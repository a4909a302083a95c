"""Tables of coefficients with what the likelihood says about their uncertainty."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from epicycle.core._checks import optional_import
from epicycle.core._exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Summary:
    """A table with one row for each coefficient; prints as text, shows as HTML, and gives a DataFrame.

    columns : the columns, by name, each with one value a row.
    rows : the names of the rows.
    facts : numbers about the fit as a whole.
    note : what the table leaves out, and why.
    """

    title: str
    rows: tuple[str, ...]
    columns: Mapping[str, np.ndarray]
    facts: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas DataFrame."""
        pd = optional_import("pandas", "Summary.to_frame")
        return pd.DataFrame(dict(self.columns), index=list(self.rows))

    def __str__(self) -> str:
        width = max(map(len, self.rows), default=0)
        head = " " * width + "".join(f"{name:>12}" for name in self.columns)
        lines = [self.title, "=" * len(head), head, "-" * len(head)]
        for i, row in enumerate(self.rows):
            lines.append(f"{row:<{width}}" + "".join(f"{column[i]:>12.4g}" for column in self.columns.values()))
        lines.append("=" * len(head))
        lines += _wrapped([f"{name} {value:.6g}" for name, value in self.facts.items()], len(head))
        if self.note:
            lines += textwrap.wrap(f"Note: {self.note}.", max(len(head), 72))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            f"<tr><th>{escape(row)}</th>"
            + "".join(f"<td>{column[i]:.4g}</td>" for column in self.columns.values())
            + "</tr>"
            for i, row in enumerate(self.rows)
        )
        facts = ", ".join(f"{escape(name)} {value:.6g}" for name, value in self.facts.items())
        note = f"<p>Note: {escape(self.note)}.</p>" if self.note else ""
        return (
            f"<table><caption>{escape(self.title)}</caption><tr><th></th>{head}</tr>{body}</table><p>{facts}</p>{note}"
        )

    @classmethod
    def of_coefficients(
        cls,
        names: Sequence[str],
        coef: np.ndarray,
        intercept: np.ndarray | None,
        outputs: Sequence[str],
        title: str,
        note: str,
        facts: Mapping[str, float] | None = None,
    ) -> Summary:
        """A table of coefficients alone, one column for each output."""
        values = coef if intercept is None else np.column_stack([intercept, coef])
        rows = tuple(names) if intercept is None else ("intercept", *names)
        columns = {f"coef[{output}]": row for output, row in zip(outputs, values, strict=True)}
        return cls(title, rows, columns, facts or {}, note=note)


def _wrapped(facts: Sequence[str], width: int) -> list[str]:
    """Facts on as few lines as they fit on, three spaces apart."""
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + 3 + len(fact) <= max(width, 72):
            lines[-1] += f"   {fact}"
        else:
            lines.append(fact)
    return lines


def central_quantile(confidence: float, degrees_of_freedom: float | None) -> float:
    """The number that Student's t (or, without degrees of freedom, the normal law) stays within with `confidence`."""
    q = 0.5 + confidence / 2
    return float(ndtri(q) if degrees_of_freedom is None else stdtrit(degrees_of_freedom, q))


def upper_tail(x: np.ndarray, degrees_of_freedom: float | None) -> np.ndarray:
    """The probability that Student's t (or the normal law) exceeds x."""
    return np.asarray(ndtr(-x) if degrees_of_freedom is None else stdtr(degrees_of_freedom, -x))


def wald_summary(
    names: Sequence[str],
    coef: np.ndarray,
    intercept: float | None,
    covariance: np.ndarray,
    *,
    confidence: float,
    title: str,
    facts: Mapping[str, float],
    degrees_of_freedom: float | None = None,
    note: str = "",
) -> Summary:
    """Standard errors, test statistics, p-values and intervals from the covariance of (coef, intercept).

    With `degrees_of_freedom` the statistic is Student's t, otherwise it is the normal z.
    """
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence={confidence!r}; expected a number between 0 and 1")
    letter = "z" if degrees_of_freedom is None else "t"
    values = np.asarray(coef, dtype=np.float64) if intercept is None else np.append(coef, intercept).astype(np.float64)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = values / errors
    half = central_quantile(confidence, degrees_of_freedom) * errors
    columns = {
        "coef": values,
        "std err": errors,
        letter: statistic,
        f"P>|{letter}|": 2 * upper_tail(np.abs(statistic), degrees_of_freedom),
        f"[{(1 - confidence) / 2:.3g}": values - half,
        f"{(1 + confidence) / 2:.3g}]": values + half,
    }
    rows = tuple(names)
    if intercept is not None:  # the intercept comes first in the table
        columns = {name: np.concatenate([column[-1:], column[:-1]]) for name, column in columns.items()}
        rows = ("intercept", *rows)
    return Summary(title, rows, columns, facts, note)
