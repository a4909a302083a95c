"""Bisecting k-means: the best of all splits by brute force, the tree, both strategies, equal rows."""

import itertools
import warnings

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import cluster as peer, datasets

from epicycle import BisectingKMeans
from epicycle.exceptions import ConvergenceWarning, DataError


def scatter(X):
    return ((X - X.mean(axis=0)) ** 2).sum() if len(X) else 0.0


def best_split(X):
    labels = [np.array((0, *rest)) for rest in itertools.product((0, 1), repeat=len(X) - 1) if any(rest)]
    return min(labels, key=lambda label: scatter(X[label == 0]) + scatter(X[label == 1]))


@pytest.mark.parametrize("seed", range(3))
def test_every_split_is_the_best_of_all(seed):
    X = np.random.default_rng(seed).normal(size=(9, 2))
    parts = [X]
    for k in (2, 3, 4):
        worst = max(range(len(parts)), key=lambda i: scatter(parts[i]))
        part = parts.pop(worst)
        label = best_split(part)
        parts += [part[label == 0], part[label == 1]]
        model = BisectingKMeans(k, n_init=20, tol=0, random_state=0).fit(X)
        assert model.inertia_ == pytest.approx(sum(map(scatter, parts)), rel=1e-9)
        assert_allclose(sorted(np.bincount(model.labels_)), sorted(map(len, parts)))


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(2, 40),
    ties=st.booleans(),
    sparse=st.booleans(),
    strategy=st.sampled_from(["biggest_inertia", "largest_cluster"]),
    share=st.floats(0, 1),
)
def test_labels_are_those_of_the_tree_and_nothing_rises(seed, n, ties, sparse, strategy, share):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)).astype(float) if ties else rng.normal(size=(n, 2))
    k = max(1, round(share * n))
    table = sp.csr_array(X) if sparse else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BisectingKMeans(k, bisecting_strategy=strategy, random_state=seed, tol=0).fit(table)
    assert_array_equal(model.predict(table), model.labels_)
    assert (np.diff(model.history_["objective"]) <= 1e-9 * scatter(X)).all()
    assert np.isfinite(model.cluster_centers_).all()
    assert len(np.unique(model.labels_)) == min(k, len(np.unique(X, axis=0)))
    expected = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
    assert model.inertia_ == pytest.approx(expected, abs=1e-9)
    for a in set(model.labels_):
        assert_allclose(model.cluster_centers_[a], X[model.labels_ == a].mean(axis=0), atol=1e-9)


def test_strategies_weights_and_the_peer():
    X, _ = datasets.make_blobs([300, 40, 40], centers=[[0, 0], [30, 0], [0, 40]], random_state=0)
    for strategy in ("biggest_inertia", "largest_cluster"):
        options = {"n_init": 5, "random_state": 0, "bisecting_strategy": strategy, "tol": 0}
        for k in (2, 3, 4, 5):
            ours = BisectingKMeans(k, **options).fit(X)
            theirs = peer.BisectingKMeans(k, **options).fit(X)
            assert ours.inertia_ <= theirs.inertia_ * 1.02
    # The third split by weight takes the blob of 300 rows apart, though it is not the widest with the outlier.
    far = np.vstack([X, [[0.0, 60.0]]])
    by_weight = BisectingKMeans(4, n_init=5, random_state=0, bisecting_strategy="largest_cluster").fit(far)
    assert np.bincount(by_weight.labels_).max() < 200
    times = np.random.default_rng(0).integers(1, 4, len(X))
    one = BisectingKMeans(4, n_init=5, random_state=0, tol=0).fit(X, sample_weight=times)
    other = BisectingKMeans(4, n_init=5, random_state=0, tol=0).fit(np.repeat(X, times, axis=0))
    assert_allclose(np.sort(one.cluster_centers_, axis=0), np.sort(other.cluster_centers_, axis=0), atol=1e-9)


def test_equal_rows_and_bad_input():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_clusters \(3\)"):
        model = BisectingKMeans(3, random_state=0).fit(X)
    assert model.inertia_ == 0
    assert_array_equal(model.predict(X), model.labels_)
    with pytest.raises(DataError, match="expected rows in memory"):
        BisectingKMeans(2).fit(da.from_array(X, chunks=(2, 1)))
    with pytest.raises(DataError, match="n_samples=4 should be >= n_clusters=8"):
        BisectingKMeans().fit(X)
