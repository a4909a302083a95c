"""A time limit for any piece of work, also for fits that do not look at the clock themselves."""

from __future__ import annotations

import math
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds after which the signal comes again, and after which it does where it came inside a finaliser: what is raised
#: there ends the finaliser, is printed, and is lost.
_AGAIN, _SOON = 5.0, 0.01
#: Functions and modules of Python that run as callbacks of weak references.
_FINALISERS = {"__del__", "weakref_cb"}
_MODULES_OF_FINALISERS = {"weakref", "_weakrefset"}


class OutOfTimeError(RuntimeError):
    """The work did not end within its time limit."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTimeError` in the block after so many seconds.

    By the alarm signal of POSIX systems, which ends a native loop within a second as Ctrl-C does. Elsewhere, in other
    threads than the main one, and where the program has an alarm of its own, there is no limit: fits then end by their
    callbacks alone.
    """
    if not seconds < math.inf or not _usable():
        yield
        return

    def stop(_number: int, frame: FrameType | None) -> None:
        if _in_finaliser(frame):
            signal.setitimer(signal.ITIMER_REAL, _SOON, _AGAIN)
            return
        raise OutOfTimeError(f"did not end within {seconds:.3g} s")

    def lost(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, OutOfTimeError):  # in a finaliser that has no name for us
            signal.setitimer(signal.ITIMER_REAL, _SOON, _AGAIN)
        else:
            hook(unraisable)

    before, hook = signal.signal(signal.SIGALRM, stop), sys.unraisablehook
    try:
        sys.unraisablehook = lost
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), _AGAIN)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def _in_finaliser(frame: FrameType | None) -> bool:
    """Whether the program is inside ``__del__`` or a callback of a weak reference, as those of weak dictionaries."""
    while frame is not None:
        if frame.f_code.co_name in _FINALISERS or frame.f_globals.get("__name__") in _MODULES_OF_FINALISERS:
            return True
        frame = frame.f_back
    return False


def _usable() -> bool:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return False
    # A limit around this one stays in force: two alarms cannot run at once.
    return signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, signal.SIG_IGN) and (
        signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    )
