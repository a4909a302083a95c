"""Coverage of 95% intervals; ``python -m benchmarks.coverage`` writes the table of the docs.

Of 500 studies an interval that covers 95% covers between 93% and 97%, but for one case in twenty-five. Cases run in
processes of their own, each on one thread. ``--only forest`` runs the cases whose call has this text in it, and keeps
the other lines of the table.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.coverage.cases import CASES, share

OUT = Path(__file__).parents[2] / "docs" / "figures" / "causal_coverage.csv"
HEADER = ("intervals", "studies", "rows", "coverage")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--studies", type=int, default=500, help="simulated studies of each case")
    arguments.add_argument("--jobs", type=int, default=2, help="processes")
    arguments.add_argument("--only", default="", help="text in the calls of the cases that are run")
    given = arguments.parse_args()
    chosen = [number for number, case in enumerate(CASES) if given.only in case.method]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, mp_context=context) as pool:
        found = dict(zip(chosen, pool.map(share, chosen, [given.studies] * len(chosen)), strict=True))
    if not OUT.exists():
        OUT.touch()
    with OUT.open(newline="", encoding="utf-8") as file:
        before = {tuple(line[:3]): line[3] for line in csv.reader(file)}
    lines = []
    for number, case in enumerate(CASES):
        key = (case.method, case.studies, str(case.rows))
        if number in found or key in before:
            lines.append((*key, f"{found[number]:.3f}" if number in found else before[key]))
    with OUT.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *lines])


if __name__ == "__main__":
    main()
