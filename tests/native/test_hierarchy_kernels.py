"""Kernels of hierarchical clustering: SciPy's trees, threads, and refusals at the boundary."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist

from epicycle._native import cluster

METRICS = {"euclidean": "euclidean", "manhattan": "cityblock", "chebyshev": "chebyshev"}


def distances(X, metric="euclidean"):
    out = np.empty(len(X) * (len(X) - 1) // 2)
    cluster.condensed_distances(X, metric, out, 2)
    return out


@pytest.mark.parametrize("n", [1, 2, 33, 300])  # 300 rows are moved together twice
def test_trees_are_scipys(n):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 5, (n, 3)).astype(float) if seed else rng.normal(size=(n, 3))
        for ours, theirs in METRICS.items():
            d = distances(X, ours)
            assert_array_equal(d, pdist(X, theirs))
            Z = cluster.single_linkage(X, ours, 2)
            assert Z.shape == (n - 1, 4)
            if n > 1:
                assert_array_equal(Z, hierarchy.linkage(d, "single"))
        if n == 1:
            continue
        d = distances(X)
        for method in ("single", "complete", "average", "weighted", "ward", "centroid", "median"):
            assert_array_equal(cluster.linkage_from_distances(d.copy(), n, method, None), hierarchy.linkage(d, method))
            if method in ("ward", "centroid", "median"):
                Z = cluster.linkage_from_means(X, method, None, 2)
                assert_array_equal(Z, cluster.linkage_from_means(X, method, np.ones(n), 1))
                if not seed:
                    assert_allclose(Z, hierarchy.linkage(d, method), rtol=1e-9)


@pytest.mark.parametrize("method", ["ward", "complete", "average", "single"])
def test_a_complete_graph_is_no_constraint(method):
    X = np.random.default_rng(1).normal(size=(40, 2))
    i, j = np.tril_indices(40, -1)
    length = np.linalg.norm(X[i] - X[j], axis=1)
    Z = cluster.linkage_of_graph(i, j, length, X, method, None, 1)
    assert_allclose(Z, hierarchy.linkage(X, method), rtol=1e-9)
    early = cluster.linkage_of_graph(i, j, length, X, method, None, 5)
    assert_array_equal(early, Z[:35])


def test_labels_and_heights_of_nodes():
    children = np.array([[0, 1], [2, 3], [4, 5]])
    label = np.array([-1, -1, -1, -1, 7, 9, -1])
    cluster.node_labels(children, 4, label)
    assert_array_equal(label[:4], [7, 7, 9, 9])
    Z = np.array([[0, 1, 3.0, 2], [2, 4, 1.0, 3], [3, 5, 2.0, 4]])
    assert_array_equal(cluster.highest_below(Z, 4), [3.0, 3.0, 3.0])
    edges = cluster.linkage_from_edges(np.array([0, 1]), np.array([1, 2]), np.array([5.0, 1.0]))
    assert_array_equal(edges, [[1, 2, 1, 2], [0, 3, 5, 3]])


def test_wrong_arguments_are_refused():
    X, whole = np.zeros((4, 2)), np.zeros(6)
    with pytest.raises(ValueError, match="metric: expected"):
        cluster.single_linkage(X, "cosine", 1)
    with pytest.raises(ValueError, match="condensed_distances: expected"):
        cluster.condensed_distances(X, "euclidean", np.empty(5), 1)
    for arguments in ((np.zeros(5), 4, "ward", None), (whole, 4, "mean", None), (whole, 4, "ward", np.ones(3))):
        with pytest.raises(ValueError, match="linkage_from_distances: expected"):
            cluster.linkage_from_distances(*arguments)
    with pytest.raises(ValueError, match="linkage_from_distances: expected"):
        cluster.linkage_from_distances(np.full(6, np.inf), 4, "ward", None)
    with pytest.raises(ValueError, match="linkage_from_means: expected"):
        cluster.linkage_from_means(X, "average", None, 1)
    with pytest.raises(ValueError, match="linkage_from_edges: expected"):
        cluster.linkage_from_edges(np.array([0, 1]), np.array([1, 0]), np.zeros(2))
    with pytest.raises(ValueError, match="linkage_of_graph: expected"):
        cluster.linkage_of_graph(np.array([4]), np.array([0]), np.zeros(1), X, "ward", None, 1)
    with pytest.raises(ValueError, match="node_labels: expected"):
        cluster.node_labels(np.array([[0, 9]]), 4, np.zeros(5, dtype=np.int64))
    with pytest.raises(ValueError, match="highest_below: expected"):
        cluster.highest_below(np.array([[0.0, 9.0, 1.0, 2.0]]), 4)
