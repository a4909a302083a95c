"""The frame of the commands that work on a table: its folder, the work, the files, the printed result."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from epicycle.automl._budget import keep_no_freed_memory
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder
from epicycle.cli._report import files_of
from epicycle.cli._train import default_folder
from epicycle.report._plain import plain


def run_table_command(
    function: Callable[..., Any],
    data: str,
    ending: str,
    lines_of: Callable[[Any], Iterable[str]],
    *,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Work on a table, write the folder, whose name has the ending by default, and print the result."""
    keep_no_freed_memory()
    folder = check_folder(out if out is not None else f"{default_folder(data)}-{ending}")
    run = function(data, progress=progress_of(as_json), **options)
    run.save(folder, more=files_of(run.record()))
    if as_json:
        print(json.dumps({**plain(run.metrics()), "folder": os.fspath(folder)}, indent=2))
    else:
        print_lines([*lines_of(run), f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}"])


def progress_of(as_json: bool) -> Any:
    """Where progress is told: nowhere beside JSON."""
    return False if as_json else partial(print, flush=True)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text, each wrapped to the terminal."""
    width = terminal_width(sys.stdout)
    print()
    for line in lines:
        print(wrapped(line, width))
