"""The parent's end of a child process: start, ask with a time cap, tell a crash from a failure, end it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.task import Implementation, Solution, Task

__all__ = ["Child", "ChildError"]

_ROOT = Path(__file__).resolve().parents[1]
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_START_CAP = 600.0  # seconds for imports, loading and setup, which are not what is measured


class ChildError(Exception):
    """A child that gave no measurement; the message is what the table shows."""


class Child:
    """One implementation in its own process, with its own copy of the data."""

    def __init__(self, task: Task, implementation: Implementation, directory: Path, threads: int) -> None:
        threads = implementation.threads or threads
        index = task.implementations.index(implementation)
        self._solution = directory / f"solution-{index}.npz"
        self._log = directory / f"stderr-{index}.txt"
        environment = os.environ | {variable: str(threads) for variable in _THREAD_VARIABLES}
        inherited = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        environment["PYTHONPATH"] = os.pathsep.join([str(_ROOT), *inherited])
        command = [sys.executable, "-m", "benchmarks.child", task.module, task.name, implementation.name]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, str(directory), str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,  # its own group, so that workers it started end with it
            )
        self._buffer = b""
        try:
            self._receive(_START_CAP)
        except BaseException:
            self.kill()
            raise

    def call(self, tol: float | None, cap: float) -> dict[str, Any]:
        """Run the implementation once; a `ChildError` ends the child."""
        assert self._process.stdin is not None
        request = json.dumps({"tol": tol, "solution": str(self._solution)})
        try:
            self._process.stdin.write(request.encode() + b"\n")
            self._process.stdin.flush()
            return self._receive(cap)
        except BrokenPipeError:
            raise ChildError(self._death()) from None
        except ChildError:
            self.kill()
            raise

    def solution(self) -> Solution:
        """The result of the last call."""
        with np.load(self._solution) as arrays:
            return dict(arrays)

    def close(self) -> None:
        """Let the child finish by itself, or end it after ten seconds."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        self.kill()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _receive(self, cap: float) -> dict[str, Any]:
        """The next line of the child, within `cap` seconds."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + cap
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([descriptor], [], [], remaining)[0]:
                raise ChildError(f"timed out after {cap:g} s")
            chunk = os.read(descriptor, 65536)
            if not chunk:
                raise ChildError(self._death())
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        if "failure" in reply:
            raise ChildError(reply["failure"])
        return reply

    def _death(self) -> str:
        """Reason why the child ended without an answer."""
        code = self._process.wait(timeout=60)
        cause = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
        return f"crashed ({cause}){': ' + last[0] if last else ''}"
