"""A mixture of normal distributions from Parquet files that are larger than the memory that the fit may use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task

P, K, N_FILES = 8, 4, 10
SCAN, MEMORY = "epicycle, from the files", "epicycle, in memory"


def make(directory: Path, quick: bool) -> Data:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = (2_000_000 if quick else 20_000_000) // N_FILES
    rng = np.random.default_rng(8)
    means = 3 * rng.standard_normal((K, P), dtype=np.float32)
    files = []
    for i in range(N_FILES):
        X = means[rng.integers(0, K, rows)] + rng.standard_normal((rows, P), dtype=np.float32)
        files.append(str(directory / f"part-{i:02d}.parquet"))
        pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(P)}), files[-1])
    return {"files": np.array(files), "means": means}


def fitted(X: object, means: np.ndarray) -> Solution:
    from epicycle import GaussianMixture

    start = {"means_init": means + 0.5, "weights_init": np.full(K, 1 / K), "init_params": "k-means++"}
    start["precisions_init"] = np.tile(np.eye(P), (K, 1, 1))
    model = GaussianMixture(K, max_iter=20, random_state=0, **start).fit(X)
    return {"means": np.asarray(model.means_, dtype=np.float64), "n_iter": np.array(model.n_iter_)}


def fit_scan(data: Data) -> Solution:
    from epicycle import scan

    return fitted(scan([str(path) for path in data["files"]]), data["means"])


def imported(data: Data) -> Data:
    from epicycle import GaussianMixture, scan  # noqa: F401 - import time is another task's

    return data


def load(data: Data) -> Data:
    import pyarrow.parquet as pq

    parts = [pq.read_table(str(path)) for path in data["files"]]
    X = np.concatenate([np.column_stack([part[f"x{j}"].to_numpy() for j in range(P)]) for part in parts])
    return {"X": X, "means": data["means"]}


def fit_memory(data: Data) -> Solution:
    return fitted(data["X"], data["means"])


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Difference of the two fits: blocks differ, so sums are rounded differently."""
    if not {MEMORY, SCAN} <= solutions.keys():
        return {}
    distance = float(np.abs(solutions[SCAN]["means"] - solutions[MEMORY]["means"]).max())
    return {SCAN: {"largest difference of the means from in memory": distance}}


def peak_megabytes(outcomes: Mapping[str, Outcome]) -> float:
    return max(outcomes[SCAN].peak_rss, default=np.nan) / 1e6


TASK = Task(
    name="mixture_out_of_core",
    title="GaussianMixture on 20 million x 8 in ten Parquet files, 4 components",
    description="""\
float32, written with pyarrow's defaults; each fit from files is a new process, and each step of EM reads them once. The
promise on memory is about all of that process, interpreter and libraries included.""",
    make=make,
    implementations=(
        Implementation(MEMORY, "baseline", fit_memory, setup=load),
        Implementation(SCAN, "epicycle", fit_scan, setup=imported, fresh=True),
    ),
    quality=quality,
    tolerance=1e-5,
    targets=(Target("peak memory of the process in MB", peak_megabytes, at_most=1000.0),),
)
