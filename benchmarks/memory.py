"""Peak resident memory of this process, resettable where the kernel allows it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import resource
import sys
from pathlib import Path

__all__ = ["peak_rss", "release", "reset_peak", "rss"]

_STATUS = Path("/proc/self/status")


def _status(field: str) -> int | None:
    """A field of /proc/self/status in bytes; None where there is no such file."""
    with contextlib.suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    return None


def rss() -> int:
    """Bytes resident now (the peak so far where the system does not say)."""
    value = _status("VmRSS")
    return _lifetime_peak() if value is None else value


def peak_rss() -> int:
    """Most bytes resident at once since the last `reset_peak`, or since the start where that is not allowed."""
    value = _status("VmHWM")
    return _lifetime_peak() if value is None else value


def reset_peak() -> bool:
    """Let the peak start again at what is resident now; says whether the kernel agreed."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def release() -> None:
    """Give freed memory back, so that memory kept by the allocator from an earlier call does not hide a later peak."""
    gc.collect()
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):  # malloc_trim is glibc's
            ctypes.CDLL(None).malloc_trim(0)


def _lifetime_peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
