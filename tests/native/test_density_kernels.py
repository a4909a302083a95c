"""Kernels of density clustering: equal to brute force for all sizes of leaves, refusal of arrays that do not fit."""

import os
import signal
import threading
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from epicycle._native import cluster


@pytest.mark.parametrize("n", [1, 31, 32, 33, 63, 65, 129, 131, 260])
@pytest.mark.parametrize("threads", [1, 3])
def test_core_points_by_brute_force(n, threads):
    rng = np.random.default_rng(n)
    X, weight = rng.normal(size=(n, 2)), rng.uniform(-0.5, 2, n)
    for metric, name in enumerate(["euclidean", "cityblock", "chebyshev"]):
        near = cdist(X, X, name) <= 0.4
        core, label = cluster.dbscan(X, metric, 2.0, 0.4, 3.0, None, threads)
        assert_array_equal(core, near.sum(axis=1) >= 3)
        assert_array_equal(label >= 0, near[:, core > 0].any(axis=1))
        core, _ = cluster.dbscan(X, metric, 2.0, 0.4, 3.0, weight, threads)
        assert_array_equal(core, near @ weight >= 3)


def test_arrays_that_do_not_fit_are_refused():
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match="dbscan: expected"):
        cluster.dbscan(X, 4, 2.0, 1.0, 1.0, None, 1)
    with pytest.raises(ValueError, match="dbscan: expected"):
        cluster.dbscan(X, 0, 2.0, 1.0, 1.0, np.ones(3), 1)
    with pytest.raises(ValueError, match="dbscan: expected"):
        cluster.dbscan(np.zeros((0, 2)), 0, 2.0, 1.0, 1.0, None, 1)
    start, column = np.array([0, 1, 2]), np.array([0, 5])
    with pytest.raises(ValueError, match="dbscan_graph: expected"):
        cluster.dbscan_graph(np.ones(2), column, start, 1.0, 1.0, None)
    with pytest.raises(ValueError, match="dbscan_graph: expected"):
        cluster.dbscan_graph(np.ones(2), np.array([0, 1]), np.array([0, 2, 1]), 1.0, 1.0, None)


@pytest.mark.parametrize("n", [2, 33, 131])
def test_spanning_trees_by_brute_force(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    D = cdist(X, X)
    core = cluster.core_distances(X, 0, 2.0, 2, 2)
    assert_allclose(core, np.sort(D, axis=1)[:, 1])
    by_tree = cluster.reachability_tree(X, 0, 2.0, core, 1.0, 2)
    by_prim = cluster.reachability_prim(np.ascontiguousarray(X.T), 0, 2.0, core, 1.0)
    assert_array_equal(np.sort(by_tree[2]), np.sort(by_prim[2]))
    left, right, size = cluster.merge_edges(by_prim[0], by_prim[1])
    assert size.max() == n
    assert_array_equal(np.sort(np.concatenate([left, right])), np.arange(2 * n - 2))


def test_trees_that_are_none_are_refused():
    one = np.array([0])
    with pytest.raises(ValueError, match="core_distances: expected"):
        cluster.core_distances(np.zeros((3, 1)), 0, 2.0, 4, 1)
    for tree in (cluster.reachability_tree(np.zeros((1, 1)), 0, 2.0, np.zeros(1), 1.0, 1),):
        assert [len(part) for part in tree] == [0, 0, 0]
    with pytest.raises(ValueError, match="merge_edges: expected"):
        cluster.merge_edges(one, np.array([2]))
    for function, last in ((cluster.condense, 2), (cluster.cophenetic, 0)):
        with pytest.raises(ValueError, match="expected a dendrogram"):
            function(one, np.array([2]), np.ones(1), np.array([2]), last)
    with pytest.raises(ValueError, match="expected a dendrogram"):
        cluster.labels_at_cut(one, np.array([2]), np.ones(1), np.array([2]), 1.0, 2)


def test_optics_by_tree_and_by_all_distances():
    X = np.random.default_rng(0).normal(size=(140, 2))
    core = cluster.core_distances(X, 0, 2.0, 3, 1)
    core[core > 0.5] = np.inf
    by_tree = cluster.optics(X, 0, 2.0, core, 0.5, True)
    everything = cluster.optics(np.ascontiguousarray(X.T), 0, 2.0, core, 0.5, False)
    for one, other in zip(by_tree, everything, strict=True):
        assert_array_equal(one, other)
    with pytest.raises(ValueError, match="optics: expected"):
        cluster.optics(X, 0, 2.0, core, 0.5, False)


def test_an_interrupt_ends_a_long_count():
    rng = np.random.default_rng(0)
    X, weight, done = rng.random((100_000, 2)), rng.random(100_000), []
    threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        # Python itself looks at the signal only after `extend`, when the answer of a kernel that ended is in the list.
        done.extend(map(partial(cluster.dbscan, X, 0, 2.0, 0.1, 1e9), [weight], [1]))
    assert not done
