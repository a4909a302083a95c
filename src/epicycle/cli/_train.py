"""``epicycle train``: train on a table, print the leaderboard and the test score, write the folder."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from epicycle.automl import TrainingRun, read_table, train, train_targets
from epicycle.automl._budget import PartlySpent, keep_no_freed_memory
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder
from epicycle.automl._search_state import STATE_FILE
from epicycle.automl.checks._part_checks import ACROSS
from epicycle.cli._pdf import browser
from epicycle.cli._report import files_of, report_files
from epicycle.core._exceptions import DataFileError, EpicycleError, ParameterError
from epicycle.plot import short
from epicycle.report._plain import plain
from epicycle.report._wording import interval_words, next_steps, restriction_words

#: Data set and seconds of the demo, and the default time limit.
DEMO, DEMO_SECONDS, SECONDS = "breast_cancer", 10.0, 60.0


def run_training(
    data: str | None,
    *,
    target: Sequence[str] = (),
    task: str = "auto",
    time: float | None,
    out: Path | None,
    as_json: bool,
    force: bool = False,
    resume: Path | None = None,
    pdf: bool = False,
    began: float,
    **options: Any,
) -> None:
    """Train, write the folder, print; without `force` a folder that was asked for and holds files is kept.

    The time counts from `began`, when the command started.
    """
    if len(target) > 1 or task == "multilabel" or (target and "," in target[0]):
        names = targets_of(source=DEMO if data is None else data, given=target, header=options.get("header", True))
        if len(names) > 1 or task == "multilabel":
            _run_targets(
                data,
                names,
                task=task,
                time=time,
                out=out,
                as_json=as_json,
                force=force,
                resume=resume,
                pdf=pdf,
                began=began,
                **options,
            )
            return
    options |= {"target": target[0] if target else None, "task": task}
    printer = browser() if pdf else None
    if resume is not None and out is not None:
        raise ParameterError(f"--out {out}: the run goes on in the folder of --resume; expected one of the two")
    keep_no_freed_memory()
    seconds = time if time is not None else DEMO_SECONDS if data is None else SECONDS
    source = DEMO if data is None else data
    given = out if resume is None else resume
    folder = check_folder(given if given is not None else default_folder(source))
    _refuse_files(out, folder, force)
    existed = folder.exists()
    if resume is None:
        with suppress(OSError):  # the search of another run
            (folder / STATE_FILE).unlink()
    progress = False if as_json else partial(print, flush=True)
    try:
        limit = PartlySpent.since(began, seconds)
        run = train(source, time=limit, progress=progress, resume=folder, **options)
        run.save(folder, more=report_files(run, pdf=printer))
    except KeyboardInterrupt:
        if (folder / STATE_FILE).exists():
            print(f"epicycle: interrupted; --resume {folder} goes on with this search", file=sys.stderr)
        raise
    except EpicycleError:
        if not existed:  # the results could not be written
            with suppress(OSError):
                (folder / STATE_FILE).unlink(missing_ok=True)
                folder.rmdir()
        raise
    if as_json:
        print(json.dumps({**plain(run.metrics()), "folder": os.fspath(folder)}, indent=2))
    else:
        print_run(run, folder)


def _refuse_files(out: Path | None, folder: Path, force: bool) -> None:
    if out is not None and not force and folder.exists() and any(folder.iterdir()):
        raise DataFileError(
            f"--out {out}: holds files already; --force replaces those of a run, another name keeps them"
        )


def targets_of(source: str, given: Sequence[str], header: bool = True) -> list[str]:
    """The names of targets, each argument one name or several with commas between; a column may have a comma."""
    if len(given) == 1 and source != "-" and given[0] in read_table(source, header=header).column_names:
        return list(given)
    return [name.strip() for names in given for name in names.split(",") if name.strip()]


def _run_targets(
    data: str | None,
    targets: Sequence[str],
    *,
    time: float | None,
    out: Path | None,
    as_json: bool,
    force: bool,
    resume: Path | None,
    pdf: bool,
    began: float,
    quantile: float | None = None,
    group_report: str | None = None,
    **options: Any,
) -> None:
    """The same for several targets: a page of all, and a folder for each."""
    printer = browser() if pdf else None
    for name, value in (("--resume", resume), ("--quantile", quantile), ("--group-report", group_report)):
        if value is not None:
            raise ParameterError(f"{name}: for one target; {len(targets)} were given")
    keep_no_freed_memory()
    source = DEMO if data is None else data
    folder = check_folder(out if out is not None else default_folder(source))
    _refuse_files(out, folder, force)
    seconds = time if time is not None else SECONDS
    run = train_targets(
        source,
        targets,
        time=PartlySpent.since(began, seconds),
        progress=False if as_json else partial(print, flush=True),
        **options,
    )
    more: dict[str, Callable[[Path], None]] = dict(files_of(run.record(), pdf=printer))
    for name, own in run.folders.items():
        more |= {f"{own}/{file}": write for file, write in report_files(run.runs[name], pdf=printer).items()}
    run.save(folder, more=more)
    if as_json:
        print(json.dumps({**plain(run.metrics()), "folder": os.fspath(folder)}, indent=2))
        return
    width = terminal_width(sys.stdout)
    print()
    for line in str(run).splitlines():
        print(wrapped(line, width))
    for name, own in run.folders.items():
        print(wrapped(f"  {name}: {folder / own}", width))
    print(wrapped(f"{run.seconds:.1f} s; written to {folder}: report.html shows all targets", width))


def default_folder(source: str) -> str:
    """epicycle-NAME, with the name of the data."""
    name = "run" if source == "-" else Path(source).name.partition(".")[0] or "run"
    return f"epicycle-{re.sub(r'[^A-Za-z0-9_-]+', '-', name)}"


def print_run(run: TrainingRun, folder: Path) -> None:
    """Print the leaderboard, the test score and the next steps."""
    print()
    width = terminal_width(sys.stdout)

    def say(text: str) -> None:
        print(wrapped(text, width))

    for line in leaderboard_lines(run, width=width):
        print(line)
    t = run.test
    print()
    say(
        f"{run.metric.label} on {t.n:,} test rows: {t.score:.4g}, between {t.lower:.4g} and {t.upper:.4g} at "
        f"{t.level:.0%} ({t.method}); {run.baseline['name']}: {run.baseline_test:.4g}"
    )
    if run.interval is not None:
        more = "" if "quantile" in run.interval else " epicycle predict --interval gives them."
        say(interval_words(run.interval) + more)
    if run.without_duplicates is not None:
        with_them = next((w.text for w in run.warnings if w.kind == ACROSS), None)
        say(with_them or f"without the test rows that are also training rows: {run.without_duplicates.score:.4g}")
    say(f"certificate: {run.certificate}")
    if run.certificate.kind != "none" and run.certificate.holds and run.certificate.meaning:
        say(f"  {run.certificate.meaning}")
    if run.restriction is not None:
        say(restriction_words(run.restriction, run.leaderboard[0]["method"]))
    # Those of the page; its warnings were printed when they came up.
    if steps := next_steps({**run.record(), "warnings": []}):
        say("next steps:")
        for step in steps:
            say(f"  - {step}")
    say(f"{run.seconds:.1f} s; written to {folder}: {', '.join(sorted(os.listdir(folder)))}")


#: Columns of the leaderboard that a narrow terminal does without, the first to go first.
_SPARE = ("seconds", "rows", "std err", "folds")
#: Columns that the name of a candidate has at least.
_NAME = 24


def leaderboard_lines(run: TrainingRun, n_rows: int = 8, width: int | None = None) -> list[str]:
    """The best candidates, one in each line of at most `width` columns, and the baseline."""
    rows = [row for row in run.leaderboard if row["score_mean"] is not None][:n_rows]
    table = {
        "model": [row["name"] for row in rows],
        run.metric.name: [f"{row['score_mean']:.4g}" for row in rows],
        "std err": ["" if row["score_se"] is None else f"{row['score_se']:.2g}" for row in rows],
        "folds": [str(row["n_folds"]) for row in rows],
        "rows": [f"{row['rows']:,}" for row in rows],
        "seconds": [f"{row['seconds']:.2f}" for row in rows],
        "": [row["status"] for row in rows],
    }
    last = {"model": f"baseline: {run.baseline['name']}", run.metric.name: f"{run.baseline['score_mean']:.4g}"}
    for name, cells in table.items():
        cells.append(last.get(name, ""))
    for spare in _SPARE:
        if width is not None and width - _taken(table) < _NAME:
            del table[spare]
    if width is not None and (over := _NAME + _taken(table) - width) > 0:
        room = max(max(map(len, table[""])) - over, 8)
        table[""] = [short(status, room) for status in table[""]]
    names = table.pop("model")
    room = 64 if width is None else max(min(64, width - _taken(table)), _NAME)
    first = max(len("model"), *(len(short(name, room)) for name in names))
    lines = []
    for number, name in enumerate(["model", *names]):
        cells = [(title, cells[number - 1] if number else title) for title, cells in table.items()]
        middle = "  ".join(f"{cell:>{max(map(len, [title, *table[title]]))}}" for title, cell in cells[:-1])
        line = f"{short(name, room):<{first}}  {middle}  {cells[-1][1]}".rstrip()
        lines.append(line if width is None else short(line, width))
    return lines


def _taken(table: dict[str, list[str]]) -> int:
    """Columns that all but the names take."""
    return sum(2 + max(map(len, [title, *cells])) for title, cells in table.items() if title != "model")
