"""Coverage of 95% intervals; ``python -m benchmarks.coverage`` writes the table of the docs.

Of 500 studies an interval that covers 95% covers between 93% and 97%, but for one case in twenty-five. Cases run in
processes of their own, each on one thread.
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
    given = arguments.parse_args()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, mp_context=context) as pool:
        found = list(pool.map(share, range(len(CASES)), [given.studies] * len(CASES)))
    with OUT.open("w", newline="", encoding="utf-8") as file:
        lines = [(c.method, c.studies, c.rows, f"{value:.3f}") for c, value in zip(CASES, found, strict=True)]
        csv.writer(file, lineterminator="\n").writerows([HEADER, *lines])


if __name__ == "__main__":
    main()
