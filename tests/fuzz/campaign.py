"""A campaign of random fits: no hang, no crash, no answer that is not finite, no error but those meant for users.

``python -m tests.fuzz.campaign --minutes 60 --jobs 2`` from the root of the repository draws new cases until the time
is over and prints each kind of complaint when it is first met, with the seed of its case, and all of them at the end;
``--case SEED --only Ridge`` runs one again, with its traceback, and ``--only Ridge`` looks at one class. Fits run in
processes that are ended when one of them takes too long; which cases are run does not depend on their number.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
CPU_LIMIT = 20.0  # seconds of processor time for a fit on at most 60 rows and its predictions
WALL_LIMIT = 180.0  # the same on a machine that does other things too


@dataclass
class Report:
    """What a campaign has found."""

    seed: int
    loud: bool = False
    cases: int = 0
    found: dict[str, dict[str, Any]] = field(default_factory=dict)  # by kind of complaint
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next_case(self, most: int | None) -> int | None:
        """The seed of the next case, for the first worker that asks; None where `most` were run."""
        with self.lock:
            if self.cases == most:
                return None
            self.cases += 1
            return self.seed + self.cases - 1

    def add(self, seed: int, words: str, complaint: str) -> None:
        name = words.partition("(")[0]
        kind = f"{name}: {re.sub(r'[-+]?[0-9][0-9.e+-]*', '#', complaint)[:90]}"
        with self.lock:
            new = kind not in self.found
            known = self.found.setdefault(kind, {"seed": seed, "words": words, "complaint": complaint, "times": 0})
            known["times"] += 1
        if new and self.loud:
            print(f"--case {seed} --only {name} {complaint}\n    {words[:500]}", flush=True)

    def __str__(self) -> str:
        lines = [f"{self.cases} cases from seed {self.seed}: {len(self.found)} kinds of complaints"]
        for entry in self.found.values():
            name, words = entry["words"].partition("(")[0], entry["words"][:500]
            times = entry["times"]
            lines.append(f"--case {entry['seed']} --only {name} ({times} times) {entry['complaint']}\n    {words}")
        return "\n".join(lines)


class Worker:
    """A process that runs cases one after another."""

    def __init__(self, only: str | None, warnings: bool) -> None:
        source = str(HERE.parents[1] / "src")
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **threads, "PYTHONPATH": source}
        command = [sys.executable, str(HERE / "cases.py"), only or "", "warnings" if warnings else ""]
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout.fileno()
        self.lines: list[bytes] = []  # read and not looked at yet
        self.rest = b""

    def _cpu(self) -> float:
        try:
            times = psutil.Process(self.process.pid).cpu_times()
        except psutil.NoSuchProcess:
            return 0.0
        return float(times.user + times.system)

    def _line(self, cpu: float, wall: float) -> dict[str, Any] | None:
        """The next line of the process; None where it ends, {} where it takes too long."""
        began, before = time.monotonic(), self._cpu()
        while not self.lines:
            if not select.select([self.stdout], [], [], 0.5)[0]:
                if self._cpu() - before > cpu or time.monotonic() - began > wall:
                    return {}
                continue
            chunk = os.read(self.stdout, 1 << 16)
            if not chunk:
                return None
            *self.lines, self.rest = (self.rest + chunk).split(b"\n")
        return dict(json.loads(self.lines.pop(0)))

    def run(self, seed: int, report: Report) -> bool:
        """Run a case; False where the process is of no use any more."""
        self.stdin.write(f"{seed}\n".encode())
        words = "?"
        for _ in range(2):
            line = self._line(CPU_LIMIT, WALL_LIMIT)
            if line is None:
                report.add(seed, words, f"crash: the process ended with {self.process.wait()}")
                return False
            if not line:
                report.add(seed, words, f"hang: more than {CPU_LIMIT:.0f} s of processor time, or {WALL_LIMIT:.0f} s")
                return False
            words = line.get("words", words)
        for complaint in line["complaints"]:
            report.add(seed, words, complaint)
        return True

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def campaign(
    seed: int,
    seconds: float,
    only: str | None = None,
    warnings: bool = False,
    most: int | None = None,
    jobs: int = 1,
    loud: bool = False,
) -> Report:
    """Cases of seeds from `seed` on until the time is over, or `most` were run."""
    report = Report(seed, loud)
    until = time.monotonic() + seconds

    def work() -> None:
        worker: Worker | None = None
        while time.monotonic() < until and (case := report.next_case(most)) is not None:
            worker = worker or Worker(only, warnings)
            if not worker.run(case, report):
                worker.close()
                worker = None
        if worker is not None:
            worker.close()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=1, help="processes at work at a time")
    parser.add_argument("--seed", type=int, help="of the first case; drawn afresh by default")
    parser.add_argument("--only", help="name of a class")
    parser.add_argument("--warnings", action="store_true", help="complain of NumPy's warnings too")
    parser.add_argument("--case", type=int, help="seed of a single case, run in this process")
    options = parser.parse_args()
    if options.case is not None:
        sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]
        import cases

        case = cases.draw(options.case, options.only)
        print(case.words)
        print(list(cases.complaints(case, options.warnings)) or "nothing to complain of")
        case.model.fit(case.X, case.y, **case.given)
        return 0
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "big")
    print(f"cases from seed {seed}", flush=True)
    report = campaign(seed, 60 * options.minutes, options.only, options.warnings, jobs=options.jobs, loud=True)
    print(report)
    return bool(report.found)


if __name__ == "__main__":
    raise SystemExit(main())
