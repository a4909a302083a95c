"""Run one task: find the stopping tolerances, then time the implementations in turn, round after round."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import count_quality
from benchmarks.process import Child, ChildError
from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Task

__all__ = ["run_task"]

_REFERENCE_CAP = 900.0
_PAUSE = 0.02  # seconds for the threads of the last call to stop spinning


def _silent(message: str) -> None:
    pass


def run_task(
    task: Task, *, quick: bool = False, repeats: int = 5, threads: int = 2, log: Callable[[str], None] = _silent
) -> dict[str, Outcome]:
    """Measure every implementation of `task`: one warm-up round if it asks for it, then `repeats` rounds, interleaved.

    Within a round each implementation runs once, and each round begins with another one, so that a slow spell of the
    machine meets all of them.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        log(f"{task.name}: making the data")
        data = task.make(directory, quick)
        _store(data, directory / "arrays")
        return _Run(task, data, directory, threads, log).run(repeats)


def _store(data: Data, directory: Path) -> None:
    directory.mkdir()
    for key, array in data.items():
        np.save(directory / f"{key}.npy", array, allow_pickle=False)


class _Run:
    def __init__(self, task: Task, data: Data, directory: Path, threads: int, log: Callable[[str], None]) -> None:
        self.task, self.data, self.directory, self.threads, self.log = task, data, directory, threads, log
        self.outcomes = {i.name: Outcome(i.name, i.role) for i in task.implementations}
        self.solutions: dict[str, Solution] = {}
        self.children: dict[str, Child] = {}

    def run(self, repeats: int) -> dict[str, Outcome]:
        with ExitStack() as stack:
            stack.callback(self._close)
            for implementation in self.task.implementations:
                if implementation.role == "reference":
                    self.log(f"{self.task.name}: reference ({implementation.name})")
                    self._call(implementation, _REFERENCE_CAP)
                    self._end(implementation.name)
            contenders = [i for i in self.task.implementations if i.role != "reference"]
            for implementation in contenders:
                if implementation.tolerances:
                    self._choose_tolerance(implementation)
            for round_number in range(0 if self.task.warm_up else 1, repeats + 1):
                first = round_number % len(contenders)
                for implementation in contenders[first:] + contenders[:first]:
                    if not self.outcomes[implementation.name].failure:
                        self._call(implementation, self.task.cap, timed=round_number > 0)
                self.log(f"{self.task.name}: {f'round {round_number} of {repeats}' if round_number else 'warmed up'}")
        qualities = self._quality(self.solutions)
        for outcome in self.outcomes.values():
            quality = None if qualities is None else qualities.get(outcome.name, {})
            count_quality(outcome, quality, self.task.tolerance)
        return self.outcomes

    def _quality(self, solutions: dict[str, Solution]) -> dict[str, Quality] | None:
        if self.task.quality is None:
            return None
        return self.task.quality(self.data, solutions) if solutions else {}

    def _choose_tolerance(self, implementation: Implementation) -> None:
        """The loosest tolerance that reaches the quality of the task, judged against the reference; else the best."""
        references = {i.name for i in self.task.implementations if i.role == "reference"}
        outcome = self.outcomes[implementation.name]
        best = np.inf
        chosen: float | None = None
        for tol in implementation.tolerances:
            outcome.tol = tol
            self._call(implementation, self.task.cap)
            if outcome.failure:
                return
            known = {n: s for n, s in self.solutions.items() if n in references | {implementation.name}}
            quality = (self._quality(known) or {}).get(implementation.name, {})
            value = next(iter(quality.values()), np.inf)
            self.log(f"{self.task.name}: {implementation.name} with tol={tol:g} reaches {value:.2g}")
            if chosen is None or value < best:
                best, chosen = value, tol
            if value <= self.task.tolerance:
                break
        outcome.tol = chosen

    def _call(self, implementation: Implementation, cap: float, *, timed: bool = False) -> None:
        name, outcome = implementation.name, self.outcomes[implementation.name]
        try:
            if name not in self.children:
                self.children[name] = Child(self.task, implementation, self.directory, self.threads)
            time.sleep(_PAUSE)
            reply = self.children[name].call(outcome.tol, cap)
        except ChildError as error:
            outcome.failure = str(error)
            self.children.pop(name, None)
            self.solutions.pop(name, None)
            self.log(f"{self.task.name}: {name} {error}")
            return
        self.solutions[name] = self.children[name].solution()
        if timed:
            outcome.seconds.append(reply["seconds"])
            outcome.memory.append(reply["memory"])
            outcome.peak_rss.append(reply["peak_rss"])
        if implementation.fresh:
            self._end(name)

    def _end(self, name: str) -> None:
        child = self.children.pop(name, None)
        if child is not None:
            child.close()

    def _close(self) -> None:
        for name in list(self.children):
            self._end(name)
