"""Boosting of Dask collections: the model of the same rows in memory, on the local scheduler and on two processes."""

import os
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
from distributed import Client
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import GradientBoostingClassifier, GradientBoostingRegressor
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.tree.boosting import _partition_nodes as part_nodes

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test

N, P = 1500, 5
CHUNKS = (300, 1, 0, 649, 200, 350)  # uneven, one of them empty


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.3 * rng.normal(size=N)
    X[rng.random((N, P)) < 0.1] = np.nan
    weight = rng.uniform(size=N) * (rng.random(N) < 0.9)
    return X, y, weight


def on_dask(array):
    return None if array is None else da.from_array(array, chunks=(CHUNKS, *[-1] * (array.ndim - 1)))


def target_of(y, kind):
    return {
        "numbers": y,
        "positive": np.exp(y),
        "two": np.where(y > 0.2, "yes", "no"),
        "three": np.digitize(y, [-0.5, 0.5]),
    }[kind]


def both(cls, X, y, weight=None, **options):
    options = {"n_estimators": 6, "max_leaf_nodes": 10, "random_state": 0, **options}
    in_memory = cls(**options).fit(X, y, weight)
    return in_memory, cls(**options).fit(on_dask(X), on_dask(y), on_dask(weight))


def check_equal(in_memory, distributed, X):
    """The same splits, and the same predictions; objectives are sums over rows in another order."""
    for name in ("nodes", "roots", "levels", "count"):
        assert_array_equal(distributed.trees_[name], in_memory.trees_[name])
    assert in_memory.trees_["roots"][-1] > 20  # there is something to compare
    assert_allclose(
        distributed.predict_proba(X) if hasattr(distributed, "classes_") else distributed.predict(X),
        in_memory.predict_proba(X) if hasattr(in_memory, "classes_") else in_memory.predict(X),
        rtol=1e-9,
        atol=1e-12,
    )
    assert_allclose(distributed.history_.objective, in_memory.history_.objective, rtol=1e-12)
    assert_array_equal(distributed.history_.leaves, in_memory.history_.leaves)
    assert distributed.certificate_.kind == "none"


R, C = GradientBoostingRegressor, GradientBoostingClassifier
CASES = {
    "numbers": (R, "numbers", {}),
    "two classes": (C, "two", {}),
    "three classes": (C, "three", {"class_weight": "balanced"}),
    "every row may be a leaf": (C, "two", {"min_samples_leaf": 1, "max_leaf_nodes": None, "max_depth": 4}),
    "samples of rows": (C, "three", {"subsample": 0.5}),
    "samples of rows and features": (R, "numbers", {"subsample": 0.3, "max_features": 0.5}),
    "hardly a row is drawn": (R, "numbers", {"subsample": 2e-3, "min_samples_leaf": 1, "n_estimators": 40}),
    "monotone": (C, "two", {"monotonic_cst": [1, 0, -1, 0, 0], "l2_regularization": 1.0}),
    "interactions": (R, "numbers", {"interaction_cst": [[0, 1], [2]]}),
    "categories": (R, "positive", {"categorical_features": [4], "loss": "gamma"}),
    "poisson": (R, "positive", {"loss": "poisson", "min_split_gain": 0.01}),
    "huber": (R, "numbers", {"loss": "huber", "delta": 0.3}),
    "absolute": (R, "numbers", {"loss": "absolute_error"}),
    "quantile": (R, "numbers", {"loss": "quantile", "quantile": 0.8, "subsample": 0.7}),
    "first order": (R, "positive", {"loss": "tweedie", "order": 1}),
    "first order, classes": (C, "three", {"order": 1, "subsample": 0.8, "n_estimators": 3}),
    "stopped early": (C, "two", {"n_iter_no_change": 2, "learning_rate": 1.0, "n_estimators": 30}),
}


@pytest.mark.parametrize(("case", "weighted"), [*((c, i % 2 == 0) for i, c in enumerate(CASES)), ("numbers", False)])
def test_the_model_is_that_of_memory(problem, case, weighted):
    X, y, weight = problem
    cls, kind, options = CASES[case]
    if case == "categories":
        X = np.column_stack([X[:, :4], np.floor(3 * np.nan_to_num(X[:, 0]))])
    models = both(cls, X, target_of(y, kind), weight if weighted else None, **options)
    check_equal(*models, X)
    if case == "stopped early":
        assert 0 < models[1].n_estimators_ == models[0].n_estimators_ == len(models[1].history_.objective) < 30
        assert_allclose(models[1].history_.validation, models[0].history_.validation, rtol=1e-12)


class SoftAbsolute:
    """log cosh of the residual, as a user might write it."""

    def value(self, y, s):
        return np.logaddexp(y - s, s - y)

    def gradient(self, y, s):
        return np.tanh(s - y)

    def curvature(self, y, s):
        return 1 / np.cosh(s - y) ** 2


def test_a_loss_of_the_user(problem):
    X, y, weight = problem
    check_equal(*both(R, X, y, weight, loss=SoftAbsolute()), X)


def test_bin_edges_of_a_sample(problem, monkeypatch):
    monkeypatch.setattr("epicycle.tree._binning.SAMPLE_ROWS", 400)
    X, y, weight = problem
    for w in (None, weight):
        check_equal(*both(R, X, y, w), X)
    filled = np.where(np.isnan(X) | (np.abs(X) < 0.7), 0.0, X)
    in_memory = R(n_estimators=6, random_state=0).fit(sp.csr_array(filled), y)
    lazy = on_dask(filled).map_blocks(sp.csr_array, meta=sp.csr_array((0, P)))
    check_equal(in_memory, R(n_estimators=6, random_state=0).fit(lazy, on_dask(y)), filled)


def frame_of(problem):
    X, y, _ = problem
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=list("abcde"))
    words = np.array(["north", "south", "east", "west", None], object)[rng.integers(0, 5, N)]
    frame["f"] = pd.Categorical(words, categories=["west", "south", "east", "north", "nowhere"])
    return frame, pd.Series(y + (words == "east"), name="y")


def test_frames_with_categories(problem):
    frame, y = frame_of(problem)
    table = dd.from_pandas(frame.assign(y=y), npartitions=4).clear_divisions()  # sizes are not known either
    options = {"n_estimators": 6, "random_state": 0, "subsample": 0.8}
    in_memory = R(**options).fit(frame, y)
    distributed = R(**options).fit(table[list("abcdef")], table["y"])
    check_equal(in_memory, distributed, frame)
    assert distributed.categories_[5].tolist() == ["east", "north", "south", "west"]
    assert distributed.feature_names_in_.tolist() == list("abcdef")
    assert_array_equal(distributed.predict(table[list("abcdef")]).compute(), distributed.predict(frame))
    with pytest.raises(DataTypeError, match="learnt categories from a frame"):
        distributed.predict(on_dask(problem[0]))
    strict = R(**options, handle_unknown="error").fit(table[list("abcdef")], table["y"])
    with pytest.raises(DataError, match="'f' has levels that the fit did not see: 'up'"):
        strict.predict(dd.from_pandas(frame.assign(f=pd.Categorical(["up"] * N)), npartitions=2)).compute()


def test_validation_sets_of_any_kind(problem):
    X, y, _ = problem
    options = {"n_estimators": 40, "n_iter_no_change": 3, "learning_rate": 0.5, "random_state": 0}
    train, test = (X[:1000], y[:1000]), (X[1000:], y[1000:])
    expected = R(**options).fit(*train, X_val=test[0], y_val=test[1])
    lazy = [[da.from_array(a, chunks=(170, -1)[: a.ndim]) for a in part] for part in (train, test)]
    for rows, held in ((lazy[0], test), (lazy[0], lazy[1]), (train, lazy[1])):
        model = R(**options).fit(*rows, X_val=held[0], y_val=held[1])
        check_equal(expected, model, X)
        assert_allclose(model.history_.validation, expected.history_.validation, rtol=1e-12)
        assert model.n_estimators_ == expected.n_estimators_ < 40


def test_more_rounds(problem, monkeypatch):
    X, y, weight = problem
    lazy = [on_dask(a) for a in (X, y, weight)]
    in_memory = R(n_estimators=7, random_state=0).fit(X, y, weight)
    monkeypatch.setattr("epicycle.tree.boosting._distributed.RECOMPUTE_EVERY", 3)
    check_equal(in_memory, R(n_estimators=7, random_state=0).fit(*lazy), X)
    warm = R(n_estimators=4, random_state=0, warm_start=True).fit(*lazy)
    check_equal(in_memory, warm.set_params(n_estimators=7).fit(*lazy), X)


def test_few_nodes_at_a_time(problem, monkeypatch):
    monkeypatch.setattr("epicycle.tree.boosting._distributed.BATCH_BYTES", 1)
    X, y, _ = problem
    check_equal(*both(C, X, target_of(y, "three"), n_estimators=2), X)


def test_a_tree_costs_passes_by_its_depth(problem, monkeypatch):
    passes = []
    original = part_nodes.histograms

    def counted(growing, part, *arguments):
        passes.append(part.number)
        return original(growing, part, *arguments)

    monkeypatch.setattr(part_nodes, "histograms", counted)
    X, y, _ = problem
    model = R(n_estimators=1, max_leaf_nodes=31, min_samples_leaf=5).fit(on_dask(X), on_dask(y))
    assert model.history_.leaves[0] == 31
    assert passes.count(0) <= 12


BAD = {
    "a target that the loss does not take": (R, "numbers", {"loss": "poisson"}, DataError, "targets >= 0"),
    "only zeros": (R, "zeros", {"loss": "poisson"}, DataError, "a positive target"),
    "one class": (C, "zeros", {}, DataError, "2 classes"),
    "NaN in y": (R, "nan", {}, DataError, "Input y contains NaN"),
    "nothing is left": (
        R,
        "numbers",
        {"validation_fraction": 0.9999, "n_iter_no_change": 2},
        ParameterError,
        "none of",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input(problem, kind):
    X, y, _ = problem
    cls, target, options, error, words = BAD[kind]
    y = {"zeros": 0 * y, "nan": np.where(y > 1, np.nan, y)}.get(target, y)
    model = cls(**options)
    with pytest.raises(error, match=words):
        model.fit(on_dask(X), on_dask(y))
    assert not hasattr(model, "trees_")
    with pytest.raises(DataError, match="no row of positive weight"):
        R().fit(on_dask(X), on_dask(problem[1]), on_dask(np.zeros(N)))


def test_nothing_to_split(problem):
    y = problem[1]
    for bad in (np.zeros((N, 2)), np.full((N, 2), np.nan)):
        model = R(n_estimators=5).fit(on_dask(bad), on_dask(y))
        assert_allclose(model.predict(bad[:3]), y.mean())
        assert model.history_.leaves.tolist() == [1.0] * 5


# ------------------------------------------------------------------------------------------------ on a cluster


@pytest.mark.parametrize("case", ["three classes", "quantile"])
def test_two_workers(client, problem, case):
    X, y, weight = problem
    cls, kind, options = CASES[case]
    options = {"n_estimators": 3, **options}
    check_equal(*both(cls, X, target_of(y, kind), weight, **options), X)


def test_frames_on_two_workers(client, problem):
    frame, y = frame_of(problem)
    table = dd.from_pandas(frame.assign(y=y), npartitions=4)
    models = [R(n_estimators=3).fit(frame, y), R(n_estimators=3).fit(table[list("abcdef")], table["y"])]
    check_equal(*models, frame)


def test_nothing_is_gathered(client, problem, monkeypatch):
    X, y, _ = problem
    many = da.from_array(np.tile(X, (20, 1)), chunks=(6000, -1)), da.from_array(np.tile(y, 20), chunks=6000)
    sizes = []
    gather = Client.gather

    def recorded(self, futures, *arguments, **options):
        got = gather(self, futures, *arguments, **options)
        sizes.append(len(cloudpickle.dumps(got)))
        return got

    monkeypatch.setattr(Client, "gather", recorded)
    R(n_estimators=2, max_bins=32, max_leaf_nodes=8, random_state=0).fit(*many)
    assert len(sizes) > 5
    assert sorted(sizes)[-2] < 20 * N * P / 4  # but for the sample that the cuts are made of


@pytest.mark.slow
@pytest.mark.serial
def test_what_a_lost_worker_held_is_made_again(client, problem):
    X, y, _ = problem
    killed = []

    timer = threading.Timer(1.5, lambda: killed.append(kill_one(client)))
    timer.start()
    try:
        while True:  # until one of them has seen a worker go
            distributed = R(n_estimators=6, max_leaf_nodes=6).fit(on_dask(X), on_dask(y))
            if killed:
                break
    finally:
        timer.join()
    check_equal(R(n_estimators=6, max_leaf_nodes=6).fit(X, y), distributed, X)


def kill_one(client):
    victim = next(iter(client.run(os.getpid).values()))
    os.kill(victim, signal.SIGKILL)
    return victim


@pytest.mark.serial
def test_an_interrupt_ends_the_fit(problem, where):
    X, y, _ = problem
    lazy = on_dask(X), on_dask(y)
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, send)
    model = R(n_estimators=100_000, learning_rate=1e-3)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            model.fit(*lazy)
        assert time.perf_counter() - sent[0] < 2.0
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert not hasattr(model, "trees_")
    assert R(n_estimators=1).fit(*lazy).n_estimators_ == 1


def test_one_thread_of_the_local_scheduler(problem):
    X, y, _ = problem
    with dask.config.set(scheduler="synchronous"):
        check_equal(*both(R, X, y, n_estimators=3), X)
