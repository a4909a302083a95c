"""Definition of a benchmark: data, implementations that are given it, and a measure of how good their answers are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

__all__ = ["Data", "Implementation", "Measured", "Outcome", "Quality", "Role", "Solution", "Target", "Task"]

Data = dict[str, np.ndarray]
Solution = dict[str, np.ndarray]
Quality = dict[str, float]
Role = Literal["epicycle", "peer", "baseline", "reference"]


@dataclass(frozen=True)
class Measured:
    """Returned by an implementation that takes its own time, because the clock of the runner would see too much."""

    seconds: float
    solution: Solution = field(default_factory=dict)


@dataclass(frozen=True)
class Implementation:
    """One way of doing the task, run in a process of its own.

    Parameters
    ----------
    name : str
    role : "epicycle", "peer", "baseline" or "reference"
        Peers compete. A baseline is timed but competes with nobody (reading a file, importing NumPy). The reference is
        run once, untimed, and only serves the measure of quality.
    run : callable
        What is timed: ``run(state)``, or ``run(state, tol)`` where there are `tolerances`; returns the solution.
    setup : callable, optional
        ``setup(data) -> state``, before the clock starts: imports, conversions, clusters. Without it the state is the
        data. A state with a ``close`` method is closed at the end.
    tolerances : tuple of float
        Stopping tolerances, loosest first. Before the timing the loosest one that reaches the quality of the task is
        looked for, so that nobody is timed on digits that nobody asked for.
    threads : int, optional
        Threads for this implementation, where they are what the task is about.
    fresh : bool
        Whether every call gets a new process.
    """

    name: str
    role: Role
    run: Callable[..., Solution | Measured | None]
    setup: Callable[[Data], Any] | None = None
    tolerances: tuple[float, ...] = ()
    threads: int | None = None
    fresh: bool = False


@dataclass
class Outcome:
    """Measurements of one implementation. Bytes and seconds are lists with one entry per timed call."""

    name: str
    role: Role
    tol: float | None = None
    seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    peak_rss: list[int] = field(default_factory=list)
    quality: Quality = field(default_factory=dict)
    at_equal_quality: bool = False
    failure: str = ""

    @property
    def median(self) -> float:
        """Median seconds; nan where there is no measurement."""
        return float(np.median(self.seconds)) if self.seconds and not self.failure else math.nan

    @property
    def spread(self) -> float:
        """Interquartile range of the seconds."""
        if not self.seconds or self.failure:
            return math.nan
        lower, upper = np.percentile(self.seconds, [25, 75])
        return float(upper - lower)


@dataclass(frozen=True)
class Target:
    """A figure that the project promises. Exactly one of `at_least` and `at_most` is given."""

    text: str
    value: Callable[[Mapping[str, Outcome]], float]
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(f"target {self.text!r}: expected either at_least or at_most")

    @property
    def bound(self) -> str:
        return f"at least {self.at_least:g}" if self.at_least is not None else f"at most {self.at_most:g}"

    def met(self, value: float) -> bool:
        """Whether `value` keeps the promise; nan (not measured) never does."""
        return value >= self.at_least if self.at_least is not None else value <= (self.at_most or 0.0)


@dataclass(frozen=True)
class Task:
    """A benchmark.

    Parameters
    ----------
    name, title, description : str
        The name on the command line, one line for the heading, and how the data and the quality are defined.
    make : callable
        ``make(directory, quick) -> data``: named arrays, the same at every call; large files go into `directory`,
        which lives as long as the task.
    implementations : tuple of Implementation
    quality : callable, optional
        ``quality(data, solutions) -> {implementation: {measure: value}}``, smaller is better. The first measure
        decides: at or below `tolerance` an implementation is at equal quality.
    tolerance : float
    targets : tuple of Target
    cap : float
        Seconds that one call may take.
    memory : bool
        Whether peak memory means something here.
    defined_in : str
        The module that defines the task, where that is not the one of `make`.
    warm_up : bool
        Whether a round that does not count goes first; runs of minutes need none.
    """

    name: str
    title: str
    description: str
    make: Callable[[Path, bool], Data]
    implementations: tuple[Implementation, ...]
    quality: Callable[[Data, Mapping[str, Solution]], dict[str, Quality]] | None = None
    tolerance: float = math.inf
    targets: tuple[Target, ...] = ()
    cap: float = 120.0
    memory: bool = True
    defined_in: str = ""
    warm_up: bool = True

    @property
    def module(self) -> str:
        """The module that defines the task."""
        return self.defined_in or self.make.__module__

    def implementation(self, name: str) -> Implementation:
        return next(i for i in self.implementations if i.name == name)
