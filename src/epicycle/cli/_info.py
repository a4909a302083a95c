"""``epicycle methods`` and ``epicycle show``: the list of methods, and the contents of a model file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from epicycle.core._exceptions import ParameterError
from epicycle.core._memory import bytes_in_words
from epicycle.core.estimator._catalogue import MethodInfo, methods
from epicycle.io import ModelDescription, describe


def print_methods(family: str | None, *, as_json: bool) -> None:
    """Print all methods, or those of one family: a table on a terminal, tab-separated lines into a pipe."""
    found = methods(family, functions=True)
    if not found:
        families = sorted({m.family for m in methods(functions=True)})
        raise ParameterError(f"--family {family}: expected one of {', '.join(families)}")
    if as_json:
        print(json.dumps([asdict(m) for m in found], indent=2))
    elif sys.stdout.isatty():
        _print_table(found)
    else:
        print("name", "family", "summary", "solvers", "engines", "certificate", sep="\t")
        for m in found:
            print(m.name, m.family, m.summary, ",".join(m.solvers), ",".join(m.engines), m.certificate, sep="\t")


def _print_table(found: list[MethodInfo]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    cells = {
        "method": [m.name for m in found],
        "summary": [m.summary for m in found],
        "solvers": [", ".join(m.solvers) for m in found],
        "engines": [", ".join(m.engines) for m in found],
        "certificate": [m.certificate for m in found],
    }
    chosen = _columns_that_fit(cells, console.width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, wide in chosen.items():
        table.add_column(name, overflow="fold", no_wrap=name == "method", width=wide)
    for row in zip(*(cells[name] for name in chosen), strict=True):
        table.add_row(*(Text(cell, style="bold" if i == 0 else "") for i, cell in enumerate(row)))
    console.print(table)
    if left := [name for name in cells if name not in chosen]:
        console.print(Text(f"{' and '.join(left)}: on a wider terminal, or with --json"))


#: Columns of text that a summary has at least, and those around a column.
_SUMMARY, _BETWEEN = 32, 3


def _columns_that_fit(cells: dict[str, list[str]], width: int) -> dict[str, int]:
    """The columns for which there is room without a word being broken, and their widths.

    Each is as wide as its longest word at least; what is left goes to the columns that are furthest from holding their
    longest text in one line.
    """
    least = {
        name: max(len(word) for cell in [name, *column] for word in cell.split()) for name, column in cells.items()
    }
    least["method"] = max(map(len, cells["method"]))
    least["summary"] = max(least["summary"], _SUMMARY)
    chosen = {"method", "summary"}
    for name in ("certificate", "engines", "solvers"):
        if sum(least[one] + _BETWEEN for one in (*chosen, name)) <= width:
            chosen.add(name)
    widths = {name: least[name] for name in cells if name in chosen}
    wanted = {name: max(map(len, cells[name])) for name in widths}
    for _ in range(width - sum(widths.values()) - _BETWEEN * len(widths)):
        furthest = max(widths, key=lambda name: wanted[name] - widths[name])
        if wanted[furthest] <= widths[furthest]:
            break
        widths[furthest] += 1
    return widths


def print_model(path: Path, *, as_json: bool) -> None:
    """Print the class, parameters, certificates and arrays of the model file `path`."""
    model = describe(path)
    if as_json:
        print(json.dumps(_document(model), indent=2, default=repr))
        return
    for title, lines in _sections(model):
        print(f"{title:<13}{lines[0]}")
        for line in lines[1:]:
            print(f"{'':<13}{line}")


def _document(model: ModelDescription) -> dict[str, Any]:
    document = asdict(model)
    for place, certificate in model.certificates.items():
        document["certificates"][place]["holds"] = bool(certificate.holds)
    return document


def _sections(model: ModelDescription) -> Iterator[tuple[str, list[str]]]:
    """Titles and their lines; a section without content is left out."""
    sections = {
        "model": [model.class_name],
        "parameters": [f"{name}={value!r}" for name, value in model.parameters.items()],
        "parts": _columns([(place, cls) for place, cls in model.parts.items()]),
        "certificate": _certificates(model),
        "fitted": _columns([(name,) for name in model.fitted]),
        "arrays": _columns(
            [(a.name, a.dtype, "x".join(map(str, a.shape)) or "scalar", bytes_in_words(a.nbytes)) for a in model.arrays]
        ),
        "file": [f"{model.path}, {bytes_in_words(model.file_bytes)}, format {model.format_version}"],
        "written by": [", ".join(f"{name} {version}" for name, version in model.versions.items())],
    }
    return ((title, lines) for title, lines in sections.items() if lines)


def _certificates(model: ModelDescription) -> list[str]:
    lines = []
    for place, certificate in model.certificates.items():
        lines.append(str(certificate) if place == "model" else f"{place}: {certificate}")
        if certificate.kind != "none" and certificate.holds and certificate.meaning:
            lines.append(f"  {certificate.meaning}")
    return lines


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as lines with aligned columns."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
