"""``epicycle effect``: estimate an effect in a table, print the conclusion and its doubts, write the folder."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from epicycle.automl import EffectRun, effect_table
from epicycle.automl._budget import keep_no_freed_memory
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder
from epicycle.cli._report import files_of
from epicycle.cli._train import default_folder


def run_effect(data: str, *, out: Path | None, as_json: bool, **options: Any) -> None:
    """Estimate, write the folder, print the result."""
    keep_no_freed_memory()
    folder = check_folder(out if out is not None else f"{default_folder(data)}-effect")
    run = effect_table(data, progress=False if as_json else partial(print, flush=True), **options)
    run.save(folder, more=files_of(run.record()))
    if as_json:
        print(json.dumps({**run.metrics(), "folder": os.fspath(folder)}, indent=2))
    else:
        print_run(run, folder)


def print_run(run: EffectRun, folder: Path) -> None:
    """Print the conclusion, the estimates side by side, and the doubts."""
    width = terminal_width(sys.stdout)

    def say(text: str) -> None:
        print(wrapped(text, width))

    print()
    say(run.verdict)
    for words in run.identification["words"]:
        say(f"  - {words}")
    for row in run.estimates:
        say(f"{row['name']:<16} {row['effect']:>10.4g}   {row['lower']:.4g} to {row['upper']:.4g}   {row['words']}")
    for line in run.contrast_lines():
        say(line)
    for test in run.refutations:
        say(f"{'passed' if test['passed'] else 'FAILED'} {test['name']}: {test['verdict']}")
    say("The conclusion is wrong if one of these holds:")
    for doubt in run.doubts:
        say(f"  - {doubt}")
    say(f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}")
