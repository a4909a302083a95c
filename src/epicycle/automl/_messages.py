"""Progress messages of a training run: lines, and below them one line that is drawn again and again."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from epicycle.core._exceptions import EpicycleWarning, ParameterTypeError
from epicycle.core._settings import config

#: Seconds between two drawings of the status line, which shows the time that is left.
_REDRAWN_EVERY = 0.5
_BAR_CELLS = 20
#: Back to the first column, and delete to the end of the line.
_CLEAR = "\r\x1b[K"


def terminal_width(stream: Any) -> int | None:
    """Columns of the terminal behind a stream; None where there is none."""
    try:
        if not stream.isatty():
            return None
        return int(os.get_terminal_size(stream.fileno()).columns) or 80
    except (AttributeError, OSError, ValueError):
        return None


def wrapped(text: str, width: int | None) -> str:
    """The text in lines of at most `width` columns, broken between words, further lines indented."""
    if width is None or len(text) <= width:
        return text
    indent = " " * min(len(text) - len(text.lstrip()) + 3, width // 3)
    return textwrap.fill(
        text, width, subsequent_indent=indent, drop_whitespace=True, replace_whitespace=False, break_on_hyphens=False
    )


class Messages:
    """Progress messages of a training run: lines, and on a terminal a bar with the leading candidate.

    Parameters
    ----------
    progress : bool, callable or None
        False is silent, True prints to standard error, a callable gets every line; None is True on a terminal.
    seconds : float
        The budget, which the bar shows.
    """

    def __init__(self, progress: Any, seconds: float) -> None:
        columns = terminal_width(sys.stderr)
        if progress is None:
            progress = columns is not None
        if not isinstance(progress, bool) and not callable(progress):
            raise ParameterTypeError(f"progress={progress!r:.40}; expected True, False, a callable or None")
        self._write: Callable[[str], object] | None = None
        if callable(progress):
            self._write = progress
        elif progress:
            self._write = partial(print, file=sys.stderr, flush=True)
        self._status = StatusLine(seconds) if columns is not None and progress else None
        self._stage = "reading"
        self._leader = ""
        #: Columns that a line may have; None where it does not matter.
        self.width = terminal_width(sys.stdout) if callable(progress) else columns

    def line(self, text: str) -> None:
        if self._write is None:
            return
        if self._status is None:
            self._write(wrapped(text, self.width))
        else:
            with self._status.cleared():
                self._write(wrapped(text, self.width))

    def stage(self, text: str) -> None:
        self._stage = text
        self._update()

    def leader(self, text: str) -> None:
        self._leader = text or self._leader
        self._update()

    def _update(self) -> None:
        if self._status is not None:
            self._status.note = f"{self._stage}{'; leads: ' + self._leader if self._leader else ''}"

    def close(self) -> None:
        if self._status is not None:
            self._status.close()


@contextmanager
def telling(progress: Any, seconds: float, n_jobs: int | None) -> Iterator[Messages]:
    """Messages of a command on a table, whose result says what warnings of its fits would."""
    messages = Messages(progress, seconds)
    try:
        with config(on_nonconvergence="ignore", n_jobs=n_jobs), warnings.catch_warnings():
            warnings.simplefilter("ignore", EpicycleWarning)
            yield messages
    finally:
        messages.close()


class StatusLine:
    """The last line of the terminal, on standard error: a bar of the time that is spent, and a note.

    It is never longer than the terminal is wide, so that it can be taken away; a thread of its own draws it, so that it
    moves while a fit runs.
    """

    def __init__(self, seconds: float) -> None:
        self.note = ""
        self._seconds, self._began = max(seconds, 1e-9), time.monotonic()
        self._lock, self._closed = threading.RLock(), threading.Event()
        self._thread = threading.Thread(target=self._redraw, daemon=True)
        self._thread.start()

    def text(self, columns: int) -> str:
        """The text of the line in so many columns."""
        spent = time.monotonic() - self._began
        filled = min(round(_BAR_CELLS * spent / self._seconds), _BAR_CELLS)
        bar = f"[{'#' * filled}{'-' * (_BAR_CELLS - filled)}]"
        text = f"{bar} {spent:.0f} of {self._seconds:.0f} s  {self.note}"
        # The last column stays free: some terminals go to the next line when it is written.
        return text if len(text) < columns else text[: max(columns - 4, 0)] + "..."[: max(columns - 1, 0)]

    def cleared(self) -> StatusLine:
        """A block in which the line is away."""
        return self

    def __enter__(self) -> None:
        self._lock.acquire()
        self._send(_CLEAR)

    def __exit__(self, *_: object) -> None:
        if not self._closed.is_set():
            self._draw()
        self._lock.release()

    def close(self) -> None:
        """Take the line away for good."""
        self._closed.set()
        self._thread.join(timeout=2 * _REDRAWN_EVERY)
        with self._lock:
            self._send(_CLEAR)

    def _redraw(self) -> None:
        while not self._closed.wait(_REDRAWN_EVERY):
            with self._lock:
                if not self._closed.is_set():
                    self._draw()

    def _draw(self) -> None:
        self._send(_CLEAR + self.text(terminal_width(sys.stderr) or 80))

    def _send(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal is gone; the training goes on
            self._closed.set()
