"""Isomap against scikit-learn and on sheets whose places are known; shortest paths against SciPy's."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.manifold
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import dijkstra
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError
from epicycle.spatial._shortest_paths import shortest_paths


def graph(kind):
    rng = np.random.default_rng(0)
    G = kneighbors_graph(rng.normal(size=(300, 3)), 5, mode="distance")
    if kind == "one long edge":
        G.data[7] = 1e6
    elif kind == "edges of length zero":
        G.data[::3] = 0.0
    elif kind == "two parts":
        G = sp.block_diag([G, G], format="csr")
    return sp.csr_array(G)


@pytest.mark.parametrize("kind", ["even", "one long edge", "edges of length zero", "two parts"])
def test_shortest_paths_are_those_of_scipy(kind):
    G = graph(kind)
    D = shortest_paths(G, n_jobs=1)
    # SciPy leaves out edges of length zero
    expected = dijkstra(sp.csr_array((np.maximum(G.data, 1e-300), G.indices, G.indptr), shape=G.shape), directed=False)
    assert_allclose(D, expected, rtol=1e-13, atol=1e-290)
    assert np.array_equal(D, D.T)
    assert np.array_equal(shortest_paths(G, np.array([5, 2]))[:, :9].round(9), D[[5, 2], :9].round(9))
    for threads in (2, 4):
        assert np.array_equal(D, shortest_paths(G, n_jobs=threads))


@pytest.mark.parametrize(
    "options", [{"n_neighbors": 8}, {"n_neighbors": None, "radius": 28.0}, {"metric": "manhattan", "path_method": "FW"}]
)
def test_equal_to_scikit_learn(options, same_up_to_sign):
    X = load_digits().data[:300] + np.random.default_rng(0).uniform(0, 1e-3, size=(300, 64))  # no ties
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the graphs have parts, which both join, and SciPy has a say about it
        theirs = sklearn.manifold.Isomap(n_components=3, **options).fit(X)
    with pytest.warns(UserWarning, match="number of connected components"):
        ours = ep.Isomap(n_components=3, **options).fit(X)
    assert_allclose(ours.dist_matrix_, theirs.dist_matrix_, rtol=1e-12)
    signs = same_up_to_sign(ours.embedding_, theirs.embedding_, atol=1e-8)
    assert_allclose(ours.transform(X[:20] + 0.1) * signs, theirs.transform(X[:20] + 0.1), atol=1e-8)
    assert_allclose(ours.reconstruction_error(), theirs.reconstruction_error(), rtol=1e-8)
    assert ours.certificate_.holds


def test_the_swiss_roll_is_unrolled(roll, distance_from):
    X, sheet = roll
    model = ep.Isomap(n_neighbors=10).fit(X)
    assert distance_from(sheet, model.embedding_) < 0.005
    assert distance_from(sheet, ep.PCA(2).fit_transform(X)) > 0.3  # a plane does not do it
    assert model.trustworthiness_ > 0.99
    assert model.quality_rows_ == 400  # of 1,000, drawn
    new = X[::7] + 0.01
    assert distance_from(sheet[::7], model.transform(new)) < 0.005
    # the certificate is the residual of the eigenvectors, which are computed here once more
    G = -0.5 * model.dist_matrix_**2
    H = np.eye(len(X)) - 1 / len(X)
    K, U = H @ G @ H, model.embedding_ / np.linalg.norm(model.embedding_, axis=0)
    values = np.square(model.embedding_).sum(axis=0)
    assert np.linalg.norm(K @ U - U * values, axis=0).max() < 1e-10 * values[0]


def test_bits_do_not_depend_on_threads(roll):
    fits = [ep.Isomap(n_neighbors=10, n_jobs=jobs).fit(roll[0]) for jobs in (1, 2, 4)]
    for fit in fits[1:]:
        assert np.array_equal(fit.embedding_, fits[0].embedding_)
        assert np.array_equal(fit.transform(roll[0][:30] + 0.01), fits[0].transform(roll[0][:30] + 0.01))


def test_equal_rows_are_at_no_distance():
    X = np.repeat(np.random.default_rng(0).normal(size=(15, 2)), 2, axis=0)
    by_paths = ep.Isomap(n_neighbors=6).fit(X).dist_matrix_
    assert_allclose(by_paths[np.arange(0, 30, 2), np.arange(1, 30, 2)], 0)
    assert_allclose(ep.Isomap(n_neighbors=6, path_method="FW").fit(X).dist_matrix_, by_paths, atol=1e-12)


def test_sparse_graphs_frames_and_float32(roll):
    X = roll[0][:200]
    model = ep.Isomap(n_neighbors=6).fit(X)
    given_graph = kneighbors_graph(X, 7, mode="distance", include_self=True)
    assert_allclose(ep.Isomap(n_neighbors=6, metric="precomputed").fit_transform(given_graph), model.embedding_)
    single = ep.Isomap(n_neighbors=6).fit(X.astype(np.float32))
    assert single.embedding_.dtype == single.dist_matrix_.dtype == np.float32
    assert_allclose(single.embedding_, model.embedding_, atol=1e-4)
    with pytest.raises(DataError, match="connected components"):
        ep.Isomap(n_neighbors=1, metric="precomputed").fit(kneighbors_graph(X, 2, mode="distance"))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.integers(20, 40))
def test_scale_and_order_of_the_rows(seed, scale, n):
    rng = np.random.default_rng(seed)
    X, order = rng.normal(size=(n, 3)), rng.permutation(n)
    model = ep.Isomap(n_neighbors=n // 2, n_components=1)
    Z = model.fit_transform(X)
    assert_allclose(model.fit_transform(scale * X), scale * Z, rtol=1e-6, atol=1e-8 * scale)
    assert_allclose(np.abs(model.fit_transform(X[order])), np.abs(Z[order]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"radius": 1.0}, "Both n_neighbors and radius"),
        ({"n_neighbors": None}, "expected a number for one"),
        ({"n_components": 10**9}, "n_components=1000000000; expected fewer"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        ep.Isomap(**options).fit(np.random.default_rng(0).normal(size=(40, 3)))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_large_and_small_values(scale):
    X = np.random.default_rng(1).normal(size=(40, 3))
    model, plain = ep.Isomap().fit(X * scale), ep.Isomap().fit(X)
    assert_allclose(model.embedding_ / scale, plain.embedding_, rtol=1e-6, atol=1e-9)
    assert_allclose(model.transform(X[:3] * scale) / scale, plain.embedding_[:3], rtol=1e-6, atol=1e-9)
