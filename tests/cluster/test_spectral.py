"""Spectral embedding and clustering: dense eigenvectors, exhaustive cuts, scikit-learn, planted clusters, bad input."""

import itertools
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu
from sklearn import cluster as peer, datasets, manifold
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph

import epicycle as ep
from epicycle import SpectralClustering, SpectralEmbedding
from epicycle.cluster.spectral import _laplacian
from epicycle.cluster.spectral._spectral_clustering import cluster_qr, discretize
from epicycle.exceptions import DataError, ParameterError

ASSIGN = ["kmeans", "discretize", "cluster_qr"]


def laplacian(W):
    """I - D^-1/2 W D^-1/2 without self-affinities, by its definition."""
    W = W - np.diag(np.diag(W))
    d = W.sum(axis=1)
    return np.eye(len(W)) - W / np.sqrt(np.outer(d, d)), d


def cut(W, labels):
    W = W - np.diag(np.diag(W))
    groups = [labels == c for c in np.unique(labels)]
    return sum(W[g][:, ~g].sum() / W[g].sum() for g in groups)


@pytest.fixture(scope="module")
def rings():
    return datasets.make_circles(300, factor=0.4, noise=0.03, random_state=0)


@pytest.mark.parametrize("assign_labels", ASSIGN)
def test_rings_are_separated(rings, assign_labels):
    X, ring = rings
    model = SpectralClustering(2, gamma=30, assign_labels=assign_labels, random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, ring) == 1
    assert adjusted_rand_score(ep.KMeans(2, random_state=0).fit(X).labels_, ring) < 0.1  # round clusters do not
    assert model.certificate_.holds
    assert model.normalized_cut_ == pytest.approx(cut(rbf_kernel(X, gamma=30), ring), rel=1e-9)
    assert model.lower_bound_ <= model.normalized_cut_


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("eigen_solver", ["arpack", "lobpcg"])
@pytest.mark.parametrize("dense_limit", [0, 400])
def test_eigenpairs_are_those_of_the_dense_laplacian(monkeypatch, sparse, eigen_solver, dense_limit):
    monkeypatch.setattr(_laplacian, "_DENSE", dense_limit)  # 0: Lanczos and LOBPCG, whatever the size
    X, _ = datasets.make_blobs(150, centers=4, cluster_std=2.0, random_state=1)
    W = kneighbors_graph(X, 30, include_self=True) if sparse else sp.csr_matrix(rbf_kernel(X, gamma=0.1))
    W = ((W + W.T) / 2).toarray()
    L, d = laplacian(W)
    values, vectors = eigh(L)
    model = SpectralEmbedding(3, affinity="precomputed", eigen_solver=eigen_solver, random_state=0)
    model.fit(sp.csr_array(W) if sparse else W)
    assert_allclose(model.eigenvalues_, values[:5], atol=1e-9)  # the one after them too
    expected = vectors[:, 1:4] / np.sqrt(d)[:, None]
    signs = np.sign((expected * model.embedding_).sum(axis=0))
    assert_allclose(model.embedding_, expected * signs, atol=1e-6)
    largest = np.abs(model.embedding_).argmax(axis=0)
    assert np.all(model.embedding_[largest, range(3)] > 0)
    X_of_u = model.embedding_ * np.sqrt(d)[:, None]
    assert_allclose(model.residual_norms_[1:], np.linalg.norm(L @ X_of_u - X_of_u * values[1:4], axis=0), atol=1e-7)
    assert model.certificate_.value == model.residual_norms_.max() < 1e-6


@pytest.mark.parametrize("thin", [False, True])
def test_lanczos_by_products_and_by_an_inverse(monkeypatch, thin):
    """A long chain, whose least eigenvalues are close: l_j = 1 - cos(pi j / (n - 1)) of a path of n nodes."""
    n = 900
    path = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1]).tocsr()
    graph = _laplacian.graph_of(path, None)
    solver = _laplacian.Solver("arpack", 0.0, np.random.default_rng(0), thin)
    factors = []
    monkeypatch.setattr(_laplacian, "splu", lambda *a, **k: factors.append(splu(*a, **k)) or factors[-1])
    pairs = _laplacian.least_eigenpairs(graph, 4, solver)
    assert len(factors) == 1  # products alone do not get there
    assert_allclose(pairs.values, 1 - np.cos(np.pi * np.arange(4) / (n - 1)), atol=1e-12)
    assert pairs.residuals.max() < 1e-10


def test_no_partition_is_below_the_bound():
    """All partitions of nine nodes into two and three sets."""
    rng = np.random.default_rng(5)
    W = rng.random((9, 9)) ** 3
    W = W + W.T
    for k in (2, 3):
        model = SpectralClustering(k, affinity="precomputed", random_state=0).fit(W)
        every = (np.array(labels) for labels in itertools.product(range(k), repeat=9))
        least = min(cut(W, labels) for labels in every if len(set(labels)) == k)
        assert model.lower_bound_ <= least <= model.normalized_cut_ + 1e-12
        assert model.normalized_cut_ == pytest.approx(cut(W, model.labels_))


def test_the_conductance_is_enclosed_as_cheeger_says():
    rng = np.random.default_rng(6)
    W = rng.random((8, 8)) ** 4
    W = W + W.T
    np.fill_diagonal(W, 0)
    volume = W.sum(axis=1)
    sets = [np.array(s, dtype=bool) for s in itertools.product([0, 1], repeat=8) if 0 < sum(s) < 8]
    conductance = min(W[s][:, ~s].sum() / min(volume[s].sum(), volume[~s].sum()) for s in sets)
    second = SpectralEmbedding(1, affinity="precomputed").fit(W).eigenvalues_[1]
    assert second / 2 <= conductance <= np.sqrt(2 * second)


@pytest.mark.parametrize(
    "options", [{"affinity": "rbf", "gamma": 0.1}, {"affinity": "nearest_neighbors", "n_neighbors": 40}]
)
def test_embedding_equals_that_of_scikit_learn(options):
    X, _ = datasets.make_blobs(200, centers=3, cluster_std=2.5, random_state=3)
    ours = SpectralEmbedding(3, random_state=0, **options).fit(X)
    theirs = manifold.SpectralEmbedding(3, random_state=0, **options).fit(X)
    assert_allclose(ours.embedding_, theirs.embedding_, atol=1e-7)
    for a, b in ((ours.affinity_matrix_, theirs.affinity_matrix_),):
        assert_allclose(a.toarray() if sp.issparse(a) else a, b.toarray() if sp.issparse(b) else b)
    model = SpectralClustering(3, random_state=0, **options).fit(X)
    assert adjusted_rand_score(model.labels_, peer.SpectralClustering(3, random_state=0, **options).fit(X).labels_) == 1


def test_graphs_within_a_radius():
    X, _ = datasets.make_blobs(120, centers=2, cluster_std=1.5, random_state=0)
    expected = radius_neighbors_graph(X, 4.0, include_self=True).toarray()
    for columns in (2, 12):  # a tree, and blocks of distances
        rows = np.pad(X, ((0, 0), (0, columns - 2)))
        model = SpectralClustering(2, affinity="radius", radius=4.0, random_state=0).fit(rows)
        assert_array_equal(model.affinity_matrix_.toarray(), expected)
    with pytest.raises(ParameterError, match="radius=None"):
        SpectralClustering(2, affinity="radius").fit(X)


@pytest.mark.parametrize("assign_labels", ASSIGN)
def test_components_of_a_graph_are_said_and_never_cut(assign_labels):
    """Equal eigenvalues 0, of which a Lanczos iteration could miss some; more components than clusters too."""
    X, blob = datasets.make_blobs(400, centers=5, cluster_std=0.1, random_state=4)
    for k in (3, 5, 6):
        model = SpectralClustering(
            k, affinity="nearest_neighbors", n_neighbors=8, assign_labels=assign_labels, random_state=0
        )
        with pytest.warns(UserWarning, match="not fully connected.*5 components"):
            model.fit(X)
        assert model.n_connected_components_ == 5
        assert_allclose(model.eigenvalues_[:5][:k], 0, atol=1e-12)
        assert model.certificate_.holds
        if k <= 5:
            assert model.normalized_cut_ == 0
            assert all(len(set(model.labels_[blob == b])) == 1 for b in range(5))


def test_components_of_dense_affinities():
    rng = np.random.default_rng(8)
    for n in (1, 2, 9, 30, 60):
        A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 1.2 / n), 1)
        count, expected = connected_components(sp.csr_array(A), directed=False)
        found = _laplacian._dense_components(A + A.T)
        assert found.max() + 1 == count
        assert adjusted_rand_score(found, expected) == 1


def test_isolated_nodes_have_a_place():
    W = np.zeros((6, 6))
    W[:3, :3] = W[3:5, 3:5] = 1
    with pytest.warns(UserWarning, match="3 components"):
        model = SpectralClustering(3, affinity="precomputed", random_state=0).fit(W)
    assert adjusted_rand_score(model.labels_, [0, 0, 0, 1, 1, 2]) == 1
    assert model.normalized_cut_ == 0


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.sampled_from(ASSIGN))
def test_weights_repetition_order_and_scale(seed, k, assign_labels):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 25))
    X = rng.normal(size=(n, 2))
    v = rng.integers(0, 3, n)
    v[:5] = 2
    options = {"affinity": "rbf", "gamma": 0.5}
    weighted = SpectralEmbedding(2, **options, random_state=0).fit(X, sample_weight=v)
    repeated = SpectralEmbedding(2, **options, random_state=0).fit(np.repeat(X, v, axis=0))
    assert_allclose(weighted.eigenvalues_[:3], repeated.eigenvalues_[:3], atol=1e-10)
    gap = np.diff(weighted.eigenvalues_[1:]).min()
    found = np.repeat(weighted.embedding_, v, axis=0)
    if gap > 1e-4:
        assert_allclose(np.abs(found), np.abs(repeated.embedding_), atol=1e-6)
    assert np.isnan(weighted.embedding_[v == 0]).all()
    assert_allclose(
        SpectralEmbedding(2, affinity="rbf", gamma=0.5e-6).fit(1e3 * X).eigenvalues_,
        SpectralEmbedding(2, **options).fit(X).eigenvalues_,
        atol=1e-9,
    )
    model = SpectralClustering(k, gamma=0.5, assign_labels=assign_labels, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters")
        labels = model.fit(X, sample_weight=v).labels_
    assert labels.shape == (n,)
    assert np.all((labels >= 0) == (v > 0))
    assert np.all(labels < k)
    assert model.lower_bound_ <= model.normalized_cut_ + 1e-9
    assert model.certificate_.holds
    order = rng.permutation(n)
    again = SpectralClustering(k, gamma=0.5, assign_labels="cluster_qr").fit(X[order]).normalized_cut_
    first = SpectralClustering(k, gamma=0.5, assign_labels="cluster_qr").fit(X).normalized_cut_
    if gap > 1e-4 and k < 3:
        assert again == pytest.approx(first, abs=1e-8)


def test_assignments_find_noisy_indicators():
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 5, 300)
    turned = np.eye(5)[truth] @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 0.05 * rng.normal(size=(300, 5))
    assert adjusted_rand_score(cluster_qr(turned), truth) == 1
    assert adjusted_rand_score(discretize(turned, rng), truth) == 1


def test_containers_types_and_seeds(rings):
    X, _ = rings
    reference = SpectralClustering(2, gamma=30, random_state=0).fit(X).labels_
    for rows in (pd.DataFrame(X, columns=["a", "b"]), sp.csr_matrix(X), np.asfortranarray(X), X.tolist()):
        assert_array_equal(SpectralClustering(2, gamma=30, random_state=0).fit_predict(rows), reference)
    single = SpectralEmbedding(2, affinity="rbf", gamma=30).fit(X.astype(np.float32))
    assert single.embedding_.dtype == np.float32
    for eigen_solver in ("arpack", "lobpcg"):
        wide = datasets.make_blobs(600, centers=3, n_features=12, cluster_std=4.0, random_state=0)[0]
        options = {"affinity": "nearest_neighbors", "n_neighbors": 15, "eigen_solver": eigen_solver}
        a, b = (SpectralEmbedding(2, random_state=3, **options).fit(wide).embedding_ for _ in range(2))
        assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"affinity": "precomputed"}, np.ones((3, 4)), "square"),
        ({"affinity": "precomputed"}, -np.ones((3, 3)), "affinity: holds -1; expected numbers >= 0"),
        ({"affinity": "linear"}, np.array([[1.0], [-1.0], [2.0]]), "affinity: holds -2"),
        ({"affinity": "nearest_neighbors", "n_neighbors": 9}, np.arange(5.0)[:, None], "n_neighbors=9"),
        ({"n_clusters": 7}, np.arange(5.0)[:, None], "n_samples=5 should be >= n_clusters=7"),
        ({"eigen_solver": "amg"}, np.arange(5.0)[:, None], "pyamg is not available"),
        ({"affinity": "no such kernel"}, np.arange(5.0)[:, None], "affinity="),
        ({}, np.array([[1.0, np.nan], [1.0, 2.0]]), "NaN"),
    ],
)
def test_bad_input_names_the_argument(options, X, message):
    with pytest.raises(ValueError, match=message):
        SpectralClustering(**{"n_clusters": 2, **options}).fit(X)


def test_rows_have_to_be_in_memory_and_symmetric_affinities_are_made():
    with pytest.raises(DataError, match="needs its rows in memory"):
        SpectralEmbedding().fit(da.ones((20, 2), chunks=10))
    W = np.array([[0, 1, 0.5], [1, 0, 0.2], [0.1, 0.2, 0.0]])
    with pytest.warns(UserWarning, match="not symmetric"):
        model = SpectralEmbedding(1, affinity="precomputed").fit(W)
    assert_allclose(model.embedding_, SpectralEmbedding(1, affinity="precomputed").fit((W + W.T) / 2).embedding_)


def test_an_embedding_that_is_not_reached_does_not_hold():
    X = datasets.make_blobs(800, centers=3, n_features=12, cluster_std=5.0, random_state=0)[0]
    options = {"affinity": "nearest_neighbors", "n_neighbors": 10, "eigen_solver": "lobpcg", "random_state": 0}
    good = SpectralEmbedding(2, **options).fit(X)
    assert good.certificate_.holds
    with ep.config(on_nonconvergence="ignore"):
        rough = SpectralEmbedding(2, eigen_tol=0.3, **options).fit(X)
    assert rough.residual_norms_.max() > 1e3 * good.residual_norms_.max()
    assert rough.certificate_.value == rough.residual_norms_.max()
