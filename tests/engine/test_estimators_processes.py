"""Long fits end on Ctrl-C, children of any kind can fit, nothing leaks, and no training data stays behind.

Each story runs in a process of its own, with a time limit.
"""

import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

from epicycle import LinearRegression, LogisticRegression, Ridge

COMMON = """
import os, signal, sys, threading, time
import numpy as np
import epicycle as ep
from epicycle import LinearRegression, LogisticRegression, Ridge

def problem(n, p=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X[:, 0] + rng.logistic(size=n) > 0).astype(int)

def endless(**parameters):
    return LogisticRegression(tol=1e-300, max_iter=10**9, **parameters)

def interrupt(model, *data, after=0.3):
    sent = []
    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(after, send)
    timer.start()
    try:
        model.fit(*data)
        raise SystemExit("the fit ended by itself: " + str(model.n_iter_))
    except KeyboardInterrupt:
        took = time.perf_counter() - sent[0]
    timer.join()
    assert took < 1.0, took
    assert not hasattr(model, "coef_")
"""

SHORT = """
X, y = problem(40_000)
long_step = {"step": 1e-12}
assert LogisticRegression(n_jobs=2).fit(X, y).certificate_.holds
interrupt(endless(solver="gd", solver_options=long_step, n_jobs=2), X, y)
interrupt(endless(solver="adam", solver_options={"step": 1e-9, "schedule": "constant"}), X, y)
np.save(sys.argv[1], np.column_stack([X, y]))
source = ep.scan(sys.argv[1], target=20, batch_rows=2000)
interrupt(endless(solver="gd", solver_options=long_step, n_jobs=2), source)
assert LogisticRegression().fit(source).certificate_.holds
assert not [t for t in threading.enumerate() if t.name == "epicycle-reader"]
print("usable")
"""

MEMORY = """
X, y = problem(60_000)
long_step = {"step": 1e-12}
for parameters in (
    {"solver": "gd", "solver_options": long_step},
    {"solver": "gd", "solver_options": long_step, "n_jobs": 2},
    {"solver": "sgd", "solver_options": {"step": 1e-9, "schedule": "constant"}},
    {"solver": "adam", "solver_options": {"step": 1e-9, "schedule": "constant"}},
):
    interrupt(endless(**parameters), X, y)
    assert LogisticRegression().fit(X, y).certificate_.holds
three = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
interrupt(endless(solver="gd", solver_options=long_step), X, three)
ridge = Ridge(solver="sgd", tol=1e-300, max_iter=10**9, solver_options={"step": 1e-12, "schedule": "constant"})
interrupt(ridge, X, y)
assert Ridge().fit(X, y).certificate_.holds
print("usable")
"""

ONE_LONG_PASS = """
# A single statistic that takes seconds: many rows on one thread, and a wide Gram matrix.
X, y = problem(1_500_000)
interrupt(endless(solver="gd", solver_options={"step": 1e-12}, n_jobs=1), X, y)
wide = np.random.default_rng(0).normal(size=(12_000, 1200))
sent = []
timer = threading.Timer(0.15, lambda: (sent.append(time.perf_counter()), os.kill(os.getpid(), signal.SIGINT)))
timer.start()
try:
    while True:
        LinearRegression(n_jobs=1).fit(wide, wide[:, 0])
except KeyboardInterrupt:
    took = time.perf_counter() - sent[0]
timer.join()
assert took < 1.0, took
print("usable")
"""

FILES = """
X, y = problem(40_000)
np.save(sys.argv[1], np.column_stack([X, y]))
source = ep.scan(sys.argv[1], target=20, batch_rows=2000)
for n_jobs in (1, 2):
    interrupt(endless(solver="gd", solver_options={"step": 1e-12}, n_jobs=n_jobs), source)
    assert LogisticRegression().fit(source).certificate_.holds
assert not [t for t in threading.enumerate() if t.name == "epicycle-reader"]
print("usable")
"""

CLUSTER = """
import dask.array as da
from distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        X, y = (da.from_array(v, chunks=(5000, *v.shape[1:])).persist() for v in problem(20_000))
        expected = LogisticRegression().fit(X, y).coef_
        interrupt(endless(solver="gd", solver_options={"step": 1e-12}), X, y, after=1.5)
        assert np.array_equal(LogisticRegression().fit(X, y).coef_, expected)
    print("usable")
"""

CHILDREN = """
import multiprocessing, queue

def child(results):
    X, y = problem(12_000)
    coef = [LinearRegression().fit(X, y).coef_, LogisticRegression().fit(X, y).coef_[0]]
    coef.append(LogisticRegression(solver="lbfgs", n_jobs=2).fit(X, y + (X[:, 1] > 0)).coef_[0])
    results.put(np.concatenate(coef))

if __name__ == "__main__":
    results = queue.Queue()
    child(results)
    expected = results.get()
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        results = context.Queue()
        children = [context.Process(target=child, args=(results,)) for _ in range(2 if method == "fork" else 1)]
        for c in children:
            c.start()
        for _ in children:
            assert np.array_equal(results.get(timeout=60), expected), method
        for c in children:
            c.join(20)
            assert c.exitcode == 0, (method, c.exitcode)
    results = queue.Queue()
    threads = [threading.Thread(target=child, args=(results,)) for _ in range(4)]
    for t in threads:
        t.start()
    for _ in threads:
        assert np.array_equal(results.get(timeout=60), expected)
    print("usable")
"""

FORKED_DURING_A_FIT = """
# The parent forks while another of its threads is in the middle of a fit.
X, y = problem(60_000)
model = endless(solver="gd", solver_options={"step": 1e-12}, n_jobs=2)
stop = threading.Event()

class Stop:
    def setup(self, estimator, context): pass
    def on_fit_task_begin(self, estimator, context): pass
    def on_fit_task_end(self, estimator, context): return stop.is_set()
    def teardown(self, estimator, context): pass

fitting = threading.Thread(target=lambda: model.set_callbacks(Stop()).fit(X, y))
fitting.start()
time.sleep(0.5)
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        fits = LogisticRegression(n_jobs=2).fit(X, y), LinearRegression(n_jobs=2).fit(X, y)
        os._exit(0 if all(fit.converged_ for fit in fits) else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
fitting.join(30)
assert not fitting.is_alive()
print("usable")
"""

LEAK = """
import psutil
process = psutil.Process()
X, y = problem(300, 8)
labels = y + (X[:, 1] > 0.7)
frame = __import__("pandas").DataFrame(X, columns=list("abcdefgh"))

def round_of_fits():
    LinearRegression().fit(X, y).predict(X)
    Ridge(solver="lbfgs").fit(frame, y).predict(frame)
    LogisticRegression().fit(X, y).predict_proba(X)
    LogisticRegression(C=10.0).fit(X, labels).summary()
    try:
        LogisticRegression().fit(X, np.full(300, np.nan))
    except ValueError:
        pass

for _ in range(60):
    round_of_fits()
before = process.memory_info().rss
for _ in range(200):  # 1,000 fits
    round_of_fits()
growth = process.memory_info().rss - before
assert growth < 3 * 2**20, growth
print("usable")
"""


def run(tmp_path, code, *arguments):
    script = tmp_path / "story.py"
    script.write_text(COMMON + code)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.split()[-1] == "usable"


@pytest.mark.serial
def test_ctrl_c(tmp_path):
    run(tmp_path, SHORT, tmp_path / "rows.npy")


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.parametrize("story", [MEMORY, ONE_LONG_PASS], ids=["many passes", "one long pass"])
def test_ctrl_c_in_memory(tmp_path, story):
    run(tmp_path, story)


@pytest.mark.slow
@pytest.mark.serial
def test_ctrl_c_over_files(tmp_path):
    run(tmp_path, FILES, tmp_path / "rows.npy")


@pytest.mark.slow
@pytest.mark.serial
def test_ctrl_c_on_a_cluster(tmp_path):
    run(tmp_path, CLUSTER)


def test_children_after_a_fit_in_the_parent(tmp_path):
    run(tmp_path, CHILDREN)


def test_a_fork_in_the_middle_of_a_fit(tmp_path):
    run(tmp_path, FORKED_DURING_A_FIT)


@pytest.mark.slow
def test_a_thousand_fits_do_not_grow(tmp_path):
    run(tmp_path, LEAK)


@pytest.mark.serial
def test_a_second_thread_does_not_slow_small_fits():
    """1,000 x 10: a fit with two threads allowed takes no longer than with one, in the median of many."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    y = X[:, 0] + rng.normal(size=1000)
    for model, target in ((LinearRegression, y), (LogisticRegression, y > 0)):
        seconds = {1: [], 2: []}
        for _ in range(150):
            for n_jobs in (1, 2):
                start = time.perf_counter()
                model(n_jobs=n_jobs).fit(X, target)
                seconds[n_jobs].append(time.perf_counter() - start)
        assert np.median(seconds[2]) <= 1.15 * np.median(seconds[1])


# ------------------------------------------------------------------------------------------------ what stays behind


def fits(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    y = X[:, 0] + rng.logistic(size=n)
    two, three = (y > 0).astype(int), np.digitize(y, [-1, 1])
    return [
        LinearRegression().fit(X, y),
        LinearRegression(solver="qr").fit(X, y),
        LinearRegression().partial_fit(X, y),
        Ridge(solver="sgd", random_state=0, tol=1e-3).fit(X, y, np.abs(y)),
        LogisticRegression().fit(X, two),
        LogisticRegression(C=np.inf, solver="lbfgs").fit(X, two),
        LogisticRegression(solver="lbfgs", class_weight="balanced").fit(X, three),
    ]


def arrays_in(value, seen):
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
        if value.base is not None:
            yield from arrays_in(value.base, seen)
    elif isinstance(value, dict):
        for item in value.values():
            yield from arrays_in(item, seen)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from arrays_in(item, seen)
    elif hasattr(value, "__dict__"):
        yield from arrays_in(vars(value), seen)


def test_fitted_objects_hold_no_training_data():
    small, large = fits(400), fits(4003)
    for a, b in zip(small, large, strict=True):
        sizes = [array.size for array in arrays_in(vars(b), set()) if array.dtype != object]
        assert sizes
        assert max(sizes) < 1000
        # A longer history is all that may differ.
        for model in (a, b):
            del model.history_
        assert abs(len(pickle.dumps(a)) - len(pickle.dumps(b))) < 64


def test_a_fit_does_not_keep_the_arrays_alive():
    import gc
    import weakref

    class Watched(np.ndarray):
        pass

    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4)).view(Watched)
    y = (X[:, 0] > rng.normal(size=5000)).astype(float)
    gone = weakref.ref(X)
    models = [cls().fit(X, y) for cls in (LinearRegression, Ridge, LogisticRegression)]
    models.append(LogisticRegression(solver="sgd", random_state=0, tol=1e-3).fit(X, y))
    del X
    gc.collect()
    assert gone() is None
    assert all(model.converged_ for model in models)
