"""``epicycle generate``: draw synthetic rows like those of a table, write them and their report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epicycle import report
from epicycle.automl import GenerationRun, generate_table
from epicycle.automl._budget import keep_no_freed_memory
from epicycle.cli._predict import bytes_of, form_of
from epicycle.cli._table_commands import print_lines, progress_of
from epicycle.cli._train import default_folder
from epicycle.core._exceptions import ParameterError
from epicycle.io._atomic import check_target, write_atomically


def run_generation(
    data: str, *, out: str | None, page: Path | None, save: Path | None, as_json: bool, **options: Any
) -> None:
    """Draw, write the rows, the page and the generator, print the result."""
    keep_no_freed_memory()
    target = Path(out if out is not None else f"{default_folder(data).removeprefix('epicycle-')}-synthetic.csv")
    form = form_of(os.fspath(target))
    shown = page if page is not None else target.with_suffix(".html")
    if len({path.absolute() for path in (target, shown, save) if path is not None}) < (2 if save is None else 3):
        raise ParameterError(f"--out {target}, --report {shown}: the same file; expected different ones")
    files = [check_target(path) for path in (target, shown)]
    run = generate_table(data, progress=progress_of(as_json), **options)
    record = run.record()
    write_atomically(files[0], bytes_of(run.table, form))
    report.write(record, files[1])
    if save is not None:
        run.model.save(save)
    written = [os.fspath(path) for path in (target, shown, save) if path is not None]
    if as_json:
        print(json.dumps({**run.metrics(), "written": written}, indent=2))
    else:
        print_lines([*lines_of(run), f"written: {', '.join(written)}"])


def lines_of(run: GenerationRun) -> Iterator[str]:
    """The verdict, the columns and pairs that differ most, and what the rows give away."""
    yield run.verdict
    for row in sorted(run.marginals, key=lambda row: -row["distance"])[:5]:
        yield f"  {row['name']}: distance {row['distance']:.3f}, of held-out real rows {row['noise']:.3f}"
    for pair in run.pairs[:3]:
        names = " and ".join(pair["names"])
        yield f"  {names}: association {pair['real']:.2f} in real rows, {pair['drawn']:.2f} in drawn ones"
    if run.no_utility:
        yield f"nothing was learnt from the rows: {run.no_utility}"
    told = run.privacy
    yield (
        f"copies of real rows: {told['copies']:,} of {told['rows']:,} (of held-out real rows {told['held_copied']:.1%})"
    )
