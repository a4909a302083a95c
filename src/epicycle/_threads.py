"""How many threads a piece of work may use, the threads themselves, and BLAS kept to one thread under them.

One budget for the whole process: the processors that affinity and cgroups leave us, less where ``OMP_NUM_THREADS`` or
threadpoolctl say so, less again where the work is too small to share.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from epicycle.exceptions import ParameterError
from epicycle.settings import get_config

__all__ = ["cpu_count", "helper_pool", "n_threads", "single_threaded_blas"]

_WORK_PER_THREAD = 1e6  # multiply-adds, about 0.3 ms: ten times what it costs to wake a thread


def n_threads(work: float, n_jobs: int | None = None) -> int:
    """Number of threads for `work` multiply-adds.

    Parameters
    ----------
    work : float
        Multiply-adds in all; math.inf where the work is known to be large.
    n_jobs : int, optional
        None follows `config(n_jobs=...)` and then the size of the work within the budget of the process; k > 0 is taken
        as it is; -1 means the whole budget, -2 all but one, and so on.
    """
    if n_jobs is None:
        n_jobs = get_config().n_jobs
    if n_jobs is None:
        return max(1, int(min(budget(), work / _WORK_PER_THREAD)))
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0:
        raise ParameterError(f"n_jobs={n_jobs!r}: expected None, a positive number of threads, or -1 for all")
    return int(n_jobs) if n_jobs > 0 else max(1, budget() + 1 + int(n_jobs))


def budget() -> int:
    """Threads that this process may run at once."""
    return max(1, min(cpu_count(), _openmp_threads()))


def _openmp_threads() -> int:
    try:
        from epicycle import _native
    except ImportError:  # a source tree that was not built
        limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        return int(limit) if limit.isdigit() and int(limit) > 0 else cpu_count()
    return int(_native.max_threads())


@cache
def cpu_count() -> int:
    """Processors that affinity and the cgroup quota leave to this process, at least one."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota(Path("/"))
    return available if quota is None else max(1, min(available, int(quota + 0.999)))


def cgroup_quota(root: Path) -> float | None:
    """Processors that the cgroup (version 2 or 1) of this process may use, or None for no limit."""
    quotas = []
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            base, files = root / "sys/fs/cgroup", ["cpu.max"]
        elif "cpu" in controllers.split(","):
            base, files = root / "sys/fs/cgroup/cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        # Every ancestor limits too; inside a container the path often does not exist and only the root does.
        parts = [part for part in path.split("/") if part and part != ".."]
        for depth in range(len(parts) + 1):
            folder = base.joinpath(*parts[:depth])
            words = " ".join(line for file in files for line in _lines(folder / file)).split()
            if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
                quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


class _BlasLimits:
    """Keeps every BLAS of the process at one thread while anyone asks for it, and then puts the old limits back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.libraries: list[Any] | None = None
        self.before: list[int] = []

    def enter(self) -> None:
        with self.lock:
            self.users += 1
            if self.users > 1:
                return
            if self.libraries is None:
                self.libraries = _blas_libraries()
            self.before = [library.get_num_threads() for library in self.libraries]
            for library, count in zip(self.libraries, self.before, strict=True):
                if count != 1:
                    library.set_num_threads(1)

    def leave(self) -> None:
        with self.lock:
            if self.users == 0:  # entered before a fork, left in the child
                return
            self.users -= 1
            if self.users == 0:
                self.restore()

    def restore(self) -> None:
        for library, count in zip(self.libraries or [], self.before, strict=True):
            if count != 1:
                library.set_num_threads(count)
        self.before = [0] * len(self.before)

    def forked(self) -> None:
        """In the child no other thread lives: whoever held the lock or the limits there does so no longer."""
        self.lock = threading.Lock()
        if self.users:
            self.users = 0
            self.restore()


def _blas_libraries() -> list[Any]:
    import numpy as np  # noqa: F401 - both bring a BLAS of their own, which has to be loaded to be found
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


_blas = _BlasLimits()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS runs on the thread that calls it, everywhere in the process, until the last such block ends."""
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def helper_pool() -> ThreadPoolExecutor:
    """The helper threads of this process: started when first needed, and anew in a forked child."""
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=max(32, 2 * cpu_count()), thread_name_prefix="epicycle")
        return _pool


def _after_fork() -> None:
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()
    _blas.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
