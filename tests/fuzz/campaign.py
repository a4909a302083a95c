"""A campaign of random fits: no hang, no crash, no answer that is not finite, no error but those meant for users.

``python -m tests.fuzz.campaign --seed 7 --minutes 60 --workers 2 --output complaints.txt`` from the root of the
repository draws new cases until the time is over and prints each kind of complaint when it is first met, with the seed
of its case, and all of them at the end; ``--output`` writes them to a file, too, as they come, so that a campaign that
is stopped leaves what it found. ``--case SEED --only Ridge`` runs one again, with its traceback, and ``--only
Ridge,linear,svm`` looks at some classes and families. Fits run in processes that are ended when one of them takes too
long; which cases are run does not depend on their number. The time is that of the clock; the processor time of the
fits stands in the report. It needs the installed package, pandas and psutil, and no other module of the tests.
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
IDLE_LIMIT = 180.0  # seconds in which a process neither works nor waits for a processor, as in a deadlock


@dataclass
class Report:
    """What a campaign has found."""

    seed: int
    loud: bool = False
    output: Path | None = None  # a file of the complaints so far
    cases: int = 0
    processor: float = 0.0  # seconds of the processes that ran the cases
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
            if new and self.output:
                self.output.write_text(f"{self}\n")
        if new and self.loud:
            print(f"--case {seed} --only {name} {complaint}\n    {words[:500]}", flush=True)

    def __str__(self) -> str:
        minutes = f"{self.processor / 60:.1f} minutes of processor time"
        lines = [f"{self.cases} cases from seed {self.seed}, {minutes}: {len(self.found)} kinds of complaints"]
        for entry in self.found.values():
            name, words = entry["words"].partition("(")[0], entry["words"][:500]
            times = entry["times"]
            lines.append(f"--case {entry['seed']} --only {name} ({times} times) {entry['complaint']}\n    {words}")
        return "\n".join(lines)


class Worker:
    """A process that runs cases one after another."""

    def __init__(self, only: str | None, warnings: bool) -> None:
        self.processor = 0.0
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
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

    def _idle(self) -> bool:
        try:
            return bool(psutil.Process(self.process.pid).status() != psutil.STATUS_RUNNING)
        except psutil.NoSuchProcess:
            return True

    def _line(self) -> dict[str, Any] | None:
        """The next line of the process; None where it ends, {} where it takes too long."""
        last = before = self._cpu()
        at_work = time.monotonic()
        self.processor = max(self.processor, before)
        while not self.lines:
            if not select.select([self.stdout], [], [], 0.5)[0]:
                now, cpu = time.monotonic(), self._cpu()
                if cpu > last or not self._idle():
                    last, at_work = cpu, now
                if cpu - before > CPU_LIMIT or now - at_work > IDLE_LIMIT:
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
            line = self._line()
            if line is None:
                report.add(seed, words, f"crash: the process ended with {self.process.wait()}")
                return False
            if not line:
                report.add(
                    seed, words, f"hang: more than {CPU_LIMIT:.0f} s of processor time, or {IDLE_LIMIT:.0f} s idle"
                )
                return False
            words = line.get("words", words)
        for complaint in line["complaints"]:
            report.add(seed, words, complaint)
        return True

    def close(self) -> None:
        self.processor = max(self.processor, self._cpu())
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
    workers: int = 1,
    loud: bool = False,
    output: Path | None = None,
) -> Report:
    """Cases of seeds from `seed` on until the time is over, or `most` were run."""
    report = Report(seed, loud, output)
    until = time.monotonic() + seconds

    def end(worker: Worker) -> None:
        worker.close()
        with report.lock:
            report.processor += worker.processor

    def work() -> None:
        worker: Worker | None = None
        while time.monotonic() < until and (case := report.next_case(most)) is not None:
            worker = worker or Worker(only, warnings)
            if not worker.run(case, report):
                end(worker)
                worker = None
        if worker is not None:
            end(worker)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if output:
        output.write_text(f"{report}\n")
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=1, help="processes at work at a time")
    parser.add_argument("--seed", type=int, help="of the first case; drawn afresh by default")
    parser.add_argument("--only", help="names of classes and families, with commas between them")
    parser.add_argument("--output", type=Path, help="file for the complaints")
    parser.add_argument("--warnings", action="store_true", help="complain of NumPy's warnings too")
    parser.add_argument("--case", type=int, help="seed of a single case, run in this process")
    options = parser.parse_args()
    if options.case is not None:
        sys.path.insert(0, str(HERE))
        import cases

        case = cases.draw(options.case, options.only)
        print(case.words)
        print(list(cases.complaints(case, options.warnings)) or "nothing to complain of")
        case.model.fit(case.X, case.y, **case.given)
        return 0
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "big")
    print(f"cases from seed {seed}", flush=True)
    seconds, kinds = 60 * options.minutes, (options.only, options.warnings)
    report = campaign(seed, seconds, *kinds, workers=options.workers, loud=True, output=options.output)
    print(report)
    return bool(report.found)


if __name__ == "__main__":
    raise SystemExit(main())
