"""The process of one implementation: ``python -m benchmarks.child MODULE TASK IMPLEMENTATION DIRECTORY THREADS``.

It loads the arrays of the task into its own memory, sets up, and then answers one line of JSON on stdout for each line
on stdin. Whatever libraries print goes to stderr.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.task import Data, Implementation


def pin(threads: int) -> None:
    """Confine this process to as many cores as it may use threads: thread pools that read no variable follow it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def load(directory: str) -> Data:
    from pathlib import Path

    import numpy as np

    return {path.stem: np.load(path) for path in sorted(Path(directory, "arrays").glob("*.npy"))}


def call(implementation: Implementation, state: Any, tol: float | None, solution_path: str) -> dict[str, Any]:
    """Run once; write the solution, answer seconds, bytes above the baseline, and bytes in all."""
    import numpy as np

    from benchmarks import memory
    from benchmarks.task import Measured

    memory.release()
    memory.reset_peak()
    before = memory.rss()
    start = time.perf_counter()
    result = implementation.run(state, tol) if implementation.tolerances else implementation.run(state)
    seconds = time.perf_counter() - start
    peak = memory.peak_rss()
    if isinstance(result, Measured):
        seconds, result = result.seconds, result.solution
    arrays: dict[str, Any] = dict(result or {})
    np.savez(solution_path, **arrays)
    return {"seconds": seconds, "memory": max(peak - before, 0), "peak_rss": peak}


def summary(error: Exception) -> str:
    """One short line without paths of this machine."""
    first_line = re.sub(r"\s*\(?/[^\s)]+\)?", "", f"{type(error).__name__}: {error}".splitlines()[0])
    return first_line if len(first_line) <= 100 else first_line[:97] + "..."


def main(module: str, task_name: str, name: str, directory: str, threads: str) -> None:
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)

    def answer(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    pin(int(threads))  # before NumPy is imported: BLAS reads the affinity when it is loaded
    state: Any = None
    try:
        from benchmarks.tasks import find

        implementation = find(task_name, module).implementation(name)
        data = load(directory)
        state = implementation.setup(data) if implementation.setup else data
        del data
        answer({"ready": True})
        for line in requests:
            request = json.loads(line)
            answer(call(implementation, state, request["tol"], request["solution"]))
    except ModuleNotFoundError as error:
        answer({"failure": f"not installed: {error.name}"})
    except Exception as error:
        import traceback

        traceback.print_exc()
        answer({"failure": f"failed: {summary(error)}"})
    finally:
        if hasattr(state, "close"):
            state.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
