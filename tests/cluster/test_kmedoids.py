"""K-medoids: all single swaps and all sets of medoids by brute force, distances of every kind, weights, samples."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn import datasets

import epicycle as ep
from epicycle import KMedoids
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError

STARTS = ["lab", "build", "k-medoids++", "random"]


def cost(D, medoids, weight=1.0):
    return float((D[:, medoids].min(axis=1) * weight).sum())


def best_swap(D, medoids, weight=1.0):
    """The least cost after one swap."""
    swaps = itertools.product(range(len(medoids)), range(len(D)))
    return min(cost(D, [*medoids[:i], x, *medoids[i + 1 :]], weight) for i, x in swaps)


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 14),
    k=st.integers(1, 5),
    ties=st.booleans(),
    metric=st.sampled_from(["euclidean", "manhattan", "chebyshev", "cosine"]),
    init=st.sampled_from(STARTS),
)
def test_no_single_swap_improves(seed, n, k, ties, metric, init):
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 4, (n, 2)).astype(float) if ties else rng.normal(size=(n, 2))
    weight, k = rng.uniform(0.1, 3, n), min(k, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        model = KMedoids(k, metric=metric, init=init, random_state=seed).fit(X, sample_weight=weight)
    D = cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric))
    medoids = model.medoid_indices_.tolist()
    assert model.inertia_ == pytest.approx(cost(D, medoids, weight), abs=1e-9)
    assert model.inertia_ <= best_swap(D, medoids, weight) + 1e-9
    assert (np.diff(model.history_["objective"]) <= 1e-9).all()
    assert model.certificate_.holds
    assert_allclose(D[np.arange(n), np.array(medoids)[model.labels_]], D[:, medoids].min(axis=1), atol=1e-9)
    assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_many_starts_is_the_best_of_all(seed):
    X = np.random.default_rng(seed).normal(size=(12, 2))
    D = cdist(X, X)
    best = min(cost(D, list(chosen)) for chosen in itertools.combinations(range(12), 3))
    assert KMedoids(3, init="random", n_init=20, random_state=0).fit(X).inertia_ == pytest.approx(best)


@given(seed=st.integers(0, 2**20), k=st.integers(1, 5), init=st.sampled_from(STARTS))
def test_weights_are_repetitions_and_order_and_units_play_no_part(seed, k, init):
    rng = np.random.default_rng(seed)
    X, times = rng.normal(size=(20, 2)), rng.integers(0, 4, 20)
    times[:k] = 1
    one = KMedoids(k, init=init, random_state=seed).fit(X, sample_weight=times)
    rows = {tuple(row) for row in one.cluster_centers_.tolist()}
    for other in (
        KMedoids(k, init=init, random_state=seed).fit(np.repeat(X, times, axis=0)),
        KMedoids(k, init=init, random_state=seed).fit(pd.DataFrame(X[::-1]), sample_weight=times[::-1]),
    ):
        assert {tuple(row) for row in other.cluster_centers_.tolist()} == rows
        assert other.inertia_ == pytest.approx(one.inertia_)


def test_distances_of_every_kind_are_the_same_problem():
    X, _ = datasets.make_blobs(60, centers=4, n_features=3, random_state=1)
    options = {"n_clusters": 4, "init": [0, 1, 2, 3]}
    model = KMedoids(**options).fit(X)
    D = cdist(X, X)
    for other in (
        KMedoids(**options, metric="precomputed").fit(D),
        KMedoids(**options, metric="precomputed").fit(D.astype(np.float32)),
        KMedoids(**options, metric=lambda a, b: float(np.linalg.norm(a - b))).fit(X),
        KMedoids(**options, metric="minkowski", metric_params={"p": 2}).fit(X),
        KMedoids(**options, metric="mahalanobis", metric_params={"VI": np.eye(3)}).fit(X),
        KMedoids(**options).fit(sp.csr_array(X)),
        KMedoids(**options).fit(X.astype(np.float32)),
    ):
        assert other.inertia_ == pytest.approx(model.inertia_, rel=1e-4)
        assert cost(D, other.medoid_indices_) <= best_swap(D, other.medoid_indices_.tolist()) + 1e-3
    given_distances = KMedoids(**options, metric="precomputed").fit(D)
    assert given_distances.cluster_centers_ is None
    assert_array_equal(given_distances.predict(D[:7]), given_distances.labels_[:7])
    # Distances from a row to a medoid that are not those back: the sum is over rows of columns.
    rng = np.random.default_rng(0)
    A = rng.uniform(1, 2, (15, 15))
    np.fill_diagonal(A, 0)
    oneway = KMedoids(3, metric="precomputed", random_state=0).fit(A)
    assert oneway.inertia_ == pytest.approx(cost(A, oneway.medoid_indices_))
    assert oneway.inertia_ <= best_swap(A, oneway.medoid_indices_.tolist()) + 1e-12


def test_samples_of_many_rows():
    X, _ = datasets.make_blobs(3000, centers=5, random_state=2)
    whole = KMedoids(5, random_state=0).fit(X)
    model = KMedoids(5, sample_size=200, random_state=0).fit(X)
    assert model.inertia_ < 1.05 * whole.inertia_
    assert model.inertia_ == pytest.approx(cost(cdist(X, X[model.medoid_indices_]), list(range(5))))
    assert "sample" in model.certificate_.meaning
    assert len(np.unique(model.history_["start"])) == 5
    with pytest.raises(ParameterError, match="sample_size=3; expected at least n_clusters=5"):
        KMedoids(5, sample_size=3).fit(X)


def test_threads_files_and_bad_input(tmp_path):
    X, _ = datasets.make_blobs(900, centers=7, random_state=3)
    one, two = (KMedoids(7, random_state=1, n_jobs=jobs).fit(X) for jobs in (1, 2))
    assert_array_equal(one.medoid_indices_, two.medoid_indices_)
    one.save(tmp_path / "model.epi")
    assert_array_equal(ep.load(tmp_path / "model.epi").predict(X), one.labels_)
    assert_allclose(one.transform(one.cluster_centers_).diagonal(), 0)
    with pytest.raises(DataError, match="n_samples=3 should be >= n_clusters=8"):
        KMedoids().fit(X[:3])
    with pytest.raises(DataError, match="Precomputed matrix must be square"):
        KMedoids(2, metric="precomputed").fit(abs(X))
    with pytest.raises(DataError, match="infinite or NaN"):
        KMedoids(1, metric=lambda a, b: float("nan")).fit(X[:5])
    for init in ([0, 0, 1], [0, 1], [0, 1, 5000], [0.5, 1.5, 2.5]):
        with pytest.raises(ParameterError, match="init: "):
            KMedoids(3, init=init).fit(X)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_clusters \(3\)"):
        assert KMedoids(3, random_state=0).fit(np.array([[0.0], [0.0], [1.0], [1.0]])).inertia_ == 0
    with pytest.warns(ConvergenceWarning, match="KMedoids"):
        KMedoids(7, init="random", max_iter=1, random_state=0).fit(X)
