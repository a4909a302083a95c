"""What is said while a model is searched for: plain lines, and on a terminal a bar with the one that leads."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from epicycle.core._exceptions import ParameterTypeError
from epicycle.core.estimator._progress import ProgressLine

__all__ = ["Teller"]


class Teller:
    """Says lines, and keeps the bar.

    Parameters
    ----------
    progress : bool, callable or None
        False says nothing, True prints to standard error, a callable gets every line; None is True on a terminal.
    seconds : float
        The budget, which the bar shows.
    """

    def __init__(self, progress: Any, seconds: float) -> None:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        if progress is None:
            progress = terminal
        if not isinstance(progress, bool) and not callable(progress):
            raise ParameterTypeError(f"progress={progress!r:.40}; expected True, False, a callable or None")
        self._say: Callable[[str], object] | None = None
        if callable(progress):
            self._say = progress
        elif progress:
            self._say = _print
        self._began, self._seconds = time.perf_counter(), seconds
        self._bar = ProgressLine("training", max(round(seconds), 1), delay=0.3) if terminal and progress else None
        self._stage = "reading"
        self._leader = ""

    def line(self, text: str) -> None:
        if self._say is not None:
            self._say(text)
        self._update()

    def stage(self, text: str) -> None:
        self._stage = text
        self._update()

    def leader(self, text: str) -> None:
        self._leader = text
        self._update()

    def _update(self) -> None:
        if self._bar is not None:
            spent = min(round(time.perf_counter() - self._began), max(round(self._seconds), 1))
            self._bar.update(spent, note=f"{self._stage}{'; leads: ' + self._leader if self._leader else ''}")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
