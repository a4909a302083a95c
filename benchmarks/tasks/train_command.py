"""`epicycle train` on a file of 50,000 rows: the first score, the whole run, the memory; and `predict` on many rows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.task import Data, Implementation, Measured, Outcome, Quality, Solution, Target, Task

BUDGET = 30.0
FIRST, WHOLE, PREDICT_MEMORY = "first score, s", "run / budget", "memory of 10x rows"
TRAIN_MEMORY, FIXED_MEMORY = "memory / data", "memory of 500 rows, MiB"

_TRAIN = """
import json, sys, time
began = time.perf_counter()
import resource
import epicycle.cli._train
from epicycle import train
from epicycle.automl._budget import keep_no_freed_memory
keep_no_freed_memory()
base, first = 4096 * int(open("/proc/self/statm").read().split()[1]), []
started = time.perf_counter()
def say(line):
    if "leads" in line:
        first.append(time.perf_counter() - began)
run = train(sys.argv[1], time=float(sys.argv[2]), progress=say)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"first": first[0], "whole": time.perf_counter() - started, "memory": peak - base}))
run.save(sys.argv[3])
"""
_PREDICT = """
import json, sys, resource
from epicycle.cli import main
assert main(["predict", sys.argv[1], sys.argv[2], "--out", sys.argv[3]]) == 0
print(json.dumps({"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def make(directory: Path, quick: bool) -> Data:
    import pyarrow as pa
    import pyarrow.csv

    rng = np.random.default_rng(0)

    def table(n: int) -> pa.Table:
        X = rng.normal(size=(n, 24)).round(4)
        levels = {f"c{j}": rng.integers(0, 4 + 6 * j, n) for j in range(5)}
        y = X[:, 0] * X[:, 1] + X[:, 2] + (levels["c0"] == 1) + rng.normal(size=n)
        text = {name: pa.array([f"level {v}" for v in values]) for name, values in levels.items()}
        return pa.table({**{f"x{j}": X[:, j] for j in range(24)}, **text, "y": np.where(y > 0.3, "a", "b")})

    whole = table(50_000)
    pa.csv.write_csv(whole, directory / "train.csv")
    pa.csv.write_csv(whole.slice(0, 500), directory / "few.csv")
    rows = 100_000 if quick else 1_000_000
    part = table(rows // 10)
    for name, times in (("short.csv", 1), ("long.csv", 10)):
        with pa.csv.CSVWriter(directory / name, part.schema) as writer:
            for _ in range(times * 10 if not quick else times):
                writer.write_table(part)
    return {"folder": np.array([str(directory)]), "budget": np.array([5.0 if quick else BUDGET])}


def _told(code: str, *arguments: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def run(data: Data) -> Measured:
    folder, budget = Path(str(data["folder"][0])), float(data["budget"][0])
    few = _told(_TRAIN, str(folder / "few.csv"), str(budget / 3), str(folder / "few"))
    trained = _told(_TRAIN, str(folder / "train.csv"), str(budget), str(folder / "run"))
    sizes = [
        _told(_PREDICT, str(folder / "run" / "model.epi"), str(folder / name), str(folder / "out.csv"))["memory"]
        for name in ("short.csv", "long.csv")
    ]
    data_bytes = (folder / "train.csv").stat().st_size
    numbers = [
        trained["first"],
        trained["whole"] / budget,
        (trained["memory"] - few["memory"]) / data_bytes,
        few["memory"] / 2**20,
        sizes[1] / sizes[0],
    ]
    return Measured(trained["whole"], {"numbers": np.array(numbers)})


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    names = (FIRST, WHOLE, TRAIN_MEMORY, FIXED_MEMORY, PREDICT_MEMORY)
    return {
        implementation: dict(zip(names, found["numbers"].tolist(), strict=True))
        for implementation, found in solutions.items()
    }


def measured(name: str) -> Callable[[Mapping[str, Outcome]], float]:
    return lambda outcomes: outcomes["epicycle"].quality.get(name, float("nan"))


TASK = Task(
    name="train_command",
    title="epicycle train, 50,000 x 30 CSV, and predict on 10 million rows",
    description=f"""\
A new process trains on a file of 24 columns of numbers and five of levels with a budget of {BUDGET:g} seconds (5 with
--quick): seconds from its start to the first cross-validated score, its whole time as a share of the budget, and its
peak memory as a multiple of the file, beyond that of the same on the first 500 rows; what those take beyond the imports
(code, the threads of BLAS, models) stands beside it. Then `predict` reads one million and ten million rows: the ratio
of the memory of both.""",
    make=make,
    implementations=(Implementation("epicycle", "epicycle", run),),
    quality=quality,
    tolerance=5.0,
    targets=(
        Target("seconds to the first score", measured(FIRST), at_most=5.0),
        Target("time of the run, as a share of its budget", measured(WHOLE), at_most=1.2),
        Target("memory that the data takes, as a multiple of the file", measured(TRAIN_MEMORY), at_most=3.0),
        Target("memory of predict, 10 million rows to 1 million", measured(PREDICT_MEMORY), at_most=1.1),
    ),
    cap=1_800.0,
    memory=False,
)
