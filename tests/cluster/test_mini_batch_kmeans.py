"""Mini-batch k-means: scikit-learn's steps from the same start, formulas by hand, samples, streams, the certificate."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import cluster as peer, datasets

import epicycle as ep
from epicycle import KMeans, MiniBatchKMeans
from epicycle.cluster.kmeans._batch_steps import reassigned, sampled
from epicycle.data import as_data
from epicycle.exceptions import DataError


@pytest.fixture(scope="module")
def blobs():
    return datasets.make_blobs(4000, centers=6, n_features=3, cluster_std=1.0, random_state=4)[0]


@pytest.mark.parametrize("table", [np.asarray, sp.csr_array])
def test_steps_are_those_of_scikit_learn(blobs, table):
    options = {"init": blobs[:6], "n_init": 1, "reassignment_ratio": 0.0}
    ours, theirs = MiniBatchKMeans(6, **options), peer.MiniBatchKMeans(6, **options)
    for a in range(0, 1000, 100):
        weight = np.random.default_rng(a).uniform(0.5, 2, 100)
        rows = table(blobs[a : a + 100])
        ours.partial_fit(rows, sample_weight=weight)
        theirs.partial_fit(rows, sample_weight=weight)
        assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
        assert_array_equal(ours.labels_, theirs.labels_)
        assert ours.inertia_ == pytest.approx(theirs.inertia_)
    assert ours.n_steps_ == theirs.n_steps_ == 10


def test_a_center_is_the_mean_of_all_rows_that_it_had(blobs):
    model = MiniBatchKMeans(6, init=blobs[:6], reassignment_ratio=0.0)
    sums, counts, centers = np.zeros((6, 3)), np.zeros(6), blobs[:6].copy()
    for a in range(0, 600, 200):
        rows = blobs[a : a + 200]
        label = ((rows[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        for c in range(6):
            sums[c] += rows[label == c].sum(axis=0)
            counts[c] += (label == c).sum()
        centers = sums / counts[:, None]
        assert_allclose(model.partial_fit(rows).cluster_centers_, centers, rtol=1e-10)


def test_blobs_from_memory_files_and_dask(blobs, tmp_path):
    best = KMeans(6, n_init=5, random_state=0).fit(blobs).inertia_
    pd.DataFrame(blobs, columns=list("abc")).to_parquet(tmp_path / "rows.parquet", row_group_size=500)
    tables = blobs, sp.csr_array(blobs), ep.data.scan(tmp_path / "rows.parquet"), da.from_array(blobs, chunks=(900, 3))
    for table in tables:
        model = MiniBatchKMeans(6, random_state=0, batch_size=256, n_init=3).fit(table)
        assert -model.score(table) < 1.05 * best
        assert model.certificate_.holds
        assert model.n_steps_ == model.history_.n_iter
    with_files = MiniBatchKMeans(6, random_state=0, batch_size=256).partial_fit(tables[2])
    assert with_files.n_steps_ >= 4000 / 256


def test_the_certificate_is_the_gain_of_a_full_step(blobs):
    weight = np.random.default_rng(0).uniform(0.5, 2, len(blobs))
    model = MiniBatchKMeans(6, random_state=0, max_iter=1, batch_size=200).fit(blobs, sample_weight=weight)
    terms = ((blobs - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
    means = [np.average(blobs[model.labels_ == a], axis=0, weights=weight[model.labels_ == a]) for a in range(6)]
    after = ((blobs - np.array(means)[model.labels_]) ** 2).sum(axis=1)
    J = weight @ terms
    assert model.inertia_ == pytest.approx(J)
    assert model.certificate_.value == pytest.approx(1 - weight @ after / J, rel=1e-6)
    spread = np.sqrt(np.average((terms - J / weight.sum()) ** 2, weights=weight) / 200) / (J / weight.sum())
    assert model.certificate_.tolerance == pytest.approx(spread)
    rough = MiniBatchKMeans(6, random_state=0, compute_labels=False).fit(blobs)
    assert not hasattr(rough, "labels_")
    assert rough.inertia_ == pytest.approx(-rough.score(blobs), rel=0.1)
    assert "a sample of the rows" in rough.certificate_.meaning


@given(seed=st.integers(0, 2**20), k=st.integers(1, 6))
def test_weights_are_repetitions_and_order_plays_no_part_in_one_batch(seed, k):
    rng = np.random.default_rng(seed)
    X, times = rng.normal(size=(25, 3)), rng.integers(0, 4, 25)
    times[:k] = 1
    whole = MiniBatchKMeans(k, random_state=seed, max_iter=20).fit(X, sample_weight=times)
    for other in (
        MiniBatchKMeans(k, random_state=seed, max_iter=20).fit(np.repeat(X, times, axis=0)),
        MiniBatchKMeans(k, random_state=seed, max_iter=20).fit(pd.DataFrame(X[::-1]), sample_weight=times[::-1]),
    ):
        assert_allclose(other.cluster_centers_, whole.cluster_centers_, atol=1e-10)
        assert other.inertia_ == pytest.approx(whole.inertia_)


def test_centers_with_little_weight_go_to_rows():
    X = np.arange(20.0).reshape(10, 2)
    centers, counts = np.full((4, 2), -1.0), np.array([100.0, 0.5, 50.0, 0.0])
    new, after = reassigned(X, np.ones(10), centers.copy(), counts.copy(), 0.01, np.random.default_rng(0))
    assert_array_equal(after, [100.0, 50.0, 50.0, 50.0])
    assert_array_equal(new[[0, 2]], centers[[0, 2]])
    assert all((row == X).all(axis=1).any() for row in new[[1, 3]])
    same, _ = reassigned(X, np.ones(10), centers.copy(), counts.copy(), 0.0, np.random.default_rng(0))
    assert_array_equal(same, centers)
    # No more than half of a batch, those with the least weight first.
    few, left = reassigned(X[:2], np.ones(2), centers.copy(), counts.copy(), 0.9, np.random.default_rng(0))
    assert_array_equal(left, [100.0, 0.5, 50.0, 0.5])
    assert (few != -1).any(axis=1).sum() == 1


def test_samples_follow_the_weights():
    X, weight = np.arange(4.0)[:, None], np.array([1.0, 2.0, 3.0, 0.0])
    drawn = [sampled(as_data(X, None, weight), 1, seed, None).X[0, 0] for seed in range(3000)]
    assert_allclose(np.bincount(np.array(drawn, dtype=int), minlength=4) / 3000, weight / 6, atol=0.03)
    everything = sampled(as_data(X, None, weight), 3, 0, None)
    assert_array_equal(everything.weight, [1.0, 2.0, 3.0])


def test_ends_and_bad_input(blobs):
    steps = 5 * len(blobs) // 500
    model = MiniBatchKMeans(6, batch_size=500, max_iter=5, max_no_improvement=None, random_state=0).fit(blobs)
    assert (model.n_steps_, model.n_iter_) == (steps, 5)
    assert MiniBatchKMeans(6, batch_size=500, tol=1.0, max_no_improvement=None, random_state=0).fit(blobs).n_steps_ == 2
    with pytest.warns(RuntimeWarning, match="init_size=2 should be larger than n_clusters=6"):
        MiniBatchKMeans(6, init_size=2, random_state=0).fit(blobs)
    with pytest.raises(DataError, match="n_samples=3 should be >= n_clusters=8"):
        MiniBatchKMeans().partial_fit(blobs[:3])
    with pytest.raises(DataError, match="every weight is zero"):
        MiniBatchKMeans(6).partial_fit(blobs).partial_fit(blobs, sample_weight=np.zeros(len(blobs)))
