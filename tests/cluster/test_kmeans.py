"""K-means: Lloyd's loop by brute force, scikit-learn's from the same start, bounds, starts, engines, bad input."""

import itertools
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import cluster as peer, datasets
from sklearn.base import clone

import epicycle as ep
from epicycle import KMeans
from epicycle.cluster._descent import require_no_rise
from epicycle.cluster.kmeans import _lloyd
from epicycle.cluster.kmeans._starts import first_row, parallel_plus_plus, plus_plus
from epicycle.data import as_data
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, DataError, ParameterError

ALGORITHMS = ["auto", "lloyd", "hamerly", "elkan", "yinyang"]


def lloyd(X, weight, centers, rounds=500):
    """Plain loop: distances to all centres, means of their rows; an empty cluster stays where it is."""
    for _ in range(rounds):
        label = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        means = centers.copy()
        for a in set(label):
            rows = label == a
            if weight[rows].sum() > 0:
                means[a] = weight[rows] @ X[rows] / weight[rows].sum()
        if np.array_equal(means, centers):
            break
        centers = means
    return label, centers


@pytest.fixture(scope="module")
def blobs():
    X, _ = datasets.make_blobs(900, centers=30, n_features=4, random_state=3)
    return X, X[:: len(X) // 40][:40].copy()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_is_the_plain_loop_and_scikit_learn(blobs, algorithm):
    X, start = blobs
    model = KMeans(40, init=start, tol=0, max_iter=1000, algorithm=algorithm).fit(X)
    label, centers = lloyd(X, np.ones(len(X)), start)
    theirs = peer.KMeans(40, init=start, n_init=1, tol=0, max_iter=1000).fit(X)
    assert_array_equal(model.labels_, label)
    assert_allclose(model.cluster_centers_, centers, rtol=1e-12, atol=1e-12)
    assert_array_equal(model.labels_, theirs.labels_)
    assert model.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)
    assert model.n_iter_ == theirs.n_iter_
    assert model.certificate_.holds


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 60),
    p=st.integers(1, 5),
    share=st.floats(0, 1),
    scale=st.sampled_from([1e-9, 1.0, 1e6]),
    offset=st.sampled_from([0.0, 1e3]),
    ties=st.booleans(),
    sparse=st.booleans(),
    algorithm=st.sampled_from(ALGORITHMS),
)
def test_any_rows_end_at_means_of_their_nearest(seed, n, p, share, scale, offset, ties, sparse, algorithm):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, p)).astype(float) if ties else rng.normal(size=(n, p))
    X = X if sparse else scale * (X + offset)
    k = max(1, round(share * n))  # up to as many centres as rows, more than distinct ones
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters; Elkan's bounds for one cluster
        model = KMeans(k, tol=0, algorithm=algorithm, random_state=seed).fit(sp.csr_array(X) if sparse else X)
    centers = model.cluster_centers_
    assert np.isfinite(centers).all()
    objective = np.asarray(model.history_["objective"])
    total = ((X - X.mean(axis=0)) ** 2).sum() + 1e-300
    assert (np.diff(objective) <= 1e-9 * total).all()
    squares = ((X[:, None] - centers) ** 2).sum(axis=2)
    assert_allclose(squares[np.arange(n), model.labels_], squares.min(axis=1), rtol=1e-9, atol=1e-9 * total)
    assert_array_equal(model.predict(sp.csr_array(X) if sparse else X), model.labels_)
    assert model.inertia_ == pytest.approx(squares.min(axis=1).sum(), abs=1e-9 * total)
    for a in set(model.labels_):  # stationary
        assert_allclose(X[model.labels_ == a].mean(axis=0), centers[a], atol=1e-9 * (abs(X).max() + 1e-300))


@given(seed=st.integers(0, 2**20), k=st.integers(1, 6))
def test_weights_are_repetitions_and_order_and_units_play_no_part(seed, k):
    rng = np.random.default_rng(seed)
    X, times = rng.normal(size=(25, 3)), rng.integers(0, 4, 25)
    start = rng.normal(size=(k, 3))
    times[:k] = 1
    weighted = KMeans(k, init=start, tol=0).fit(X, sample_weight=times)
    for other in (
        KMeans(k, init=start, tol=0).fit(np.repeat(X, times, axis=0)),
        KMeans(k, init=start, tol=0).fit(X[::-1], sample_weight=times[::-1]),
        KMeans(k, init=start, tol=0).fit(pd.DataFrame(X), sample_weight=4.0 * times),
    ):
        assert_allclose(other.cluster_centers_, weighted.cluster_centers_, atol=1e-12)
    scaled = KMeans(k, init=8 * start, tol=0).fit(8 * X, sample_weight=times)
    assert_allclose(scaled.cluster_centers_, 8 * weighted.cluster_centers_, atol=1e-12)


def test_the_lower_bound_is_below_the_best_of_all_clusterings():
    rng = np.random.default_rng(0)
    for k in (2, 3):
        X = rng.normal(size=(8, 4)) * [3.0, 2.0, 1.0, 1.0]
        best = min(
            sum(((X[label == a] - X[label == a].mean(axis=0)) ** 2).sum() for a in set(label))
            for label in map(np.array, itertools.product(range(k), repeat=8))
        )
        model = KMeans(k, n_init=30, init="random", random_state=0).fit(X)
        assert model.inertia_ == pytest.approx(best, rel=1e-12)
        assert 0 < model.lower_bound_ <= best
    # On a line through two points the bound is met.
    flat = KMeans(2, random_state=0).fit(np.array([[0.0, 0], [0, 2], [9, 0], [9, 2]]))
    assert flat.lower_bound_ == pytest.approx(flat.inertia_)


def test_an_empty_cluster_takes_the_farthest_row():
    X = np.array([[0.0], [1.0], [2.0], [100.0]])
    model = KMeans(2, init=np.array([[1.0], [1e6]]), tol=0).fit(X)
    assert sorted(model.cluster_centers_.ravel()) == [1.0, 100.0]
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_clusters \(3\)"):
        KMeans(3, random_state=0).fit(np.array([[0.0], [0.0], [1.0], [1.0]]))


def test_a_distortion_that_rises_is_an_error(blobs, monkeypatch):
    X, start = blobs
    require_no_rise(1.0, 1.0 + 1e-10, 1.0, 2)
    for value in (1.1, np.nan):
        with pytest.raises(ConvergenceError, match="the distortion rose from 1 to"):
            require_no_rise(1.0, value, 1.0, 2)
    model = KMeans(40, init=start).fit(X)
    # Centres that run away from their rows are noticed in the second round.
    sums, calls = _lloyd.cluster_sums, iter(range(100))

    def shrunk(*arguments):
        found = sums(*arguments)
        return _lloyd.Clusters(found.sums / (1 + next(calls)), found.weight)

    monkeypatch.setattr(_lloyd, "cluster_sums", shrunk)
    monkeypatch.setattr(_lloyd, "_FRESH_SUMS", 1)
    with pytest.raises(ConvergenceError, match="in round 2"):
        model.fit(X)
    assert model.certificate_.holds  # as before


def test_plus_plus_draws_by_squared_distance():
    X = np.array([[0.0], [1.0], [3.0]])
    weight = np.array([1.0, 2.0, 1.0])
    draws = [plus_plus(X, weight, 2, np.random.default_rng(i), trials=1) for i in range(4000)]
    first = np.bincount([a for a, _ in draws], minlength=3) / 4000
    assert_allclose(first, weight / 4, atol=0.03)
    second = np.bincount([b for a, b in draws if a == 0], minlength=3)
    assert_allclose(second / second.sum(), [0, 2 / 11, 9 / 11], atol=0.05)


def test_a_row_of_zeros_is_drawn_like_any_other():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    first = [first_row(as_data(X), seed, None)[0, 0] for seed in range(800)]
    assert_allclose(np.bincount(np.array(first, dtype=int), minlength=4) / 800, 0.25, atol=0.06)


def test_starts_in_batches_do_not_depend_on_the_batches(blobs):
    X, _ = blobs
    whole = parallel_plus_plus(as_data(X), 30, 5, None)
    parts = parallel_plus_plus(as_data(da.from_array(X, chunks=(173, 4))), 30, 5, None)
    assert_array_equal(np.unique(whole, axis=0), np.unique(parts, axis=0))
    found, known = (KMeans(30, init=init, random_state=0).fit(X).inertia_ for init in ("k-means||", "k-means++"))
    assert found < 2 * known
    assert KMeans(30, init="random", n_init=3, random_state=0).fit(X).inertia_ < 5 * known


def test_the_same_from_memory_files_and_dask(blobs, tmp_path):
    X, start = blobs
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(w=weight)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    model = KMeans(40, init=start, tol=0).fit(X, sample_weight=weight)
    scanned = KMeans(40, init=start, tol=0).fit(ep.data.scan(tmp_path / "rows.parquet", weight="w"))
    spread = KMeans(40, init=start, tol=0).fit(
        da.from_array(X, chunks=(250, 4)), sample_weight=da.from_array(weight, chunks=250)
    )
    for other in (scanned, spread):
        assert_allclose(other.cluster_centers_, model.cluster_centers_, rtol=1e-10)
        assert other.inertia_ == pytest.approx(model.inertia_, rel=1e-10)
        assert other.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-8)
    assert_array_equal(np.asarray(spread.predict(da.from_array(X, chunks=(250, 4)))), model.labels_)
    assert KMeans(5, random_state=0).fit(ep.data.scan(tmp_path / "rows.parquet", weight="w")).certificate_.holds


def test_threads_types_and_files_change_nothing(blobs, tmp_path):
    X, start = blobs
    one, two = (KMeans(40, random_state=1, n_jobs=jobs).fit(X) for jobs in (1, 2))
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    single = KMeans(40, init=start).fit(X.astype(np.float32))
    assert single.cluster_centers_.dtype == np.float32
    assert_array_equal(single.predict(X.astype(np.float32)), single.labels_)
    one.save(tmp_path / "model.epi")
    assert_array_equal(ep.io.load(tmp_path / "model.epi").predict(X), one.labels_)
    assert_allclose(one.transform(one.cluster_centers_).diagonal(), 0, atol=1e-14)
    assert one.score(X) == pytest.approx(-one.inertia_)
    assert list(one.get_feature_names_out()[:2]) == ["kmeans0", "kmeans1"]


def test_a_fit_that_was_stopped_goes_on(blobs, tmp_path):
    X, _ = blobs
    whole = KMeans(20, init="random", n_init=3, random_state=2).fit(X)
    rounds = whole.history_.n_iter

    file = tmp_path / "run.epi"
    first = clone(whole).set_callbacks(ep.Checkpoint(file), ep.TimeLimit(1e-9))
    with ep.config(on_nonconvergence="ignore"):
        first.fit(X)
    assert first.history_.n_iter < rounds
    second = ep.Checkpoint.resume(file).set_callbacks().fit(X)
    assert_allclose(second.cluster_centers_, whole.cluster_centers_, rtol=1e-12)
    assert_allclose(second.history_["objective"], whole.history_["objective"], rtol=1e-9)


def test_bad_input_is_refused_by_name(blobs):
    X, start = blobs
    with pytest.raises(DataError, match="n_samples=3 should be >= n_clusters=8"):
        KMeans().fit(X[:3])
    with pytest.raises(ParameterError, match="does not match the number of clusters 3"):
        KMeans(3, init=start).fit(X)
    with pytest.raises(DataError, match="does not match the number of features of the data 4"):
        KMeans(40, init=start[:, :2]).fit(X)
    with pytest.raises(DataError, match="init: contains NaN"):
        KMeans(40, init=np.where(start > 0, np.nan, start)).fit(X)
    with pytest.raises(DataError, match="X: sums of squares"):
        KMeans(2).fit(X * 1e200)
    with pytest.raises(ParameterError, match="n_clusters=0"):
        KMeans(0).fit(X)
    with pytest.warns(ConvergenceWarning):
        KMeans(20, max_iter=1, random_state=0).fit(X)
