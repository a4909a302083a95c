"""A search makes and drops many parts of the data and many models: kept for later, by Arrow, by the C library or in a
heap for each thread, they would add up to a multiple of the data."""

from __future__ import annotations

import pyarrow as pa

from epicycle.core import _memory

__all__ = ["keep_no_freed_memory", "return_freed_memory"]


def keep_no_freed_memory() -> None:
    """For a process that does nothing else."""
    pa.set_memory_pool(pa.system_memory_pool())
    _memory.keep_no_freed_memory()


def return_freed_memory() -> None:
    """Give back now what is free."""
    pa.default_memory_pool().release_unused()
    _memory.return_freed_memory()
