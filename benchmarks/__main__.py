"""``python -m benchmarks [task ...] [--quick] [--repeats N] [--threads 2] [--list] [--write]``"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from benchmarks import machine, report
from benchmarks.runner import run_task
from benchmarks.tasks import all_tasks


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="epicycle against the best peers")
    parser.add_argument("tasks", nargs="*", metavar="task", help="tasks to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="small data: a check that all runs, not a measurement")
    parser.add_argument("--repeats", type=_positive, default=5, help="timed rounds after one warm-up (default 5)")
    parser.add_argument("--threads", type=_positive, default=2, help="threads of every implementation (default 2)")
    parser.add_argument("--list", action="store_true", help="list the tasks and stop")
    parser.add_argument("--write", action="store_true", help=f"write the tables into {report.RESULTS.name}")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, got {text}")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run tasks and print their tables; 1 when an implementation of ours gave no measurement."""
    cli = parser()
    options = cli.parse_args(arguments)
    tasks = all_tasks()
    if options.list:
        print("\n".join(f"{task.name:22} {task.title}" for task in tasks.values()))
        return 0
    if unknown := [name for name in options.tasks if name not in tasks]:
        cli.error(f"unknown task {', '.join(unknown)}; there are {', '.join(tasks)}")
    if options.write and options.quick:
        cli.error("--quick is no measurement: it is not written")
    chosen = options.tasks or list(tasks)
    about = machine.describe()
    sections: dict[str, str] = {}
    failed = False
    for name in chosen:
        task = tasks[name]
        flags = f" --repeats {options.repeats} --threads {options.threads}{' --quick' * options.quick}"
        command = f"python -m benchmarks {name}{flags}"
        outcomes = run_task(
            task,
            quick=options.quick,
            repeats=options.repeats,
            threads=options.threads,
            log=lambda message: print(message, file=sys.stderr, flush=True),
        )
        sections[name] = report.section(task, outcomes, command=command, machine=about, quick=options.quick)
        print(sections[name], flush=True)
        report.save_json(task, outcomes, command=command, machine=about, quick=options.quick)
        if options.write:  # after every task: a long run that is interrupted keeps what it has
            report.update_results(report.RESULTS, sections, list(tasks))
        failed |= any(o.role == "epicycle" and o.failure for o in outcomes.values())
    return int(failed)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwind, so that children and files are cleared away
    sys.exit(main())
