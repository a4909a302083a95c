"""Memory that a search has used goes back to the system, where the C library lets itself be told (glibc).

A search makes and drops many parts of the data and many models; kept for later, by Arrow, by the C library or in a heap
for each thread, they would add up to a multiple of the data.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

import pyarrow as pa

__all__ = ["keep_no_freed_memory", "return_freed_memory"]

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8


def keep_no_freed_memory() -> None:
    """For a process that does nothing else: arrays go back as they are freed, and there is one heap for all threads."""
    pa.set_memory_pool(pa.system_memory_pool())
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 18)
        libc.mallopt(_M_ARENA_MAX, 1)


def return_freed_memory() -> None:
    """Give back now what is free inside the heap."""
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
