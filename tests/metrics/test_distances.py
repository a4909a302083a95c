"""Distances by name: against SciPy and by hand; mixed tables with gaps; paths along a graph."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from scipy.stats import special_ortho_group

from epicycle import metrics


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 4)), rng.normal(size=(30, 4))


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev", "cosine", "hamming", "jaccard"])
def test_named_distances_are_scipys(rows, name):
    A, B = (np.round(a) if name in ("hamming", "jaccard") else a for a in rows)
    theirs = {"manhattan": "cityblock"}.get(name, name)
    expected = cdist(A != 0, B != 0, theirs) if name == "jaccard" else cdist(A, B, theirs)
    assert_allclose(getattr(metrics, f"{name}_distances")(A, B), expected, atol=1e-14)
    assert_allclose(
        metrics.pairwise_distances(A, metric=name, n_jobs=2), metrics.pairwise_distances(A, A, name), atol=1e-15
    )


def test_minkowski_with_weights_and_mahalanobis(rows):
    A, B = rows
    w = np.array([1.0, 0.5, 2.0, 0.0])
    assert_allclose(metrics.minkowski_distances(A, B, p=3, w=w), cdist(A, B, "minkowski", p=3, w=w), atol=1e-13)
    V = np.cov(np.concatenate([A, B]), rowvar=False)
    expected = cdist(A, B, "mahalanobis", VI=np.linalg.inv(V))
    assert_allclose(metrics.mahalanobis_distances(A, B), expected, atol=1e-12)
    assert_allclose(metrics.mahalanobis_distances(A, B, VI=np.linalg.inv(V)), expected, atol=1e-12)
    # Mahalanobis' distances are those of rows in any coordinates
    turned = special_ortho_group(4, seed=0).rvs() * [[1.0], [20.0], [0.1], [3.0]]
    assert_allclose(metrics.mahalanobis_distances(A @ turned), metrics.mahalanobis_distances(A), atol=1e-10)


def test_sparse_rows_functions_and_given_distances(rows):
    A, B = rows
    cut = np.where(np.abs(A) > 0.8, A, 0.0)
    for metric in ("euclidean", "manhattan", "cosine"):
        assert_allclose(
            metrics.pairwise_distances(sp.csr_array(cut), B, metric),
            metrics.pairwise_distances(cut, B, metric),
            atol=1e-12,
        )
    assert_allclose(metrics.pairwise_distances(A, B, lambda a, b: abs(a - b).sum()), cdist(A, B, "cityblock"))
    D = metrics.euclidean_distances(A)
    assert metrics.pairwise_distances(D, metric="precomputed") is D


TABLE = {"age": [20.0, 40.0, None, 30.0], "city": ["Paris", "Rome", "Rome", None], "member": [True, True, False, False]}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_gower_by_hand(frame):
    D = metrics.gower_distances(frame(TABLE))
    expected = np.array(
        [
            [0, (1 + 1 + 0) / 3, (1 + 1) / 2, (0.5 + 1) / 2],
            [0, 0, (0 + 1) / 2, (0.5 + 1) / 2],
            [0, 0, 0, 0 / 1],
            [0, 0, 0, 0],
        ]
    )
    assert_allclose(D, expected + expected.T, atol=1e-15)
    weighted = metrics.gower_distances(frame(TABLE), weights=[2, 1, 1])
    assert weighted[0, 1] == pytest.approx((2 + 1 + 0) / 4)


def test_gower_of_numbers_that_are_categories_and_of_rows_with_nothing_in_common():
    values = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, 2.0]])
    assert_allclose(metrics.gower_distances(values, categorical=[0])[0, :2], [0, 1])
    assert np.isnan(metrics.gower_distances(values)[0, 2])
    assert metrics.pairwise_distances(values[:2], metric="gower")[0, 1] == 1.0
    one = metrics.gower_distances(np.array([["a", 1], ["b", 1]], dtype=object), np.array([["a", 3]], dtype=object))
    assert_allclose(one, [[0.5], [1.0]])


def test_geodesic_distances_follow_the_graph():
    angle = np.linspace(0, 1.5 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    D = metrics.geodesic_distances(circle, n_neighbors=3)
    assert D[0, -1] == pytest.approx(1.5 * np.pi, rel=1e-3)
    assert_allclose(D, D.T)
    assert_allclose(metrics.geodesic_distances(circle, n_neighbors=3, rows=[0, 7]), D[[0, 7]])
    assert_allclose(metrics.pairwise_distances(circle, metric="geodesic", n_neighbors=3), D)
    apart = np.concatenate([circle, circle + 100])
    assert np.isinf(metrics.geodesic_distances(apart, n_neighbors=3)[0, -1])
    twice = np.repeat(circle[:20], 3, axis=0)  # equal rows are joined too
    assert metrics.geodesic_distances(twice, n_neighbors=4)[0, 1] < 1e-300
    edges = sp.csr_array(([1.0, 2.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert metrics.geodesic_distances(edges, metric="precomputed")[0, 2] == 3.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.pairwise_distances([[1.0]], [[1.0, 2.0]]), "Y: has 2 columns and X has 1"),
        (lambda: metrics.pairwise_distances([[1.0]], metric="euklid"), "metric='euklid'; expected one of .*gower"),
        (
            lambda: metrics.mahalanobis_distances([[1.0, 1.0], [2.0, 2.0]]),
            "the covariance of the 2 columns is singular",
        ),
        (lambda: metrics.mahalanobis_distances([[1.0]], VI=[[-1.0]]), "VI: has a negative eigenvalue"),
        (lambda: metrics.mahalanobis_distances([[1.0]], VI=np.eye(2)), r"VI has shape \(2, 2\)"),
        (lambda: metrics.pairwise_distances([[1.0], [2.0]], metric="precomputed"), "all pairs of rows"),
        (lambda: metrics.pairwise_distances([[-1.0]], metric="precomputed"), "Negative values"),
        (lambda: metrics.geodesic_distances([[1.0], [2.0]], n_neighbors=2), "n_neighbors=2; expected fewer than the 2"),
        (lambda: metrics.geodesic_distances([[1.0], [2.0]], n_neighbors=1, rows=[5]), "rows: expected numbers from 0"),
        (lambda: metrics.pairwise_distances([[1.0]], [[1.0]], metric="geodesic"), "Y: distances along a graph"),
        (lambda: metrics.gower_distances([1, 2]), "expected a table"),
        (lambda: metrics.gower_distances([[1.0]], [[1.0, 2.0]]), "Y: has 2 columns"),
        (lambda: metrics.gower_distances([[1.0]], weights=[-1]), "weights: expected"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
