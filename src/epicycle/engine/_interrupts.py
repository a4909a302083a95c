"""Ctrl-C where Python may drop it.

An interrupt is raised wherever the main thread happens to be. Inside a finaliser (a ``__del__``, which a cluster's
futures have) Python prints and ignores it, and the work goes on as if nobody had asked. Here it is remembered.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["remembered_interrupts"]


@contextmanager
def remembered_interrupts() -> Iterator[None]:
    """Raise an interrupt that came inside and was swallowed at the end of the block.

    Only Python's own handler in the main thread is replaced; a program that handles the signal itself is left alone.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
