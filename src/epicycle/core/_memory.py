"""Memory that a piece of work will need, asked for before it starts, and given back when it is free."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from epicycle.core._exceptions import MemoryBudgetError
from epicycle.core._settings import get_config

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of glibc's mallopt


def available() -> int | None:
    """Bytes that can be allocated now without swapping; None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(nbytes: float, what: str, instead: str) -> None:
    """Refuse work that would need more than ``config(memory_limit=...)``, or than the machine has free.

    Parameters
    ----------
    nbytes : float
        What the work will allocate at its peak.
    what : str
        What needs it, as the subject of a sentence.
    instead : str
        What to do instead.
    """
    if nbytes < 1 << 24:  # not worth a look
        return
    limit = get_config().memory_limit
    budget = available() if limit is None else limit
    if budget is not None and nbytes > budget:
        source = "are available" if limit is None else "are allowed by config(memory_limit=...)"
        raise MemoryBudgetError(
            f"{what} would need {bytes_in_words(nbytes)}, but only {bytes_in_words(budget)} {source}; {instead}"
        )


def bytes_in_words(n: float) -> str:
    """1536 -> "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} TiB"


def keep_no_freed_memory() -> None:
    """For a whole process: arrays go back as they are freed, and there is one heap for all threads (glibc)."""
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 18)
        libc.mallopt(_M_ARENA_MAX, 1)


def return_freed_memory() -> None:
    """Give back now what is free inside the heap, as after a step that needed much more than the next (glibc)."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
