"""Finding: the result of a comparison or a diagnosis, with a verdict in words, a table and a figure."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epicycle.core._checks import optional_import
from epicycle.core._docs import complete_docstrings
from epicycle.core._plot_style import Axes, axes_of, bars

if TYPE_CHECKING:
    import pandas as pd

#: Columns of printed text, and rows of a printed table.
_WIDTH, _ROWS = 100, 25


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Finding(ABC):
    """Base of the results of `select` and `diagnose`: prints as text, shows as HTML, and has a table and a figure.

    Attributes
    ----------
    verdict : str
        The result in words.
    columns : dict
        The table, by column; all columns are of one length.
    next_steps : tuple of str
        Advice, the most promising step first.
    notes : tuple of str
        Limitations of the numbers.
    """

    #: Entries for the docstrings of the subclasses.
    _docs: ClassVar[Mapping[str, str]] = {
        "verdict": "verdict : str\n    The result in words.",
        "table": "table : DataFrame\n    The numbers.",
        "next_steps": "next_steps : tuple of str\n    Advice, the most promising step first.",
        "notes": "notes : tuple of str\n    Limitations of the numbers.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("verdict", "table", "next_steps", "notes")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        complete_docstrings(cls)

    verdict: str
    columns: Mapping[str, Sequence[Any] | np.ndarray]
    next_steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """The numbers as a pandas DataFrame."""
        pd = optional_import("pandas", f"{type(self).__name__}.table")
        return pd.DataFrame({name: list(values) for name, values in self.columns.items()})

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the finding on the given axes, or on new ones."""

    def to_dict(self) -> dict[str, Any]:
        """Verdict, table, next steps and notes in the types of JSON; None for numbers that are not finite."""
        return {
            "kind": type(self).__name__,
            "verdict": self.verdict,
            "table": {name: [_plain(value) for value in values] for name, values in self.columns.items()},
            "next_steps": list(self.next_steps),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        parts = [textwrap.fill(self.verdict, _WIDTH), _text_table(self.columns)]
        if self.next_steps:
            bullet = textwrap.TextWrapper(_WIDTH, initial_indent="  - ", subsequent_indent="    ")
            parts.append("\n".join(["Next steps:", *map(bullet.fill, self.next_steps)]))
        parts += [textwrap.fill(f"Note: {note}.", _WIDTH) for note in self.notes]
        return "\n\n".join(part for part in parts if part)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in self.columns)
        n = min(_length(self.columns), _ROWS)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(values[i]))}</td>" for values in self.columns.values()) + "</tr>"
            for i in range(n)
        )
        left = _length(self.columns) - n
        more = f"<p>and {left} more rows</p>" if left else ""
        steps = "".join(f"<li>{escape(step)}</li>" for step in self.next_steps)
        steps = f"<p>Next steps:</p><ul>{steps}</ul>" if steps else ""
        notes = "".join(f"<p><small>Note: {escape(note)}.</small></p>" for note in self.notes)
        table = f"<table><tr>{head}</tr>{rows}</table>" if self.columns else ""
        return f"<div><p><b>{escape(self.verdict)}</b></p>{table}{more}{steps}{notes}</div>"


def draw_changes(
    ax: Axes | None, height: float, changes: Mapping[str, float], errors: Mapping[str, float], marked: str, xlabel: str
) -> Axes:
    """Bars of changes of a score with two standard errors, one of them marked."""
    ax = axes_of(ax, (6.4, 1.2 + height * len(changes)))
    whiskers = 2 * np.array([errors[name] for name in changes])
    colours = ["vermilion" if name == marked else "blue" for name in changes]
    bars(ax, list(changes), list(changes.values()), whiskers, colour=colours)
    ax.set(xlabel=f"{xlabel}\n(bars: two standard errors)")
    return ax


def _length(columns: Mapping[str, Sequence[Any] | np.ndarray]) -> int:
    return max((len(values) for values in columns.values()), default=0)


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _shown(value: Any) -> str:
    """A cell of the printed table: four digits, empty where there is no value."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _text_table(columns: Mapping[str, Sequence[Any] | np.ndarray]) -> str:
    n = min(_length(columns), _ROWS)
    if n == 0:
        return ""
    cells = {name: [_shown(values[i]) for i in range(n)] for name, values in columns.items()}
    widths = {name: max(len(name), *map(len, column)) for name, column in cells.items()}
    left = {name for name, values in columns.items() if any(isinstance(value, str) for value in values)}

    def row(values: Mapping[str, str]) -> str:
        padded = (f"{values[c]:<{widths[c]}}" if c in left else f"{values[c]:>{widths[c]}}" for c in columns)
        return "  ".join(padded).rstrip()

    lines = [row({name: name.replace("_", " ") for name in columns})]
    lines.append("-" * (sum(widths.values()) + 2 * (len(widths) - 1)))
    lines += [row({name: cells[name][i] for name in columns}) for i in range(n)]
    if (more := _length(columns) - n) > 0:
        lines.append(f"... and {more} more rows")
    return "\n".join(lines)
