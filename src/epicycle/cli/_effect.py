"""``epicycle effect``: estimate an effect in a table, print the conclusion and its doubts, write the folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epicycle.automl import EffectRun, effect_table
from epicycle.cli._table_command import run_table_command


def run_effect(data: str, **options: Any) -> None:
    """Estimate, write the folder, print the result."""
    run_table_command(effect_table, data, "effect", lines_of, **options)


def lines_of(run: EffectRun) -> Iterator[str]:
    """The conclusion, the estimates side by side, and the doubts."""
    yield run.verdict
    for words in run.identification["words"]:
        yield f"  - {words}"
    for row in run.estimates:
        yield f"{row['name']:<16} {row['effect']:>10.4g}   {row['lower']:.4g} to {row['upper']:.4g}   {row['words']}"
    yield from run.contrast_lines()
    for test in run.refutations:
        yield f"{'passed' if test['passed'] else 'FAILED'} {test['name']}: {test['verdict']}"
    yield "The conclusion is wrong if one of these holds:"
    for doubt in run.doubts:
        yield f"  - {doubt}"
