"""Cost of ``import epicycle`` after NumPy is imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.arithmetic import median_of
from benchmarks.task import Data, Implementation, Measured, Target, Task


def make(directory: Path, quick: bool) -> Data:
    return {}


def importing(statement: str, after: str = "import time") -> Callable[[Data], Measured]:
    """Seconds of `statement` in a new interpreter that has already executed `after`."""
    clock = "from time import perf_counter\nstart = perf_counter()"
    program = f"{after}\n{clock}\n{statement}\nprint(perf_counter() - start)"

    def run(data: Data) -> Measured:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return Measured(float(done.stdout))

    return run


TASK = Task(
    name="import_time",
    title="import in a new interpreter",
    description="""\
The files are in the page cache. All but the first line are beyond NumPy's own import. `import epicycle` loads the names
on first use; what a first estimator needs then stands in its own line, next to that of scikit-learn.""",
    make=make,
    implementations=(
        Implementation("import numpy", "baseline", importing("import numpy")),
        Implementation("import epicycle", "epicycle", importing("import epicycle", "import numpy")),
        Implementation(
            "from epicycle import LinearRegression",
            "epicycle",
            importing("from epicycle import LinearRegression", "import numpy"),
        ),
        Implementation(
            "from sklearn.linear_model import LinearRegression",
            "baseline",
            importing("from sklearn.linear_model import LinearRegression", "import numpy"),
        ),
    ),
    targets=(Target("seconds of import epicycle beyond numpy", median_of("import epicycle"), at_most=0.1),),
    memory=False,
)
