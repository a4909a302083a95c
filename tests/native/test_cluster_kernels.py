"""The nearest of many centres: against brute force, with and without bounds, and refusals at the boundary."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from epicycle._native import cluster


def state(n, k, per_group):
    tiles = (k + 15) // 16
    groups = (tiles + per_group - 1) // per_group if per_group else 0
    return np.zeros(n, np.int64), np.zeros(n if groups else 0), np.zeros((n, groups))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 5, 16, 50])
@pytest.mark.parametrize("per_group", [0, 1, 9])
def test_labels_and_bounds_over_rounds(dtype, k, per_group):
    rng = np.random.default_rng(k)
    X = (rng.normal(size=(203, 6)) * (rng.random((203, 6)) > 0.3)).astype(dtype)
    centers = rng.normal(size=(k, 6))
    for table in (X, np.asfortranarray(X), sp.csr_array(X)):
        origin = np.zeros(6) if sp.issparse(table) else X.mean(axis=0, dtype=float)
        label, upper, lower = state(len(X), k, per_group)
        about, moved = centers - origin, None
        for _ in range(6):
            cluster.assign(table, origin, about, label, upper, lower, per_group, moved, 2)
            squares = ((X[:, None] - (about + origin)) ** 2).sum(axis=2)
            assert_array_equal(label, squares.argmin(axis=1))
            after = about + rng.normal(scale=0.02, size=about.shape)
            moved, about = np.linalg.norm(after - about, axis=1), after
        assert_allclose(
            cluster.closest_distances(table, origin, about, None, 2),
            ((X[:, None] - (about + origin)) ** 2).sum(axis=2).T,
            atol=1e-5 if dtype == np.float32 else 1e-12,
        )


def test_of_equal_distances_the_first_is_taken():
    label, upper, lower = state(3, 40, 1)
    centers = np.tile([[1.0, 2.0]], (40, 1))
    X = np.array([[1.0, 2.0], [0.0, 0.0], [5.0, 1.0]])
    for moved in (None, np.zeros(40)):
        cluster.assign(X, np.zeros(2), centers, label, upper, lower, 1, moved, 1)
        assert_array_equal(label, 0)


@pytest.mark.parametrize("table", [np.asarray, np.asfortranarray, sp.csr_array])
def test_rows_move_from_sum_to_sum(table):
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(30, 4)) * (rng.random((30, 4)) > 0.4), rng.random(30)
    before, after = rng.integers(0, 5, (2, 30))
    origin = np.zeros(4) if table is sp.csr_array else rng.normal(size=4)
    for w in (weight, None):
        rows = (X - origin) * (1.0 if w is None else w[:, None])
        sums, expected = (np.stack([rows[label == a].sum(axis=0) for a in range(5)]) for label in (before, after))
        cluster.move_rows(table(X), origin, w, before, after, sums)
        assert_allclose(sums, expected, atol=1e-13)
        fresh = np.zeros((5, 4))
        cluster.move_rows(table(X), origin, w, None, after, fresh)
        assert_allclose(fresh, expected, atol=1e-13)
    with pytest.raises(ValueError, match="move_rows: expected"):
        cluster.move_rows(table(X), origin, None, before, after + 1, sums[:3].copy())


def test_wrong_arguments_are_refused():
    X, origin, centers = np.zeros((4, 2)), np.zeros(2), np.zeros((3, 2))
    label, upper, lower = state(4, 3, 1)
    with pytest.raises(ValueError, match="assign: expected"):
        cluster.assign(X, origin, centers[:, :1].copy(), label, upper, lower, 1, None, 1)
    with pytest.raises(ValueError, match="assign: expected"):
        cluster.assign(X, origin, centers, label[:2].copy(), upper, lower, 1, None, 1)
    with pytest.raises(ValueError, match="assign: expected"):
        cluster.assign(X, origin, centers, label + 7, upper, lower, 1, np.zeros(3), 1)
    with pytest.raises(ValueError, match="assign: expected"):
        cluster.assign(X, origin, centers, label, upper, lower, 0, None, 1)
    with pytest.raises(ValueError, match="expected"):
        cluster.assign(sp.csr_array(X), origin + 1, centers, label, upper, lower, 1, None, 1)
    with pytest.raises(ValueError, match="closest_distances: expected"):
        cluster.closest_distances(X, origin, centers, np.zeros(3), 1)


def test_distances_to_clusters_against_all_pairs():
    rng = np.random.default_rng(0)
    for sizes in ([5], [16, 16], [1, 15, 17, 0, 3, 40], [1] * 37, [130, 1, 0, 200, 77], [128, 128], [300]):
        n = sum(sizes)
        X, weight = rng.normal(size=(n, 3)), rng.integers(1, 4, size=n).astype(float)
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        label = np.repeat(np.arange(len(sizes)), sizes)
        D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
        indicator = (label[:, None] == np.arange(len(sizes))) * weight[:, None]
        sums, total = D @ indicator, indicator.sum(axis=0)
        means = np.where(total > 0, sums / np.maximum(total, 1), np.inf)
        means[np.arange(n), label] = np.inf
        query = rng.permutation(n)[: n // 2 + 1].astype(np.int64)
        for at in (query, np.arange(n)):
            one = cluster.distances_to_clusters(X, weight, start, at, 1)
            assert_allclose(one[0], sums[np.arange(n), label][at], rtol=1e-12)
            assert_allclose(one[1], means.min(axis=1)[at], rtol=1e-12)
            assert_array_equal(one, cluster.distances_to_clusters(X, weight, start, at, 3))


@pytest.mark.parametrize("change", [{"weight": np.ones(3)}, {"start": np.array([0, 3])}, {"query": np.array([4])}])
def test_distances_to_clusters_refuses(change):
    good = {"X": np.zeros((4, 2)), "weight": np.ones(4), "start": np.array([0, 2, 4]), "query": np.array([0])}
    cluster.distances_to_clusters(**good, threads=1)
    with pytest.raises(ValueError, match="distances_to_clusters: expected X"):
        cluster.distances_to_clusters(**{**good, **change}, threads=1)


def test_expected_information_of_one_cell_and_refusals():
    # one of two rows in a part of one: m = 0 or 1 with probability 1/2, 1/2 log 2 in the second case, four cells
    one = np.array([1.0])
    assert_allclose(cluster.expected_information(one, one, one, one, 2.0), np.log(2) / 4)
    with pytest.raises(ValueError, match="expected_information: expected a"):
        cluster.expected_information(one, one, one, one, 0.5)
