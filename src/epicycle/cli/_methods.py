"""``epicycle methods``: what exists, straight from the code."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from epicycle.core._exceptions import ParameterError
from epicycle.core.estimator._estimator import MethodInfo, methods

__all__ = ["print_methods"]


def print_methods(family: str | None, *, as_json: bool) -> None:
    """Print every method, or those of one family: a table on a terminal, tab-separated lines into a pipe."""
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

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("method", "what it is", "solvers", "engines", "certificate"):
        table.add_column(column, overflow="fold", no_wrap=column == "method")
    for m in found:
        row = (m.name, m.summary, ", ".join(m.solvers), ", ".join(m.engines), m.certificate)
        table.add_row(*(Text(cell, style="bold" if i == 0 else "") for i, cell in enumerate(row)))
    Console().print(table)
