"""A Parquet set larger than the memory that the fit may use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task

N_FEATURES = 20
N_FILES = 10
READ, MEMORY, SCAN = "read the files (pyarrow)", "epicycle, in memory", "epicycle, from the files"


def make(directory: Path, quick: bool) -> Data:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = (2_000_000 if quick else 20_000_000) // N_FILES
    rng = np.random.default_rng(6)
    w = rng.standard_normal(N_FEATURES, dtype=np.float32)
    files = []
    for i in range(N_FILES):
        X = rng.standard_normal((N_FEATURES, rows), dtype=np.float32)  # a row per column of the file
        X += np.arange(N_FEATURES, dtype=np.float32)[:, None] / 10
        y = w @ X + rng.standard_normal(rows, dtype=np.float32)
        columns = {f"x{j}": X[j] for j in range(N_FEATURES)} | {"y": y}
        files.append(str(directory / f"part-{i:02d}.parquet"))
        pq.write_table(pa.table(columns), files[-1])
    return {"files": np.array(files)}


def read(data: Data) -> None:
    """Decode every batch once and drop it."""
    import pyarrow.parquet as pq

    for path in data["files"]:
        with pq.ParquetFile(str(path)) as file:
            for _ in file.iter_batches():
                pass


def load(data: Data) -> Data:
    """The whole set as arrays, one file at a time."""
    import pyarrow.parquet as pq

    n = sum(pq.read_metadata(str(path)).num_rows for path in data["files"])
    X, y, start = np.empty((n, N_FEATURES), dtype=np.float32), np.empty(n, dtype=np.float32), 0
    for path in data["files"]:
        table = pq.read_table(str(path))
        rows = slice(start, start + table.num_rows)
        for j in range(N_FEATURES):
            X[rows, j] = table[f"x{j}"].to_numpy()
        y[rows] = table["y"].to_numpy()
        start = rows.stop
    return {"X": X, "y": y}


def fit_memory(data: Data) -> Solution:
    from epicycle import LinearRegression

    return as_solution(LinearRegression().fit(data["X"], data["y"]))


def imported(data: Data) -> Data:
    from epicycle import LinearRegression, scan  # noqa: F401 - import time is another task's

    return data


def fit_scan(data: Data) -> Solution:
    from epicycle import LinearRegression, scan

    return as_solution(LinearRegression().fit(scan([str(path) for path in data["files"]], target="y")))


def as_solution(model: Any) -> Solution:
    return {"coef": np.append(model.coef_, model.intercept_)}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Difference of the two fits: blocks differ, so sums are rounded differently."""
    if not {MEMORY, SCAN} <= solutions.keys():
        return {}
    memory, scan = solutions[MEMORY]["coef"], solutions[SCAN]["coef"]
    distance = float(np.linalg.norm(scan - memory) / np.linalg.norm(memory))
    return {SCAN: {"distance from in memory": distance}}


def against_reading_and_fitting(outcomes: Mapping[str, Outcome]) -> float:
    return outcomes[SCAN].median / (outcomes[READ].median + outcomes[MEMORY].median)


def peak_megabytes(outcomes: Mapping[str, Outcome]) -> float:
    return max(outcomes[SCAN].peak_rss, default=np.nan) / 1e6


TASK = Task(
    name="out_of_core",
    title="LinearRegression on 20 million x 20 in ten Parquet files",
    description="""\
float32, written with pyarrow's defaults, in the page cache when read. The first line decodes every batch and drops it;
the second fits arrays that are already in memory; the third is `LinearRegression().fit(ep.scan(files, target="y"))`,
each time in a new process. The promise on memory is about all of that process, interpreter and libraries included.""",
    make=make,
    implementations=(
        Implementation(READ, "baseline", read),
        Implementation(MEMORY, "baseline", fit_memory, setup=load),
        Implementation(SCAN, "epicycle", fit_scan, setup=imported, fresh=True),
    ),
    quality=quality,
    tolerance=1e-10,
    targets=(
        Target("time over reading once plus the fit in memory", against_reading_and_fitting, at_most=1.5),
        Target("peak memory of the process in MB", peak_megabytes, at_most=600.0),
    ),
)
