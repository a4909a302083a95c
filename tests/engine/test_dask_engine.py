"""Passes over Dask collections: on a cluster of two processes, on one worker, and on the local scheduler."""

import gc
import os
import pickle
import signal
import sys
import threading
import time

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import engine
from epicycle.data import ArrayData, DaskData, as_data
from epicycle.exceptions import DataError, EngineError

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test

N, P = 3_000, 4


def moments(batch, scale=1.0):
    X = batch.X.toarray() if sp.issparse(batch.X) else batch.X
    return X.T @ X * scale, X.T @ batch.y, batch.total_weight, np.array([batch.start, batch.n_rows])


def doubled(batch, column):
    return 2 * (batch.X @ np.eye(P)[column])


def pair(batch):
    return batch.X[:, :2]


def late(batch):
    time.sleep(0.3)
    return (batch.n_rows, batch.X.sum())


def failing(batch):
    raise ZeroDivisionError("planted")


@pytest.fixture(scope="module")
def one_worker():
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P)) + 3
    return X, X @ np.arange(P) + rng.normal(size=N), rng.uniform(size=N)


CUTS = [700, 1, 0, 1299, 400, 600]  # uneven, one of them empty


def arrays(problem):
    return tuple(da.from_array(a, chunks=(tuple(CUTS), *([3] if a.ndim == 2 else []))) for a in problem)


def arrays_of_unknown_sizes(problem):
    X, y, w = arrays(problem)
    keep = y > -np.inf
    return X.rechunk({1: -1})[keep], y[keep], w[keep]


def sparse(problem):
    X, y, w = arrays(problem)
    return X.rechunk({1: -1}).map_blocks(sp.csr_array, meta=sp.csr_array((0, P))), y, w


def frame(problem):
    X, y, w = problem
    df = pd.DataFrame(X, columns=list("abcd")).assign(y=y, w=w)
    ddf = dd.from_pandas(df, npartitions=5)
    return ddf[list("abcd")], ddf["y"], ddf["w"]


def frame_of_unknown_divisions(problem):
    return tuple(part.clear_divisions() for part in frame(problem))


COLLECTIONS = [arrays, arrays_of_unknown_sizes, sparse, frame, frame_of_unknown_divisions]


def check_sum(problem, state):
    X, y, w = problem
    assert_allclose(state[0], 2 * X.T @ X, rtol=1e-13)
    assert_allclose(state[1], X.T @ y, rtol=1e-12)
    assert_allclose(state[2], w.sum(), rtol=1e-13)
    assert state[3][1] == N


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_local_scheduler(problem, collection):
    X, y, w = collection(problem)
    data = as_data(X, y, w, target="numeric")
    assert isinstance(data, DaskData)
    assert (data.n_features, data.has_weight, data.n_targets, data.sparse) == (P, True, 1, collection is sparse)
    check_sum(problem, engine.sum(moments, data, 2.0))
    lazy = engine.map(doubled, data, 1)
    assert isinstance(lazy, da.Array)
    assert_array_equal(lazy.compute(), 2 * problem[0][:, 1])


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_two_workers_equal_one_to_the_bit(client, one_worker, problem, collection):
    data = as_data(*collection(problem), target="numeric")
    two = engine.sum(moments, data, 2.0)
    check_sum(problem, two)
    assert data.n_rows == N
    assert_array_equal(data.head().X.toarray() if data.sparse else data.head().X, problem[0][: data.head().n_rows])
    if not data.sparse:
        lazy = engine.map(pair, data)
        assert lazy.shape == (N, 2)
        assert_array_equal(lazy.compute(), problem[0][:, :2])
    signs = data.encode_target(np.sign)
    assert_allclose(engine.sum(moments, signs)[1], problem[0].T @ np.sign(problem[1]), rtol=1e-12)
    with one_worker.as_current():
        one = engine.sum(moments, as_data(*collection(problem), target="numeric"), 2.0)
    for a, b in zip(two, one, strict=True):
        assert_array_equal(a, b)


def at_an_odd_address(buffer):
    """A copy, as a message may hold it."""
    content = np.frombuffer(buffer, np.uint8)
    raw = np.empty(len(content) + 2, np.uint8)
    copy = raw[1 + raw.ctypes.data % 2 :][: len(content)]
    copy[:] = content
    return copy


@pytest.mark.parametrize("as_sparse", [False, True])
def test_a_partition_that_travelled_gives_the_same_bits(problem, as_sparse):
    X, y, w = problem
    part = ArrayData(sp.csr_array(X) if as_sparse else X, y, w)
    buffers = []
    packed = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
    odd = [at_an_odd_address(buffer.raw()) for buffer in buffers]
    assert len(odd) >= 3
    arrived = pickle.loads(packed, buffers=odd)
    for a, b in zip(engine.sum(moments, part), engine.sum(moments, arrived), strict=True):
        assert_array_equal(a, b)
    arrays = (arrived.X.data, arrived.X.indices, arrived.X.indptr) if as_sparse else (arrived.X,)
    assert all(a.flags.aligned for a in (*arrays, arrived.y, arrived.weight))


def test_many_partitions_and_large_parameters(client):
    X = da.ones((100, 2), chunks=(1, 2))
    data = as_data(X, X[:, 0], target="numeric")
    state = engine.sum(moments, data, np.ones((2, 2)))
    assert_array_equal(state[0], np.full((2, 2), 100.0))
    assert state[3][0] == sum(range(100))
    ones = np.ones(20_000)
    assert engine.sum(late_free, data, ones) == (100 * 20_000.0,)


def late_free(batch, vector):
    return (vector.sum() * batch.n_rows,)


def test_labels(client, problem):
    X, y, _ = arrays(problem)
    labels = y.map_blocks(lambda v: np.where(v > 10, "high", "low"), dtype="U4")
    data = as_data(X, labels, target="labels")
    codes = data.encode_target(lambda v: (v == "high").astype(np.int64))
    assert_allclose(engine.sum(moments, codes)[1], problem[0].T @ (problem[1] > 10), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y, w: (da.where(X > 5, np.nan, X), y, w), "Input X contains NaN"),
        (lambda X, y, w: (X, da.where(y > 5, np.inf, y), w), "Input y contains infinity"),
        (lambda X, y, w: (X, y, w - 0.5), "sample_weight: Negative"),
        (lambda X, y, w: (X, y[y > 18], w[y > 18]), "y: Found input variables with inconsistent numbers of samples"),
    ],
)
def test_bad_rows_are_found_where_they_are(problem, where, change, words):
    data = as_data(*change(*arrays(problem)), target="numeric")
    with pytest.raises(DataError, match=words + r"[\s\S]*in partition \d"):
        engine.sum(moments, data)


def test_weights_that_are_all_zero(client, problem):
    X, y, w = arrays(problem)
    data = as_data(X, y, 0 * w, target="numeric")
    with pytest.raises(DataError, match="sample_weight: every weight is zero"):
        engine.sum(moments, data)


def test_an_error_of_the_statistic_keeps_its_type(problem, where):
    data = as_data(arrays(problem)[0])
    with pytest.raises(ZeroDivisionError, match="planted"):
        engine.sum(failing, data)
    assert engine.sum(late_free, data, np.ones(1)) == (N,)


def test_nothing_is_gathered():
    data = as_data(da.ones((10, 2), chunks=5))
    with pytest.raises(EngineError, match="not gathered"):
        data.batches()


def test_predictions_are_lazy():
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("computed")):
        data = as_data(da.ones((10, 2), chunks=5))
        assert engine.map(pair, data).shape == (10, 2)


@pytest.mark.serial
def test_an_interrupt_cancels_the_pass(client):
    data = as_data(da.ones((40, 2), chunks=(2, 2)))
    engine.sum(late_free, data, np.ones(1))
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, send)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            engine.sum(late, data)
        assert time.perf_counter() - sent[0] < 1.0
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    start = time.perf_counter()
    assert engine.sum(late_free, data, np.ones(1)) == (40.0,)
    assert time.perf_counter() - start < 3.0  # the rest of the cancelled pass (another 2.5 s at least) does not run


def test_persisted_data_lives_as_long_as_it_is_used(client):
    def make():
        X = (da.arange(80, chunks=10).reshape(40, 2, limit="1GiB").rechunk((5, 2)).astype(float)).persist()
        return as_data(X), engine.map(pair, as_data(X * 2)), as_data(X)

    data, lazy, other = make()
    gc.collect()
    time.sleep(0.2)
    assert engine.sum(late_free, data, np.ones(1)) == (40,)
    assert lazy.sum().compute() == 2 * sum(range(80))
    del data
    assert engine.sum(late_free, other, np.ones(1)) == (40,)


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.parametrize("persisted", [False, True])
def test_the_partitions_of_a_lost_worker_are_made_again(client, persisted):
    X = da.arange(80, chunks=10).reshape(40, 2, limit="1GiB").rechunk((5, 2)).astype(float)
    data = as_data(X.persist() if persisted else X)
    engine.sum(late_free, data, np.ones(1))
    victim = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(0.4, os.kill, (victim, signal.SIGKILL))
    timer.start()
    assert engine.sum(late, data) == (40, sum(range(80)))
    timer.join()
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)
