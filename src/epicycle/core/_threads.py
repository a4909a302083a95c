"""The budget of threads, the threads themselves, and BLAS kept to one thread under them.

One budget for the whole process: the processors that affinity and cgroups leave us, less where ``OMP_NUM_THREADS`` or
threadpoolctl say so, less again where the work is too small to share.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from epicycle import _native
from epicycle.core._exceptions import ParameterError
from epicycle.core._settings import get_config

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
        # Small work runs on one thread: waking others would cost more than they save.
        return max(1, int(min(budget(), work / _WORK_PER_THREAD)))
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0:
        raise ParameterError(f"n_jobs={n_jobs!r}: expected None, a positive number of threads, or -1 for all")
    return int(n_jobs) if n_jobs > 0 else max(1, budget() + 1 + int(n_jobs))


class ThreadsUnderLoad:
    """The number of threads of a long row of short steps, each of which meets several barriers.

    At a barrier all threads wait for the last. Where other processes want the processors too, one that is set aside
    holds up all, and steps may take several times as long as on one thread. So the share of the processors that the
    process got is looked at; where it is small, one thread and all of them are compared by the clock, again and again.
    The result of a step may not depend on the number of threads.

    Parameters
    ----------
    threads : int
        The number where nothing else runs.
    clock, processor_clock : callable
        Seconds of the wall, and of all threads of the process.
    """

    _FIRST, _TRIAL, _PATIENCE = 10, 4, 25  # steps: before the first look, of a comparison, between two of them
    _BUSY = 0.75  # share of the processors below which something else must be running

    def __init__(
        self,
        threads: int,
        clock: Callable[[], float] = time.perf_counter,
        processor_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self.threads = self.now = threads
        self._clock, self._processor_clock = clock, processor_clock
        self._first, self._busy, self._left, self._patience = True, False, 0, self._PATIENCE

    def run(self, steps: int, work: Callable[[int, int], object]) -> None:
        """Do so many steps, as calls ``work(steps, threads)``."""
        if self.threads == 1:
            work(steps, 1)
            return
        while steps > 0:
            if self._busy and self._left <= 0 and steps > 2 * self._TRIAL:
                self._compare(work)
                steps -= 2 * self._TRIAL
                continue
            most = self._FIRST if self._first else self._left if self._busy and self._left > 0 else steps
            count = min(steps, most)
            _, share = self._timed(work, count, self.now)
            steps, self._left, self._first = steps - count, self._left - count, False
            if self.now > 1 and (share < self._BUSY) != self._busy:
                self._busy, self._left, self._patience = not self._busy, 0, self._PATIENCE

    def _compare(self, work: Callable[[int, int], object]) -> None:
        """Do some steps in both ways, and go on in the faster one; for twice as long where it is that of before."""
        alone, together = (self._timed(work, self._TRIAL, threads)[0] for threads in (1, self.threads))
        best = 1 if alone < together else self.threads
        self._patience = 2 * self._patience if best == self.now else self._PATIENCE
        self.now, self._left = best, self._patience

    def _timed(self, work: Callable[[int, int], object], steps: int, threads: int) -> tuple[float, float]:
        """(seconds, share of `threads` processors that the process got)."""
        wall, processor = self._clock(), self._processor_clock()
        work(steps, threads)
        wall, processor = self._clock() - wall, self._processor_clock() - processor
        return wall, processor / max(wall * threads, 1e-9)


def budget() -> int:
    """Threads that this process may run at once."""
    return max(1, min(cpu_count(), _native.core.max_threads()))


@cache
def cpu_count() -> int:
    """Processors that affinity and the cgroup quota leave to this process, at least one."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota(Path("/"))
    # A quota of 1.5 processors is served best by two threads, which then rest a part of the time.
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


class _Blas:
    """One BLAS library: read and set the number of its threads.

    threadpoolctl finds the libraries, but lets only the first thread that ever set a limit change it again; a pass may
    be ended by another thread than began it, so OpenBLAS is called directly.
    """

    def __init__(self, library: Any) -> None:
        self.get: Callable[[], int] = library.get_num_threads
        self.set: Callable[[int], object] = library.set_num_threads
        # With OpenMP underneath, the number belongs to the calling thread, otherwise to the process.
        self.per_thread = getattr(library, "threading_layer", "") == "openmp"
        if library.internal_api == "openblas" and not self.per_thread:
            names = [f"{p}openblas_set_num_threads{s}" for p in ("", "scipy_") for s in ("", "64_", "_64")]
            self.set = next(
                (getattr(library.dynlib, name) for name in names if hasattr(library.dynlib, name)), self.set
            )


class _BlasLimits:
    """Keeps every BLAS of the process at one thread while anyone asks for it, and then puts the old limits back."""

    def __init__(self, libraries: list[_Blas]) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.libraries = libraries
        self.before: list[tuple[_Blas, int]] = []
        self.mine = threading.local()  # .users, .before: the same for libraries that count per thread

    def enter(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.before = _limit([library for library in self.libraries if not library.per_thread])
        users = getattr(self.mine, "users", 0)
        if users == 0:
            self.mine.before = _limit([library for library in self.libraries if library.per_thread])
        self.mine.users = users + 1

    def leave(self) -> None:
        self.mine.users -= 1
        if self.mine.users == 0:
            _restore(self.mine.before)
        with self.lock:
            if self.users == 0:  # entered before a fork, left in the child
                return
            self.users -= 1
            if self.users == 0:
                _restore(self.before)

    def forked(self) -> None:
        """In the child no other thread lives: whoever held the lock or the limits there does so no longer."""
        self.lock = threading.Lock()
        if self.users:
            self.users = 0
            _restore(self.before)


def _limit(libraries: list[_Blas]) -> list[tuple[_Blas, int]]:
    """Set the libraries to one thread; returns those that had more, and how many."""
    before = [(library, count) for library in libraries if (count := library.get()) != 1]
    for library, _ in before:
        library.set(1)
    return before


def _restore(before: list[tuple[_Blas, int]]) -> None:
    for library, count in before:
        library.set(count)


def _blas_libraries() -> list[_Blas]:
    import numpy as np  # noqa: F401 - both bring a BLAS of their own, which has to be loaded to be found
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return [_Blas(library) for library in ThreadpoolController().select(user_api="blas").lib_controllers]


_blas = _BlasLimits(_blas_libraries())  # takes milliseconds: spent on import, so that the first fit is as fast as any


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
            # No more than can run at once, whoever asks.
            _pool = ThreadPoolExecutor(cpu_count(), thread_name_prefix="epicycle", initializer=_blas_of_helper)
        return _pool


def _blas_of_helper() -> None:
    # For good: a helper does nothing else than passes.
    for library in _blas.libraries:
        if library.per_thread:
            library.set(1)


def _after_fork() -> None:
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()
    _blas.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
