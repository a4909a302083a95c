"""How many threads there may be, and BLAS on one of them."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import ThreadpoolController, threadpool_limits

from epicycle import engine
from epicycle.core import _threads
from epicycle.core._settings import config
from epicycle.exceptions import ParameterError


def test_small_work_runs_on_one_thread():
    assert engine.n_threads(1e4, None) == 1
    assert engine.n_threads(0.0, None) == 1


def test_large_work_takes_the_budget(monkeypatch):
    monkeypatch.setattr(_threads, "budget", lambda: 8)
    assert engine.n_threads(float("inf"), None) == 8
    assert engine.n_threads(3.5e6, None) == 3
    assert engine.n_threads(1e4, -1) == 8
    assert engine.n_threads(1e4, -2) == 7
    assert engine.n_threads(1e4, -20) == 1
    assert engine.n_threads(1e4, 5) == 5
    assert engine.n_threads(1e4, 64) == 64
    with config(n_jobs=2):
        assert engine.n_threads(float("inf"), None) == 2
        assert engine.n_threads(float("inf"), 3) == 3


@pytest.mark.parametrize("n_jobs", [0, True, 1.5, "2"])
def test_n_jobs_is_checked(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs="):
        engine.n_threads(1e9, n_jobs)


def test_the_environment_limits_the_budget():
    code = "from epicycle.core._threads import n_threads; print(n_threads(1e12), n_threads(1e12, -1))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["1", "1"]


def test_threadpoolctl_limits_the_budget():
    with threadpool_limits(1):
        assert engine.n_threads(float("inf"), None) == 1


def test_the_budget_is_within_the_affinity():
    assert 1 <= engine.n_threads(float("inf"), None) <= len(os.sched_getaffinity(0))


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            },
            2.0,
        ),
        (
            {
                "proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            3.0,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
    ids=["none", "v2", "v2 no limit", "v2 parent", "v1", "v1 no limit"],
)
def test_cgroup_quota(tmp_path, files, quota):
    write(tmp_path, files)
    assert _threads.cgroup_quota(tmp_path) == quota


def blas_threads():
    return [lib.num_threads for lib in ThreadpoolController().select(user_api="blas").lib_controllers]


@pytest.fixture
def two_blas_threads():
    scipy.linalg.cholesky(np.eye(2))
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_runs_on_one_thread_inside_and_as_before_outside():
    with engine.single_threaded_blas():
        assert set(blas_threads()) == {1}
        with engine.single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}
    with pytest.raises(ZeroDivisionError), engine.single_threaded_blas():
        _ = 1 / 0
    assert set(blas_threads()) == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_overlapping_blocks_of_several_threads_leave_the_limits_as_they_were():
    seen = []

    def work():
        for _ in range(50):
            with engine.single_threaded_blas():
                time.sleep(1e-4)
                seen.append(blas_threads())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {n for s in seen for n in s} == {1}
    assert set(blas_threads()) == {2}


@pytest.mark.serial
def test_the_limit_is_cheap():
    def cost():
        start = time.perf_counter()
        for _ in range(100):
            with engine.single_threaded_blas():
                pass
        return (time.perf_counter() - start) / 100

    assert min(cost() for _ in range(5)) < 50e-6


class Machine:
    """Steps on a machine whose other work comes and goes; clocks count what they take."""

    def __init__(self, threads, alone, together):
        self.threads, self.costs, self.busy = threads, {1: alone, threads: together}, lambda _step: False
        self.wall = self.processor = 0.0
        self.taken = []

    def work(self, steps, threads):
        for _ in range(steps):
            if self.busy(len(self.taken)):  # at barriers threads wait for the one that is set aside
                seconds = 4 * self.costs[1] if threads == 1 else 40 * self.costs[threads]
                self.processor += seconds * threads * (0.25 if threads == 1 else 0.4)
            else:
                seconds = self.costs[threads]
                self.processor += seconds * threads * 0.95
            self.wall += seconds
            self.taken.append(threads)

    def under_load(self):
        return _threads.ThreadsUnderLoad(self.threads, lambda: self.wall, lambda: self.processor)


@pytest.mark.parametrize("threads", [2, 8])
def test_steps_with_barriers_leave_a_busy_machine_to_one_thread(threads):
    quiet = Machine(threads, 1.0, 1.0 / threads)
    team = quiet.under_load()
    for _ in range(20):
        team.run(50, quiet.work)
    assert quiet.taken == [threads] * 1000

    loaded = Machine(threads, 1.0, 1.0 / threads)
    loaded.busy = lambda step: 300 <= step < 700
    team = loaded.under_load()
    for _ in range(20):
        team.run(50, loaded.work)
    assert len(loaded.taken) == 1000
    assert loaded.taken[:300] == [threads] * 300
    assert np.mean(np.array(loaded.taken[360:700]) == 1) > 0.85  # but for trials
    assert np.mean(np.array(loaded.taken[850:]) == threads) > 0.95  # and back
    assert _threads.ThreadsUnderLoad(1).run(7, lambda steps, n: loaded.taken.append((steps, n))) is None
    assert loaded.taken[-1] == (7, 1)


def test_where_one_thread_is_slower_all_are_kept():
    machine = Machine(4, 1.0, 0.4)

    def waiting(steps, threads):  # processors idle for another reason
        before = machine.processor
        machine.work(steps, threads)
        machine.processor = before + (machine.processor - before) / 2

    team = machine.under_load()
    for _ in range(20):
        team.run(50, waiting)
    assert np.mean(np.array(machine.taken) == 4) > 0.95
