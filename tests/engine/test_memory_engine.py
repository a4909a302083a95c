"""Passes over arrays in memory: right, in order, the same bits on any number of threads, and tidy when they fail."""

import gc
import threading
import time
import weakref

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from hypothesis import given, settings as hypothesis_settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import engine
from epicycle.core._settings import config, get_config
from epicycle.core._threads import cpu_count
from epicycle.data import ArrayData, as_data
from epicycle.engine._fold import Fold
from epicycle.engine._ordered import in_order
from epicycle.exceptions import EngineError


def gram(batch, scale=1.0):
    X = batch.X
    return ((X.T @ X).toarray() if sp.issparse(X) else X.T @ X) * scale, X.T @ batch.y, batch.total_weight


class Trail:
    """Adds up to the order of addition."""

    def __init__(self, starts):
        self.starts = starts

    def __add__(self, other):
        return Trail(self.starts + other.starts)


def trail(batch):
    time.sleep(0.002 if batch.start == 0 else 0)  # the first block is late
    return (Trail([batch.start]),)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60_000, 30)) + 5, rng.normal(size=60_000), rng.uniform(size=60_000)


@pytest.mark.parametrize("container", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, np.float32])
def test_sum_is_right_and_has_the_same_bits_on_any_number_of_threads(problem, container):
    X, y, w = problem
    data = as_data(container(X), y, w, target="numeric")
    assert data.n_blocks >= 3
    first, *others = [engine.sum(gram, data, 2.0, n_jobs=k) for k in (1, 2, 4)]
    for state in others:
        for a, b in zip(first, state, strict=True):
            assert_array_equal(a, b)
    tolerance = 1e-5 if container is np.float32 else 1e-12
    assert_allclose(first[0], 2 * X.T @ X, rtol=tolerance)
    assert_allclose(first[1], X.T @ y, rtol=tolerance, atol=1e-9 / tolerance**0.5)
    assert_allclose(first[2], w.sum(), rtol=1e-13)


@pytest.mark.parametrize("n_jobs", [1, 2, 4, 9])
def test_addition_goes_from_left_to_right(problem, n_jobs):
    data = as_data(problem[0])
    (order,) = engine.sum(trail, data, n_jobs=n_jobs)
    assert order.starts == [b.start for b in data.batches()]


def doubled(batch, column):
    return 2 * batch.X[:, column]


def pairs(batch):
    return np.asarray(batch.X[:, :2])


def position(batch):
    return batch.start + np.arange(batch.n_rows, dtype=np.int32 if batch.start else np.int64)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_map_keeps_the_order_of_the_rows(problem, n_jobs):
    data = as_data(problem[0])
    assert_array_equal(engine.map(doubled, data, 3, n_jobs=n_jobs), 2 * problem[0][:, 3])
    assert_array_equal(engine.map(pairs, data, n_jobs=n_jobs), problem[0][:, :2])
    assert_array_equal(engine.map(position, data, n_jobs=n_jobs), np.arange(60_000))


def test_a_statistic_of_one_block_is_returned_as_it_is():
    data = as_data(np.eye(3))
    assert data.n_blocks == 1
    total = engine.sum(lambda b: (b.X.sum(), "text"), data)
    assert total == (3.0, "text")


def test_terms_are_never_written_to(problem):
    kept = []

    def statistic(batch, constant):
        term = np.ones(2)
        kept.append(term)
        return term, constant

    constant = np.array([1.0, 2.0])
    data = as_data(problem[0])
    total = engine.sum(statistic, data, constant, n_jobs=2)
    assert_array_equal(constant, [1, 2])
    assert_array_equal(total[0], [data.n_blocks] * 2)
    assert all((term == 1).all() for term in kept)


@hypothesis_settings(max_examples=40)
@given(st.lists(st.floats(-1e10, 1e10), min_size=1, max_size=40), st.integers(1, 5))
def test_fold_equals_python_addition(values, threads):
    fold = Fold()
    in_order(iter(values), lambda v: (np.array([v, 1.0]), v), fold.add, threads)
    expected = values[0]
    for v in values[1:]:
        expected = expected + v
    assert fold.total[1] == expected
    assert_array_equal(fold.total[0], [expected, len(values)])


def test_states_alive_are_bounded():
    alive, most, lock = 0, 0, threading.Lock()

    def work(i):
        nonlocal alive, most
        time.sleep(0.03 if i == 0 else 0)
        with lock:
            alive += 1
            most = max(most, alive)
        return i

    def consume(i):
        nonlocal alive
        with lock:
            alive -= 1

    in_order(iter(range(300)), work, consume, 3)
    assert most <= 6


class Planted(Exception):  # noqa: N818
    pass


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_an_error_keeps_its_type_and_stops_the_rest(problem, n_jobs):
    seen = []

    def failing(batch):
        seen.append(batch.start)
        if len(seen) == 2:
            raise Planted("in the second block")
        time.sleep(0.005)
        return (1,)

    data = as_data(np.broadcast_to(0.0, (2_000_000, 4)), check_finite=False)
    assert data.n_blocks > 20
    with pytest.raises(Planted, match="second block"):
        engine.sum(failing, data, n_jobs=n_jobs)
    assert len(seen) < 2 + 2 * n_jobs
    assert engine.sum(trail, as_data(problem[0]), n_jobs=n_jobs)[0].starts[0] == 0  # the engine is as good as new


def test_errors_of_use():
    data = as_data(np.ones((5, 2)))
    with pytest.raises(EngineError, match="expected a tuple"):
        engine.sum(lambda b: b.X.sum(), data)
    with pytest.raises(EngineError, match=r"shape \(2,\) for a batch of 5 rows"):
        engine.map(lambda b: b.X.sum(axis=0), data)
    with pytest.raises(EngineError, match="no engine for object"):
        engine.sum(gram, object())


def test_a_pass_inside_a_pass_runs_on_its_own_thread(problem):
    inner = as_data(problem[0])

    def outer(batch):
        names = []
        engine.sum(lambda b: (names.append(threading.current_thread().name) or 0,), inner, n_jobs=4)
        return (set(names) == {threading.current_thread().name},)

    assert engine.sum(outer, inner, n_jobs=2)[0] == inner.n_blocks  # True adds up


def test_settings_and_error_state_reach_the_helpers(problem):
    data = as_data(problem[0])
    with config(n_jobs=3), np.errstate(divide="raise"):
        total = engine.sum(lambda b: (get_config().n_jobs, np.geterr()["divide"] == "raise"), data)
    assert total == (3 * data.n_blocks, data.n_blocks)


@pytest.mark.serial
def test_a_small_sum_costs_microseconds():
    data = as_data(np.ones((10, 2)))

    def cost():
        start = time.perf_counter()
        for _ in range(200):
            engine.sum(trail_free, data)
        return (time.perf_counter() - start) / 200

    assert min(cost() for _ in range(5)) < 60e-6


def trail_free(batch):
    return (batch.start,)


@pytest.mark.serial
def test_memory_and_threads_do_not_grow(problem):
    small, large = as_data(problem[0][:100], problem[1][:100], target="numeric"), as_data(problem[0][:20_000])
    process = psutil.Process()

    def many(times):
        for _ in range(times):
            engine.sum(gram, small)
            engine.sum(trail_free, large, n_jobs=2)
            as_data(problem[0][:100], problem[1][:100], target="numeric")

    many(100)
    before, threads = process.memory_info().rss, threading.active_count()
    many(1000)
    assert process.memory_info().rss - before < 4 << 20
    assert threading.active_count() <= threads + cpu_count()


def test_the_data_set_is_not_kept():
    data = ArrayData(np.ones((100_000, 4)))
    engine.sum(trail_free, data, n_jobs=2)
    alive = weakref.ref(data)
    del data
    gc.collect()
    assert alive() is None
