"""Interrupts, forked, spawned and threaded children: nothing hangs, and the engine goes on afterwards.

Each story runs in a process of its own, with a time limit.
"""

import subprocess
import sys

import numpy as np
import pytest

COMMON = """
import os, signal, sys, threading, time
import numpy as np
from epicycle import engine
from epicycle.data import as_data, scan

def rows(batch):
    return (batch.n_rows, np.asarray(batch.X, dtype=float).T @ batch.X)

def slow(batch):
    time.sleep(0.02)
    return (batch.n_rows,)

def busy(batch):
    for _ in range(20):
        batch.X.T @ batch.X
    return (batch.n_rows,)
"""

INTERRUPT = """
X = np.ones((400_000, 20))
stories = [(X, slow, 1), (X, slow, 2), (X, busy, 2)]
stories += [(scan(path, batch_rows=500), slow, n_jobs) for path in sys.argv[1:] for n_jobs in (1, 2)]
for source, statistic, n_jobs in stories:
    data = as_data(source)
    sent = []
    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(0.15, send)
    timer.start()
    try:
        while True:
            engine.sum(statistic, data, n_jobs=n_jobs)
    except KeyboardInterrupt:
        took = time.perf_counter() - sent[0]
    timer.join()
    assert took < 1.0, took
    assert engine.sum(rows, data, n_jobs=2)[0] == data.n_rows
    assert not [t for t in threading.enumerate() if t.name == "epicycle-reader"]
print("usable")
"""

CHILDREN = """
import multiprocessing, queue

def child(results, argument):
    data = as_data(np.ones((40_000, 20)))
    total = engine.sum(rows, data, n_jobs=2)[0]
    if argument:
        total += engine.sum(rows, as_data(scan(argument)), n_jobs=2)[0]
    results.put(total)

if __name__ == "__main__":
    path = sys.argv[1]
    data = as_data(np.ones((40_000, 20)))
    with engine.single_threaded_blas():
        engine.sum(rows, data, n_jobs=2)
        engine.sum(rows, as_data(scan(path)), n_jobs=2)
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            results = context.Queue()
            children = [context.Process(target=child, args=(results, path)) for _ in range(2)]
            for c in children:
                c.start()
            assert [results.get(timeout=40) for _ in children] == [46_000, 46_000]
            for c in children:
                c.join(20)
                assert c.exitcode == 0, (method, c.exitcode)
    results = queue.Queue()
    threads = [threading.Thread(target=child, args=(results, path)) for _ in range(4)]
    for t in threads:
        t.start()
    assert [results.get(timeout=40) for _ in threads] == [46_000] * 4
    print("usable")
"""


def run(tmp_path, code, *arguments):
    script = tmp_path / "story.py"
    script.write_text(COMMON + code)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "usable"


@pytest.mark.serial
def test_an_interrupt_ends_a_pass_in_memory_and_over_files(tmp_path):
    run(tmp_path, INTERRUPT, table(tmp_path, "npy", 30_000), table(tmp_path, "parquet", 30_000))


@pytest.mark.slow  # estimators in children are in test_estimators_processes.py
def test_children_after_a_pass_in_the_parent(tmp_path):
    run(tmp_path, CHILDREN, table(tmp_path, "parquet", 6_000))


def table(folder, kind, n):
    path = folder / f"t.{kind}"
    if kind == "npy":
        np.save(path, np.ones((n, 20)))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({f"x{j}": np.ones(n) for j in range(20)}), path, row_group_size=1000)
    return path
