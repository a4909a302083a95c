"""Principal components of a Parquet set larger than the memory that the fit may use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks import out_of_core
from benchmarks.tasks.out_of_core import MEMORY, READ, SCAN, against_reading_and_fitting, load, peak_megabytes, read


def make(directory: Path, quick: bool) -> Data:
    return out_of_core.make(directory, quick)


def imported(data: Data) -> Data:
    from epicycle import PCA, scan  # noqa: F401 - import time is another task's

    return data


def fit_memory(data: Data) -> Solution:
    from epicycle import PCA

    return as_solution(PCA(5).fit(data["X"]))


def fit_scan(data: Data) -> Solution:
    from epicycle import PCA, scan

    return as_solution(PCA(5).fit(scan([str(path) for path in data["files"]], target="y")))


def as_solution(model: Any) -> Solution:
    return {"components": model.components_, "variance": model.explained_variance_}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Difference of the variances of the two fits: blocks differ, so sums are rounded differently."""
    if not {MEMORY, SCAN} <= solutions.keys():
        return {}
    memory, scan = solutions[MEMORY]["variance"], solutions[SCAN]["variance"]
    return {SCAN: {"distance from in memory": float(np.abs(scan / memory - 1).max())}}


TASK = Task(
    name="pca_out_of_core",
    title="PCA of 20 million x 20 in ten Parquet files, five components",
    description="""\
float32, as in the task out_of_core: every batch decoded and dropped; a fit to arrays in memory; and
`PCA(5).fit(ep.scan(files, target="y"))`, each time in a new process, whose whole memory counts.""",
    make=make,
    implementations=(
        Implementation(READ, "baseline", read),
        Implementation(MEMORY, "baseline", fit_memory, setup=load),
        Implementation(SCAN, "epicycle", fit_scan, setup=imported, fresh=True),
    ),
    quality=quality,
    tolerance=1e-6,
    targets=(
        Target("time over reading once plus the fit in memory", against_reading_and_fitting, at_most=1.5),
        Target("peak memory of the process in MB", peak_megabytes, at_most=600.0),
    ),
)
